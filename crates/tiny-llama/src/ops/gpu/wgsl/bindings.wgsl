{% for binding in bindings %}
@group(0) @binding({{ loop.index0 }}) var<storage, read_write> {{ binding.name }}: array<{{ binding.element }}>;
{% endfor %}
