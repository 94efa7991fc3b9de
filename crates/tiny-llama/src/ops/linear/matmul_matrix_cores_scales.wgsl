

  // If the largest magnitude has exponent e, the scale is 2^(14 - e): just below f16's largest number.
  if lane < 2u { atomicStore(&bits[lane], 0u); }
  workgroupBarrier();
  {{ largest }}
  workgroupBarrier();
  {{ factors }}

