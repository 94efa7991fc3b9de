
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
  // Where this invocation's first vector of A in a step is, in memory and in workgroup memory; and its first of B.
  {{ places }}
  {{ a.first_loads }}
  {{ b.first_loads }}
{{ norm }}
  loop {
    // Copies registers to workgroup memory.
    {{ a.stage }}
    {{ b.stage }}
{{ load }}
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
