
  // 1/rms of the block's rows, and this block's share of y. Its loads do not wait for 1/rms.
  {{ reads }}
  if lane < {{ rows }}u {
    let of_row = {{ row }};
    let squares = {{ squares }};
    let r = 1.0 / sqrt(squares / {{ inner }}.0 + {{ eps }});
    tiles[lane] = vec4<f32>(r);
    if group.x == 0u{{ inside }} { inverse{{ n }}[of_row] = r; }
  }
  workgroupBarrier();
  {{ inverses }}
  {{ stores }}

