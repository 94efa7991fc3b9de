

// Passes a tile of sums through workgroup memory. An invocation gets four values of {{ what }}.
fn tile_values{{ n }}(sum: Sum, lane: u32{{ r }}) -> {{ values }} {
  coopStoreT(sum, &tiles[lane / 32u * 64u], 4u);
  workgroupBarrier();
  let at = {{ at }} + lane % 32u;
  let values = {{ values }}({{ read }});
  workgroupBarrier();
  return values;
}
