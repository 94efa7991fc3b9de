

// Reads four values of a line; zeros past its ends.
fn read_{{ name }}{{ n }}(line: u32, vector: u32, end: u32) -> vec4<f32> {
  var four = vec4<f32>();
  {{ four }}
  return four;
}
