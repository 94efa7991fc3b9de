
  // The sums of squares of the block's rows, each from the invocations of {{ across }} subgroups that have a part of it.
  {{ put }}
  workgroupBarrier();
  if lane < {{ rows }}u{{ inside }} {
    let half = lane % 16u / 8u;
    let which = {{ which }};
    let first = {{ first }} * 32u + lane % 8u * 4u;
    var squares = 0.0;
    for (var i = 0u; i < {{ 4 * across }}u; i += 1u) {
      squares += tiles[first + i / 4u * 32u + i % 4u + which / 4u * {{ threads }}u][which % 4u];
    }
    squares{{ n }}[group.x * {{ height }}u + row + lane] = squares;
  }
