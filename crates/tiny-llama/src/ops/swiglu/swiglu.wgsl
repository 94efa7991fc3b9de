{% include "swiglu/activation.wgsl" %}


{% include "swiglu/gradients.wgsl" %}
