
  // The block of C, and this subgroup's tiles in it.
  let row = group.y * {{ block[0] }}u;
  let column = group.x * {{ block[1] }}u;
  {{ subgroup }}
  let a_first = subgroup / {{ subgroups[1] }}u * {{ tiles[0] * 16 }}u;
  let b_first = subgroup % {{ subgroups[1] }}u * {{ tiles[1] * 16 }}u;{{ scales }}
  {{ sums }}
  let begin = group.z * {{ share }}u;
  let end = min(begin + {{ share }}u, {{ inner }}u);
  var next = begin;
  // Where this invocation's first vector of A in a step is, in memory and in workgroup memory; and its first of B.{{ hints }}
  let a_line = {{ a.line }};{{ a.edges }}
  let a_at = ({{ a.first }} * {{ a.width }}u + {{ a.value }}) / 4u;
  let a_to = a_line * {{ a.pitch }}u + lane % {{ a.across }}u;
  let b_line = {{ b.line }};{{ b.edges }}
  let b_at = ({{ b.first }} * {{ b.width }}u + {{ b.value }}) / 4u;
  let b_to = b_line * {{ b.pitch }}u + lane % {{ b.across }}u;
  {{ a.first_loads }}
  {{ b.first_loads }}
{{ norm }}
  loop {
    // Copies registers to workgroup memory.
    {{ a.stages }}
    {{ b.stages }}
    {{ next_loads }}

    // A loop, because drivers would write out several rounds of the loop around it, and long programs are slow.
    for (var inner = {{ first }}; inner < {{ step }}u; inner += {{ stride }}u) {
      let a_from = {{ a.from }};
      let b_from = {{ b.from }};
      {{ multiply }}
    }
    workgroupBarrier();
    if next == begin { break; }
  }

  {{ store }}
