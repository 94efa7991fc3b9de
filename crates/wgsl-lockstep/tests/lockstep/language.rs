//! Runs each part of the language, and compares the results with values computed in Rust.

use wgsl_lockstep::{Buffer, Finding, FindingKind, Launch, Shader};

/// Runs a text with two buffers: `out` of 64 words, which are returned, and `a` with the given words. A text that begins with `enable`
/// directives has the line `//head` after them, where the declarations of the buffers are inserted.
#[track_caller]
fn run_groups(text: &str, a: &[u32], groups: [u32; 3]) -> Vec<u32> {
    let head = "@group(0) @binding(0) var<storage, read_write> out: array<u32>;
@group(0) @binding(1) var<storage> a: array<u32>;
";
    let (enable, text) = text.split_once("//head").unwrap_or(("", text));
    let source = format!("{enable}{head}{text}");
    let shader = Shader::parse(&source).unwrap_or_else(|error| panic!("{error}"));
    let mut buffers = [Buffer::zeroed(0, 0, 256), Buffer::from_u32(0, 1, a)];
    let report = shader
        .run(&Launch::new(groups), &mut buffers, &mut ())
        .unwrap_or_else(|error| panic!("{error}"));
    // Results that WGSL leaves open have tests of their own.
    let faults: Vec<String> = report
        .findings
        .iter()
        .filter(|finding| !matches!(finding.kind, FindingKind::Open(_)))
        .map(Finding::to_string)
        .collect();
    assert_eq!(faults, Vec::<String>::new());
    buffers[0].to_u32()
}

#[track_caller]
fn run(text: &str, a: &[u32]) -> Vec<u32> {
    run_groups(text, a, [1, 1, 1])
}

const ONE: &str = "@compute @workgroup_size(1) fn main()";
const FOUR: &str = "@compute @workgroup_size(4) fn main(@builtin(local_invocation_index) i: u32)";

/// Checks the values of expressions of type f32, in which `x(0)`, `x(1)`… are the numbers in `a`.
#[track_caller]
fn assert_floats(expressions: &[(&str, f32)], a: &[f32]) {
    let mut text = format!("fn x(i: u32) -> f32 {{ return bitcast<f32>(a[i]); }}\n{ONE} {{\n");
    for (index, (expression, _)) in expressions.iter().enumerate() {
        text += &format!("    out[{index}] = bitcast<u32>({expression});\n");
    }
    text += "}";
    let bits: Vec<u32> = a.iter().map(|a| a.to_bits()).collect();
    let out = run(&text, &bits);
    for ((expression, expected), found) in expressions.iter().zip(out) {
        let found = f32::from_bits(found);
        let is_close = found == *expected || (found - expected).abs() <= 1e-6 * expected.abs();
        assert!(is_close, "{expression}: {found}, expected {expected}");
    }
}

/// Checks the values of 32-bit expressions, in which `u(0)` and `s(0)` are the first word of `a` as u32 and as i32.
#[track_caller]
fn assert_words(expressions: &[(&str, u32)], a: &[u32]) {
    let mut text = format!(
        "fn u(i: u32) -> u32 {{ return a[i]; }}\nfn s(i: u32) -> i32 {{ return bitcast<i32>(a[i]); }}\n{ONE} {{\n"
    );
    for (index, (expression, _)) in expressions.iter().enumerate() {
        text += &format!("    out[{index}] = bitcast<u32>({expression});\n");
    }
    text += "}";
    let out = run(&text, a);
    for ((expression, expected), found) in expressions.iter().zip(out) {
        assert_eq!(
            found, *expected,
            "{expression}: {found:x}, expected {expected:x}"
        );
    }
}

