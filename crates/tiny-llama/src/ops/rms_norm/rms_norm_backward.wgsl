// The gradients of y = x·r·gain, where r is kept from the forward pass.
//
// The plain loop:
//
//   for each row n:
//     g[c] = dy[n, c] * gain[c]                         for each column c
//     mean = Σ_c g[c] * x[n, c] / {{ columns * lanes }}
//     dx[n, c] = g[c] * r[n] - x[n, c] * mean * r[n]³{{ " + residual[n, c]" if has_residual }}
//   for each column c:
//     dgain[c] = Σ_n dy[n, c] * x[n, c] * r[n]
//
// 1. One launch for both. The first workgroups have columns of dgain, which take longest; the others have a row of dx each.
// 2. Registers. A row's g stays in registers; its sum passes through workgroup memory.
// 3. Slices. {{ threads // wide }} groups of invocations add every {{ threads // wide }}th row of a workgroup's {{ wide }} vectors of dgain, and their sums are added at the end.
{% from "gpu/wgsl/workgroup.wgsl" import over_workgroup, across %}
{% include "gpu/wgsl/bindings.wgsl" %}
var<workgroup> shares: array<f32, {{ threads + 16 }}>;
{% set v = "vec4<f32>" if lanes == 4 else "f32" %}
var<workgroup> sums: array<{{ v }}, {{ threads }}>;

{{ over_workgroup("sum_of_workgroup") }}
{% set slices = threads // wide %}
@compute @workgroup_size({{ threads }})
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let place = id.y * {{ groups[0] }}u + id.x;
  if place < {{ of_gain }}u {
    let column = place * {{ wide }}u + lane % {{ wide }}u;
    var sum = {{ v }}();
    if column < {{ columns }}u {
      for (var first = lane / {{ wide }}u; first < {{ rows }}u; first += {{ slices * rows_at_once }}u) {
        // {{ rows_at_once }} rows at once, so that their loads do not wait for each other.
{% for i in range(rows_at_once) %}
        { let row = first + {{ i * slices }}u;
          {{ "if row < " ~ rows ~ "u " if rows % (slices * rows_at_once) != 0 }}{
            let at = row * {{ columns }}u + column;
            sum += dy[at] * x[at] * inverse[row];
          } }
{% endfor %}
      }
    }
    sums[lane] = sum;
    workgroupBarrier();
    for (var half = {{ threads // 2 }}u; half >= {{ wide }}u; half /= 2u) {
      if lane < half { sums[lane] += sums[lane + half]; }
      workgroupBarrier();
    }
    if lane < {{ wide }}u && column < {{ columns }}u { dgain[column] = sums[lane]; }
  } else if place < {{ of_gain + rows }}u {
    let row = place - {{ of_gain }}u;
    let start = row * {{ columns }}u + lane;
    var products = {{ v }}();
{% for i in range(owned) %}
    var g{{ i }} = {{ v }}();
    {{ "if lane + " ~ i * threads ~ "u < " ~ columns ~ "u " if (i + 1) * threads > columns }}{
      let at = start + {{ i * threads }}u;
      g{{ i }} = dy[at] * gain[lane + {{ i * threads }}u];
      products += g{{ i }} * x[at];
    }
{% endfor %}
    let r = inverse[row];
    let along_x = sum_of_workgroup({{ across("products") }}, lane) / {{ columns * lanes }}.0 * r * r * r;
{% for i in range(owned) %}
    {{ "if lane + " ~ i * threads ~ "u < " ~ columns ~ "u " if (i + 1) * threads > columns }}{
      let at = start + {{ i * threads }}u;
      dx[at] = g{{ i }} * r - x[at] * along_x{{ " + residual[at]" if has_residual }};
    }
{% endfor %}
  }
}
