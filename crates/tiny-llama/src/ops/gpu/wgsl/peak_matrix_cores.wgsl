// The peak of the matrix cores: repeats sum[i, j] = a[i]·b[j] + sum[i, j] on 16×16 matrices that stay in registers.
enable f16;
enable wgpu_cooperative_matrix;

@group(0) @binding(0) var<storage, read_write> out: array<f32>;
var<workgroup> operands: array<f16, {{ operands * 256 }}>;

@compute @workgroup_size({{ threads }})
fn main(@builtin(local_invocation_index) lane: u32) {
  for (var i = lane; i < {{ operands * 256 }}u; i += {{ threads }}u) { operands[i] = f16(f32(i % 61u) * 1e-3); }
  workgroupBarrier();
{% for i in range(operands) %}
  let a{{ i }} = coopLoadT<coop_mat16x16<f16, A>>(&operands[{{ i * 256 }}], 16u);
  let b{{ i }} = coopLoadT<coop_mat16x16<f16, B>>(&operands[{{ i * 256 }}], 16u);
{% endfor %}
{% for i in range(operands) %}{% for j in range(operands) %}
  var sum{{ i }}{{ j }} = coop_mat16x16<f32, C>();
{% endfor %}{% endfor %}
  for (var round = 0u; round < {{ rounds }}u; round += 1u) {
{% for i in range(operands) %}{% for j in range(operands) %}
    sum{{ i }}{{ j }} = coopMultiplyAdd(a{{ i }}, b{{ j }}, sum{{ i }}{{ j }});
{% endfor %}{% endfor %}
  }
{% for i in range(operands) %}{% for j in range(operands) %}
  coopStoreT(sum{{ i }}{{ j }}, &out[lane / 32u * {{ operands * operands * 256 }}u + {{ (i * operands + j) * 256 }}u], 16u);
{% endfor %}{% endfor %}
}