#[test]
fn operators_of_floats_give_their_f32_results() {
    assert_floats(
        &[
            ("x(0) + x(1)", 1.5 - 2.25),
            ("x(0) - x(1)", 1.5 + 2.25),
            ("x(0) * x(1)", 1.5 * -2.25),
            ("x(0) / x(1)", 1.5 / -2.25),
            ("x(1) % x(0)", -2.25 % 1.5),
            ("-x(0)", -1.5),
            ("select(x(0), x(1), x(0) < x(1))", 1.5),
            ("select(x(0), x(1), x(0) >= x(1))", -2.25),
            (
                "select(1.0, 2.0, x(0) == x(0) && x(0) != x(1) && x(1) <= x(0) && !(x(1) > x(0)))",
                2.0,
            ),
            ("x(0) / x(2)", f32::INFINITY),
        ],
        &[1.5, -2.25, 0.0],
    );
}

#[test]
fn operators_of_integers_wrap_around() {
    let minus = |x: i32| x as u32;
    assert_words(
        &[
            ("u(0) + u(1)", 6),
            ("u(1) * u(1)", 49),
            ("u(1) - u(2)", 7_u32.wrapping_sub(100)),
            ("u(2) / u(1)", 14),
            ("u(2) % u(1)", 2),
            ("u(2) / u(3)", 100),
            ("u(2) % u(3)", 0),
            ("s(4) / s(1)", minus(-2)),
            ("s(4) % s(1)", minus(-6)),
            ("s(4) / s(3)", minus(-20)),
            ("s(5) / s(0)", minus(i32::MIN)),
            ("s(5) % s(0)", 0),
            ("-s(5)", minus(i32::MIN)),
            ("s(4) >> 2u", minus(-5)),
            ("u(4) >> 28u", 15),
            ("u(1) << u(6)", 14),
            ("~u(1)", !7),
            ("(u(1) & 5u) | 8u", 13),
            ("u(1) ^ 2u", 5),
            ("select(0u, 1u, s(4) < s(1) && u(4) > u(1))", 1),
            (
                "select(0u, 1u, s(1) >= s(1) && s(4) <= s(4) && u(1) != u(2))",
                1,
            ),
        ],
        &[u32::MAX, 7, 100, 0, minus(-20), minus(i32::MIN), 33],
    );
}

#[test]
fn conversions_limit_a_value_to_its_new_type() {
    let bits = |x: f32| x.to_bits();
    assert_words(
        &[
            ("u32(bitcast<f32>(u(0)))", 3),
            ("i32(bitcast<f32>(u(1)))", -3_i32 as u32),
            ("u32(bitcast<f32>(u(1)))", 0),
            ("u32(bitcast<f32>(u(2)))", 4_294_967_040),
            ("i32(bitcast<f32>(u(2)))", 2_147_483_520),
            ("i32(-bitcast<f32>(u(2)))", i32::MIN as u32),
            ("u32(bitcast<f32>(u(3)))", 0),
            ("u32(bool(u(0)))", 1),
            ("bitcast<u32>(f32(u(4)))", bits(7.0)),
            ("bitcast<u32>(f32(s(5)))", bits(-7.0)),
            ("bitcast<u32>(f32(u(4) > 3u))", bits(1.0)),
            ("u32(bool(bitcast<f32>(u(0))))", 1),
        ],
        &[
            bits(3.9),
            bits(-3.9),
            bits(1e20),
            bits(f32::NAN),
            7,
            -7_i32 as u32,
        ],
    );
}

