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
{% include "gpu/wgsl/bindings.wgsl" %}
const beta1 = {{ beta1 }}f;
const beta2 = {{ beta2 }}f;
const rest1 = {{ rest1 }}f;
const rest2 = {{ rest2 }}f;
const rate = {{ rate }}f;
const kept = 1.0f - {{ decay }}f;
const eps = {{ eps }}f;

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
      let g = grad{{ n }}[i] * unscale;
      let m = m{{ n }}[i] * beta1 + g * rest1;
      let v = v{{ n }}[i] * beta2 + g * g * rest2;
      let p = param{{ n }}[i] * kept - step * m / (sqrt(v) * root + eps);
      m{{ n }}[i] = m;
      v{{ n }}[i] = v;
      param{{ n }}[i] = p;
{% if copies %}
      copy{{ n }}[i] = {{ copied }}(p);
{% endif %}
    }
  }
{% endfor %}
}
