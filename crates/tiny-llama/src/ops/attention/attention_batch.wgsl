{# The sequence's first row and the head of workgroup y. A sequence has `count` heads: query heads, or key and value heads. #}
{% macro place_in_batch(count) %}
  let sequence = group.y / {{ count }}u * {{ context }}u;
{% if count == heads %}
  let head = group.y % {{ count }}u;
  let kv_head = head / {{ heads // kv_heads }}u;
{% else %}
  let kv_head = group.y % {{ count }}u;
{% endif %}
{% endmacro %}
