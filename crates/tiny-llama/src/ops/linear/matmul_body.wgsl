
  // The tile of C, and this workgroup's part of the inner dimension.
  let row = group.y * {{ tile[0] }}u;
  let column = group.x * {{ tile[1] }}u;
  let begin = group.z * {{ share }}u;
  let end = min(begin + {{ share }}u, {{ inner }}u);
  var sums = array<vec4<f32>, {{ sums }}>();

  // Where this invocation's first piece of A is, and of B. Its others are a fixed number of lines further.
  {{ begin }}
  {{ declare }}
  var next = begin;
  {{ load | replace("\n    ", "\n  ") }}
  for (var k = begin; k < end; k += {{ step }}u) {
    // Copies registers to workgroup memory.
    {{ stage }}
    workgroupBarrier();

    // Loads the next step's values while this step is multiplied; the last step loads the first one's again.
    next = select(begin, k + {{ step }}u, k + {{ step }}u < end);
    {{ load }}

    // Each inner value. {{ unroll }} are written out, because a loop of single ones takes longer.
    for (var value = 0u; value < {{ per_slice }}u; value += {{ unroll }}u) {
      let line = {{ line }};
      let a_at = line * {{ a_pitch }}u + block_row;
      let b_at = {{ b_first }}u + line * {{ b_pitch }}u + block_column;
      {{ multiply }}
    }
    workgroupBarrier();
  }
{{ add_slices }}
  let first = group.z * {{ size }}u;
  // The first row and column of this invocation's block in C.
  let top = row + block_row * 4u;
{{ store }}