#[test]
fn functions_of_floats_equal_those_of_rust() {
    let (a, b, c) = (0.7_f32, -1.3_f32, 2.5_f32);
    assert_floats(
        &[
            ("abs(x(1))", 1.3),
            ("min(x(0), x(1))", b),
            ("max(x(0), x(1))", a),
            ("clamp(x(2), x(1), x(0))", a),
            ("saturate(x(2))", 1.0),
            (
                "sin(x(0)) + cos(x(1)) + tan(x(0))",
                a.sin() + b.cos() + a.tan(),
            ),
            (
                "sinh(x(0)) + cosh(x(1)) + tanh(x(0))",
                a.sinh() + b.cosh() + a.tanh(),
            ),
            (
                "asin(x(0)) + acos(x(0)) + atan(x(1))",
                a.asin() + a.acos() + b.atan(),
            ),
            (
                "asinh(x(1)) + acosh(x(2)) + atanh(x(0))",
                b.asinh() + c.acosh() + a.atanh(),
            ),
            ("atan2(x(1), x(0))", b.atan2(a)),
            (
                "radians(x(2)) + degrees(x(2))",
                c.to_radians() + c.to_degrees(),
            ),
            (
                "ceil(x(1)) + 10.0 * floor(x(1)) + 100.0 * round(x(2)) + 1000.0 * trunc(x(1))",
                -1.0 - 20.0 + 200.0 - 1000.0,
            ),
            ("fract(x(1))", b - b.floor()),
            ("exp(x(1)) + exp2(x(0))", b.exp() + a.exp2()),
            ("log(x(2)) + log2(x(0))", c.ln() + a.log2()),
            ("pow(x(2), x(1))", c.powf(b)),
            ("sqrt(x(2)) + inverseSqrt(x(0))", c.sqrt() + 1.0 / a.sqrt()),
            (
                "sign(x(1)) + step(x(0), x(2)) + 4.0 * step(x(2), x(0))",
                0.0,
            ),
            ("fma(x(0), x(1), x(2))", a.mul_add(b, c)),
            ("mix(x(0), x(1), 0.25)", a * 0.75 + b * 0.25),
            ("smoothstep(0.0, 1.0, x(0))", a * a * (3.0 - 2.0 * a)),
            ("ldexp(x(0), 3)", a * 8.0),
            ("quantizeToF16(x(0))", half::f16::from_f32(a).to_f32()),
            ("modf(x(1)).fract + 10.0 * modf(x(1)).whole", -0.3 - 10.0),
            ("frexp(x(2)).fract + f32(frexp(x(2)).exp)", 2.625),
        ],
        &[a, b, c],
    );
}

#[test]
fn functions_of_vectors_and_their_operators_equal_the_formulas() {
    let v = "vec3(x(0), x(1), x(2))";
    let w = "vec3(x(2), x(0), x(1))";
    let dot = 1.0 * 3.0 + 2.0 * 1.0 + 3.0 * 2.0;
    assert_floats(
        &[
            (&format!("dot({v}, {w})"), dot),
            (&format!("length({v})"), 14_f32.sqrt()),
            (&format!("distance({v}, {w})"), 6_f32.sqrt()),
            (&format!("cross({v}, {w}).x"), 2.0 * 2.0 - 3.0 * 1.0),
            (&format!("cross({v}, {w}).y"), 3.0 * 3.0 - 1.0 * 2.0),
            (&format!("normalize({v}).z"), 3.0 / 14_f32.sqrt()),
            (&format!("faceForward({v}, {v}, {w}).y"), -2.0),
            (&format!("reflect({v}, vec3(0.0, 1.0, 0.0)).y"), -2.0),
            (
                &format!("refract(vec3(0.0, -1.0, 0.0), vec3(0.0, 1.0, 0.0), {v}.x).y"),
                -1.0,
            ),
            (&format!("({v} * 2.0 + {w}).y"), 5.0),
            (&format!("(2.0 / {v}).y"), 1.0),
            (&format!("max({v}, {w}).z"), 3.0),
            (&format!("{v}.zyx.x + {v}.xxyy.w"), 5.0),
            (
                &format!(
                    "select(1.0, 2.0, all({v} < vec3(4.0)) && any({v} > {w}) && !any({v} > vec3(4.0)))"
                ),
                2.0,
            ),
            (&format!("select({v}, {w}, vec3(true, false, true)).x"), 3.0),
            (&format!("mix({v}, {w}, 0.5).x"), 2.0),
            (&format!("{v}[u32(x(0))]"), 2.0),
        ],
        &[1.0, 2.0, 3.0],
    );
    assert_words(
        &[
            ("dot(vec2(u(0), u(1)), vec2(u(1), u(1)))", 5 * 7 + 49),
            ("u32(dot(vec2(s(0)), vec2(s(2))))", -10_i32 as u32),
        ],
        &[5, 7, u32::MAX],
    );
}

