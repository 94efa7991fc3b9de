
  // The upper half of {{ 2 * half }} slices passes its sums to the lower half.
  let at_{{ half }} = slice % {{ half }}u * {{ of_slice }}u + number;
  if slice >= {{ half }}u && slice < {{ 2 * half }}u { put_sums(&sums, at_{{ half }}); }
  workgroupBarrier();
  if slice < {{ half }}u { add_sums(&sums, at_{{ half }}); }
  workgroupBarrier();
