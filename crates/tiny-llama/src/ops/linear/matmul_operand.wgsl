{{ reads }}

// Loads an invocation's vectors of {{ upper }} for a step, and copies them to workgroup memory.
fn load_{{ name }}{{ n }}(line: u32, vector: u32, end: u32, lane: u32) -> array<vec4<f32>, {{ held }}> {
  {{ loads }}
}
fn stage_{{ name }}{{ n }}(next: array<vec4<f32>, {{ held }}>, lane: u32) {
  {{ place }}
  {{ stages }}
}