#[test]
fn functions_of_integers_count_move_and_limit_bits() {
    assert_words(
        &[
            ("countTrailingZeros(u(0))", 4),
            ("countLeadingZeros(u(0))", 24),
            ("countOneBits(u(0))", 4),
            ("reverseBits(u(0))", 0xf0_u32.reverse_bits()),
            ("firstTrailingBit(u(0))", 4),
            ("firstLeadingBit(u(0))", 7),
            ("firstLeadingBit(u(3))", u32::MAX),
            ("firstLeadingBit(s(2))", 4),
            ("extractBits(u(0), 4u, 3u)", 7),
            ("extractBits(s(0), 4u, 4u)", u32::MAX),
            ("extractBits(u(0), 40u, 4u)", 0),
            ("insertBits(u(0), 5u, 8u, 4u)", 0x5f0),
            ("insertBits(u(0), 5u, 0u, 32u)", 5),
            ("abs(s(2))", 17),
            ("sign(s(2))", u32::MAX),
            ("min(s(2), s(1))", -17_i32 as u32),
            ("max(u(2), u(1))", -17_i32 as u32),
            ("clamp(s(2), -3, 3)", -3_i32 as u32),
            ("clamp(u(0), 3u, 9u)", 9),
        ],
        &[0xf0, 5, -17_i32 as u32, 0],
    );
}

#[test]
fn packed_values_hold_the_rounded_parts() {
    let x = "vec4(0.5, -0.5, 1.0, -2.0)";
    assert_words(
        &[
            (&format!("pack4x8snorm({x} * f32(u(0)))"), 0x817f_c140),
            (&format!("pack4x8unorm({x} * f32(u(0)))"), 0x00ff_0080),
            ("pack2x16snorm(vec2(1.0, -1.0) * f32(u(0)))", 0x8001_7fff),
            ("pack2x16unorm(vec2(1.0, 0.0) * f32(u(0)))", 0xffff),
            ("pack2x16float(vec2(1.0, -2.0) * f32(u(0)))", 0xc000_3c00),
            ("pack4xU8(vec4(1u, 2u, 3u, 260u) * u(0))", 0x0403_0201),
            ("pack4xU8Clamp(vec4(1u, 2u, 3u, 260u) * u(0))", 0xff03_0201),
            ("pack4xI8(vec4(-1, 2, 3, 4) * s(0))", 0x0403_02ff),
            ("pack4xI8Clamp(vec4(-1, 2, 3, -400) * s(0))", 0x8003_02ff),
            ("u32(unpack4x8snorm(u(1)).x * 127.0)", 1),
            ("u32(unpack4x8unorm(u(1)).w * 255.0)", 128),
            ("u32(unpack2x16float(u(2)).y * -1.0)", 2),
            ("unpack4xU8(u(1)).w", 128),
            ("unpack4xI8(u(1)).w", -128_i32 as u32),
            ("dot4U8Packed(u(1), 0x01000002u)", 130),
            ("dot4I8Packed(u(1), 0x01000002u)", -126_i32 as u32),
            (
                "u32(unpack2x16unorm(0xffff0000u * u(0)).y + unpack2x16snorm(0x7fff0000u * u(0)).y)",
                2,
            ),
        ],
        &[1, 0x8000_0001, 0xc000_3c00],
    );
}

#[test]
fn matrices_are_multiplied_transposed_and_added() {
    let m = "mat2x3(x(0), x(1), x(2), x(3), x(4), x(5))";
    assert_floats(
        &[
            (&format!("({m} * vec2(1.0, 2.0)).z"), 3.0 + 12.0),
            (&format!("(vec3(1.0, 2.0, 3.0) * {m}).y"), 4.0 + 10.0 + 18.0),
            (&format!("transpose({m})[2].y"), 6.0),
            (&format!("(transpose({m}) * {m})[1].x"), 4.0 + 10.0 + 18.0),
            (&format!("({m} + {m})[1].y"), 10.0),
            (&format!("(2.0 * {m} * 2.0 - {m})[0].z"), 9.0),
            (
                "determinant(mat3x3(x(1), x(0), x(0), x(0), x(2), x(0), x(0), x(0), x(3)))",
                2.0 * 11.0 - 3.0 - 2.0,
            ),
            ("determinant(mat2x2(x(0), x(1), x(2), x(3)))", -2.0),
        ],
        &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
    );
}

