
  // The upper half of the slices passes its sums to the lower half, until one slice has all.
  for (var half = {{ half }}u; half > 0u; half /= 2u) {
    let at = slice % half * {{ of_slice }}u + number;
    if slice >= half && slice < 2u * half {
      {{ put }}
    }
    workgroupBarrier();
    if slice < half {
      sums = Block({{ add }});
    }
    workgroupBarrier();
  }
  if slice > 0u { return; }
