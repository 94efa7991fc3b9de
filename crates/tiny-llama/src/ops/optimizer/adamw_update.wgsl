// One AdamW step of {{ slots | length }} parameters. (Loshchilov and Hutter, 2019, arXiv 1711.05101.)
//
// The plain loop:
//
//   for each parameter p with its gradient g and moments m and v, and each value i:
//     g[i] = g[i] * unscale
//     m[i] = beta1 * m[i] + (1 - beta1) * g[i]
//     v[i] = beta2 * v[i] + (1 - beta2) * g[i]²
//     p[i] = p[i] * (1 - rate * decay) - rate * (m[i] / clock[0]) / (sqrt(v[i] / clock[1]) + eps)
//
// where clock has 1 - beta1^t and 1 - beta2^t at step t, and unscale undoes loss scaling; where it is 0, the step is left out.
//
// 1. One launch for many parameters: each has a range of workgroups.
// 2. An invocation updates {{ items }} vectors, {{ threads }} apart, so that several loads are on their way.
{% if copies %}
// 3. f16 copies of the parameters, which products read, are written here, too.
enable f16;
{% endif %}
{% set values = "vec4<f32>" if lanes == 4 else "f32" %}
const beta1 = {{ beta1 }}f;
const beta2 = {{ beta2 }}f;
const rest1 = {{ rest1 }}f;
const rest2 = {{ rest2 }}f;
const rate = {{ rate }}f;
const kept = 1.0f - {{ decay }}f;
const eps = {{ eps }}f;

// m, v and p after a step, where `step` is the rate over the first clock, and `root` 1 over the root of the second.
fn updated(g: {{ values }}, m: {{ values }}, v: {{ values }}, p: {{ values }}, step: f32, root: f32) -> array<{{ values }}, 3> {
  let new_m = m * beta1 + g * rest1;
  let new_v = v * beta2 + g * g * rest2;
  return array<{{ values }}, 3>(new_m, new_v, p * kept - step * new_m / (sqrt(new_v) * root + eps));
}

{% include "gpu/wgsl/bindings.wgsl" %}

@compute @workgroup_size({{ threads }})
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let place = id.y * {{ groups[0] }}u + id.x;
  let unscale = scale[1];
  if unscale == 0.0 { return; }
  let step = rate / clock[0];
  let root = 1.0 / sqrt(clock[1]);
{% for slot in slots %}
{% set n = loop.index0 %}
{% set copied = "vec4<f16>" if lanes == 4 else "f16" %}
  if place >= {{ slot.begin }}u && place < {{ slot.end }}u {
    let first = (place - {{ slot.begin }}u) * {{ threads * items }}u + lane;
    for (var item = 0u; item < {{ items }}u; item += 1u) {
      let i = first + item * {{ threads }}u;
      if i >= {{ slot.size }}u { break; }
      let next = updated(grad{{ n }}[i] * unscale, m{{ n }}[i], v{{ n }}[i], param{{ n }}[i], step, root);
      m{{ n }}[i] = next[0];
      v{{ n }}[i] = next[1];
      param{{ n }}[i] = next[2];{{ " copy" ~ n ~ "[i] = " ~ copied ~ "(next[2]);" if copies }}
    }
  }
{% endfor %}
}