#[test]
fn structs_have_the_layout_of_wgsl_in_memory() {
    let source = "enable f16;
@group(0) @binding(0) var<storage, read_write> out: array<u32>;
struct Inner { x: f32, v: vec3<f32>, n: u32, }
struct Outer { h: vec2<f16>, inner: array<Inner, 2>, m: mat2x3<f32>, tail: array<vec3<u32>>, }
@group(0) @binding(2) var<storage, read_write> s: Outer;
@group(0) @binding(3) var<uniform> u: Inner;
var<workgroup> w: Inner;
@compute @workgroup_size(1) fn main() {
    s.h = vec2(1.0h, 2.0h);
    s.inner[1] = Inner(u.x, vec3(1.0, 2.0, u.v.z), 9u);
    w = s.inner[1];
    let c = w;
    s.m[1] = c.v;
    s.m[0].y = 5.0;
    s.tail[1] = vec3(7u, 8u, c.n);
    out[0] = arrayLength(&s.tail);
    var copy = s.inner;
    let at = u32(u.x);
    copy[at].v.y += 1.0;
    out[1] = u32(copy[at].v.y);
}";
    let shader = Shader::parse(source).expect("is right");
    // In `Inner`, x is at byte 0, v at byte 16 and n at byte 28.
    let uniform = [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 3.0, 0.0];
    // In `Outer`, h takes 4 bytes and padding up to 16, then two `Inner` of 32 bytes, a matrix of 32, and the tail with 40.
    let mut buffers = [
        Buffer::zeroed(0, 0, 8),
        Buffer::zeroed(0, 2, 16 + 64 + 32 + 40),
        Buffer::from_f32(0, 3, &uniform),
    ];
    let report = shader
        .run(&Launch::new([1, 1, 1]), &mut buffers, &mut ())
        .expect("runs");
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    assert_eq!(buffers[0].to_u32(), [2, 3]);
    let words = buffers[1].to_u32();
    let floats = buffers[1].to_f32();
    // The two halves of h are 1 and 2.
    assert_eq!(words[0], 0x4000_3c00);
    // The second `Inner` begins at byte 48, its vector 16 bytes later.
    assert_eq!(
        (floats[12], &floats[16..19], words[19]),
        (1.0, &[1.0, 2.0, 3.0][..], 9)
    );
    // The columns of the matrix begin at bytes 80 and 96.
    assert_eq!((floats[21], &floats[24..27]), (5.0, &[1.0, 2.0, 3.0][..]));
    // The second vector of the tail begins at byte 128.
    assert_eq!(words[32..35], [7, 8, 9]);
}

#[test]
fn every_result_in_f16_is_rounded() {
    let text = format!(
        "enable f16;\n//head
{ONE} {{
    let x = f16(f32(a[0]) / 3.0);
    let y = x * x + 1.0h;
    out[0] = bitcast<u32>(f32(y));
    let z = vec2<f16>(unpack2x16float(a[1]));
    out[1] = bitcast<u32>(f32(z.x + sqrt(z.y)));
}}"
    );
    let rounded = |x: f32| half::f16::from_f32(x).to_f32();
    let x = rounded(10.0 / 3.0);
    let y = rounded(rounded(x * x) + 1.0);
    let z = rounded(rounded(2_f32.sqrt()) + 1.0);
    // The second word packs 1 and 2.
    let out = run(&text, &[10, 0x4000_3c00]);
    assert_eq!(out[..2], [y.to_bits(), z.to_bits()]);
}

