
  // The upper half of {{ 2 * half }} slices passes its sums to the lower half.
  {
    let at = slice % {{ half }}u * {{ of_slice }}u + number;
    if slice >= {{ half }}u && slice < {{ 2 * half }}u {
      {{ put }}
    }
    workgroupBarrier();
    if slice < {{ half }}u {
      {{ add }}
    }
    workgroupBarrier();
  }
