

  // If the largest magnitude has exponent e, the scale is 2^(14 - e): just below f16's largest number.
  if lane < 2u { atomicStore(&bits[lane], 0u); }
  workgroupBarrier();
  for (var i = {{ a.start }}u + lane; i < {{ a.end }}u; i += {{ threads }}u) { atomicMax(&bits[0], bitcast<u32>(largest[i])); }
  for (var i = {{ b.start }}u + lane; i < {{ b.end }}u; i += {{ threads }}u) { atomicMax(&bits[1], bitcast<u32>(largest[i])); }
  workgroupBarrier();
  let a_exponent = clamp(atomicLoad(&bits[0]) >> 23u, 15u, 254u);
  let a_scale = power_of_two(268u - a_exponent);
  let a_inverse = power_of_two(a_exponent - 14u);
  let b_exponent = clamp(atomicLoad(&bits[1]) >> 23u, 15u, 254u);
  let b_scale = power_of_two(268u - b_exponent);
  let b_inverse = power_of_two(b_exponent - 14u);