#[test]
fn lanes_follow_their_own_branches_and_loops() {
    let text = format!(
        "{FOUR} {{
    var n = 0u;
    switch i {{
        case 0u: {{ n = 10u; }}
        case 1u, 2u: {{ if (i == 2u) {{ break; }} n = 20u; }}
        default: {{ n = 30u; }}
    }}
    out[i] = n;
    var sum = 0u;
    for (var k = 0u; k < 10u; k++) {{
        if (k % 2u == i % 2u) {{ continue; }}
        if (k > 5u + i) {{ break; }}
        switch k {{ case 3u: {{ continue; }} default: {{ }} }}
        sum += k;
    }}
    out[4u + i] = sum;
    var turns = 0u;
    loop {{
        turns += 1u;
        continuing {{ turns += 10u; break if turns > 20u * i; }}
    }}
    out[8u + i] = turns;
    var left = i;
    while (left > 0u) {{ left -= 1u; out[12u + i] += 2u; }}
}}"
    );
    let out = run(&text, &[0]);
    assert_eq!(out[..4], [10, 20, 0, 30]);
    let sum = |i: u32| {
        (0..10)
            .filter(|k| k % 2 != i % 2 && *k != 3)
            .take_while(|k| *k <= 5 + i)
            .sum::<u32>()
    };
    assert_eq!(out[4..8], [sum(0), sum(1), sum(2), sum(3)]);
    assert_eq!(out[8..12], [11, 22, 44, 66]);
    assert_eq!(out[12..16], [0, 2, 4, 6]);
}

#[test]
fn functions_change_variables_through_pointers() {
    let text = format!(
        "struct P {{ x: u32, y: array<u32, 3>, }}
var<private> calls: u32 = 5u;
fn add(p: ptr<function, u32>, x: u32) {{ if (x == 2u) {{ return; }} *p += x; }}
fn twice(p: ptr<function, array<u32, 3>>, i: u32) -> u32 {{
    calls += 1u;
    var seen = (*p)[i];
    if (i > 1u) {{ return 100u; }}
    add(&seen, i);
    (*p)[i] = seen * 2u;
    return seen;
}}
fn count(p: ptr<private, u32>) {{ *p += 1u; }}
{FOUR} {{
    var p = P(1u, array(3u, 4u, 5u));
    let q = &p.y;
    out[i] = twice(q, i % 3u);
    add(&(*q)[1], i);
    count(&calls);
    out[4u + i] = p.y[0] + 10u * p.y[1] + calls * 100u;
}}"
    );
    let out = run(&text, &[0]);
    assert_eq!(out[..4], [3, 5, 100, 3]);
    assert_eq!(
        out[4..8],
        [6 + 40 + 700, 3 + 110 + 700, 3 + 40 + 700, 6 + 70 + 700]
    );
}

