
  // The tile of C, and this workgroup's part of the inner dimension.
  let row = group.y * {{ tile[0] }}u;
  let column = group.x * {{ tile[1] }}u;
  let begin = group.z * {{ share }}u;
  let end = min(begin + {{ share }}u, {{ inner }}u);
  var sums = Block();
  var next = begin;

  // Where this invocation's first piece of A is, and of B. Its others are a fixed number of lines further.
  {{ a.begin }}
  {{ b.begin }}
  var a_next = {{ a.load }};
  var b_next = {{ b.load }};
  for (var k = begin; k < end; k += {{ step }}u) {
    // Copies registers to workgroup memory.
    stage_a{{ n }}(a_next, lane);
    stage_b{{ n }}(b_next, lane);
    workgroupBarrier();

    // Loads the next step's values while this step is multiplied; the last step loads the first one's again.
    next = select(begin, k + {{ step }}u, k + {{ step }}u < end);
    a_next = {{ a.load }};
    b_next = {{ b.load }};

    // Each inner value. {{ unroll }} are written out, because a loop of single ones takes longer.
    for (var value = 0u; value < {{ per_slice }}u; value += {{ unroll }}u) {
      let line = {{ line }};
      let a_at = line * {{ a.pitch }}u + block_row;
      let b_at = {{ b.first }}u + line * {{ b.pitch }}u + block_column;
      {{ values }}
    }
    workgroupBarrier();
  }
{{ slices }}
  let first = group.z * {{ size }}u;
  let first_row = row + block_row * 4u;
{{ store }}
