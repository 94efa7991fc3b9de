{# The function `name`: it gives every invocation the sum of one value of each, or the highest of them. It needs `shares`. First 16
   invocations combine some values each. Then every invocation combines these 16 results, always in one order. #}
{% macro over_workgroup(name, highest=false) %}
{% macro combine(all, more) %}{{ all ~ " = max(" ~ all ~ ", " ~ more ~ ");" if highest else all ~ " += " ~ more ~ ";" }}{% endmacro %}
fn {{ name }}(value: f32, lane: u32) -> f32 {
  workgroupBarrier();
  shares[lane] = value;
  workgroupBarrier();
  if lane < 16u {
    var part = shares[lane];
{% for i in range(16, threads, 16) %}
    {{ combine("part", "shares[lane + " ~ i ~ "u]") }}
{% endfor %}
    shares[{{ threads }}u + lane] = part;
  }
  workgroupBarrier();
  var all = shares[{{ threads }}u];
{% for i in range(1, 16) %}
  {{ combine("all", "shares[" ~ (threads + i) ~ "u]") }}
{% endfor %}
  return all;
}
{% endmacro %}
{# The sum of a vector's values. #}
{% macro across(v) %}{{ v ~ ".x + " ~ v ~ ".y + " ~ v ~ ".z + " ~ v ~ ".w" if lanes == 4 else v }}{% endmacro %}