#[test]
fn atomic_functions_return_the_old_value_lane_by_lane() {
    let text = format!("struct Both {{ n: atomic<u32>, m: atomic<i32>, }}
var<workgroup> both: Both;
{FOUR} {{
    out[i] = atomicAdd(&both.n, i + 1u);
    atomicMin(&both.m, -i32(i));
    workgroupBarrier();
    let change = atomicCompareExchangeWeak(&both.n, 10u, 50u + i);
    out[4u + i] = change.old_value * 2u + u32(change.exchanged);
    workgroupBarrier();
    if (i == 0u) {{
        out[8] = u32(-atomicLoad(&both.m));
        out[9] = atomicExchange(&both.n, 3u) + atomicOr(&both.n, 8u);
        out[10] = atomicXor(&both.n, 1u) + atomicAnd(&both.n, 6u) + atomicSub(&both.n, 1u) + atomicMax(&both.n, 9u);
        atomicStore(&both.n, 77u);
        out[11] = atomicLoad(&both.n);
    }}
}}");
    let out = run(&text, &[0]);
    assert_eq!(out[..4], [0, 1, 3, 6]);
    assert_eq!(out[4..8], [21, 100, 100, 100]);
    assert_eq!(out[8..12], [3, 50 + 3, 11 + 10 + 2 + 1, 77]);
}

#[test]
fn built_in_values_name_the_invocation() {
    let text = "struct In { @builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) n: vec3<u32>, }
@compute @workgroup_size(2, 2, 1) fn main(in: In, @builtin(workgroup_id) g: vec3<u32>, @builtin(local_invocation_id) l: vec3<u32>, @builtin(local_invocation_index) i: u32) {
    out[(g.x + g.y * 2u) * 4u + i] = in.id.x + 10u * in.id.y + 100u * in.n.x + 1000u * l.y;
}";
    let out = run_groups(text, &[0], [2, 2, 1]);
    assert_eq!(out[..4], [200, 201, 1210, 1211]);
    assert_eq!(out[12..16], [222, 223, 1232, 1233]);
}

#[test]
fn constants_can_be_indexed_and_copied() {
    let text = format!(
        "struct S {{ a: u32, v: vec2<u32>, }}
const S0 = S(3u, vec2(4u, 5u));
const T = array<array<u32, 2>, 2>(array(1u, 2u), array(3u, 4u));
var<private> p: array<u32, 3> = array(7u, 8u, 9u);
{FOUR} {{
    var s = S0;
    let t = T;
    s.v.y += T[i / 2u][i % 2u];
    out[i] = s.v.y + t[i % 2u][1] * 10u + p[min(i, 2u)] * 100u;
    const LOCAL = vec3(1u, 2u, 3u);
    var v = LOCAL;
    v[i % 3u] = 9u;
    out[4u + i] = v.x * 100u + v.y * 10u + v.z;
}}"
    );
    let out = run(&text, &[0]);
    assert_eq!(out[..4], [726, 847, 928, 949]);
    assert_eq!(out[4..8], [923, 193, 129, 923]);
}

#[test]
fn variables_of_any_type_keep_their_values() {
    let text = format!("//head
struct Deep {{ flags: array<bool, 3>, m: array<mat3x2<f32>, 2>, }}
var<workgroup> flag: bool;
var<workgroup> deep: array<Deep, 4>;
var<private> mine: array<vec2<bool>, 2>;
fn make(i: u32) -> Deep {{
    var d: Deep;
    for (var k = 0u; k < 3u; k++) {{
        d.flags[k] = k == i;
        if (k == i) {{ return d; }}
        let p = &d.m[1][k];
        *p = vec2(f32(k), f32(i));
        (*p).x += 10.0;
    }}
    return d;
}}
{FOUR} {{
    if (i == 2u) {{ flag = true; }}
    deep[i] = make(i);
    mine[i % 2u].y = i > 1u;
    workgroupBarrier();
    let other = deep[i ^ 1u];
    out[i] = u32(flag) + 2u * u32(i < 3u && other.flags[min(i, 2u)]) + 4u * u32(i < 3u && other.flags[min(i ^ 1u, 2u)] == mine[i % 2u].y);
    out[4u + i] = u32(other.m[1][2].x * 100.0 + other.m[1][0].x * 10.0 + other.m[1][0].y);
    switch i {{
        default: {{ out[8u + i] = 5u; }}
        case 2u, 3u: {{ out[8u + i] = 6u; }}
    }}
    let length = arrayLength(&a);
    out[12u + i] = length;
}}");
    let out = run(&text, &[0; 7]);
    let make = |i: u32| {
        let mut flags = [false; 3];
        let mut m = [[0.0; 2]; 3];
        for k in 0..3 {
            flags[k as usize] = k == i;
            if k == i {
                return (flags, m);
            }
            m[k as usize] = [k as f32 + 10.0, i as f32];
        }
        (flags, m)
    };
    for i in 0..4_u32 {
        let (flags, m) = make(i ^ 1);
        let at = |k: u32| flags.get(k as usize).copied().unwrap_or(false);
        let third = i < 3 && flags[((i ^ 1) as usize).min(2)] == (i > 1);
        assert_eq!(
            out[i as usize],
            1 + 2 * u32::from(i < 3 && at(i)) + 4 * u32::from(third),
            "{i}"
        );
        assert_eq!(
            out[4 + i as usize],
            (m[2][0] * 100.0 + m[0][0] * 10.0 + m[0][1]) as u32
        );
        assert_eq!(
            (out[8 + i as usize], out[12 + i as usize]),
            (5 + u32::from(i > 1), 7)
        );
    }
}
