//! One kernel for each kind of finding, and for each way in which a race can hide.

use wgsl_lockstep::{
    AccessKind, Buffer, Finding, FindingKind, Launch, LaunchLimits, LaunchReport, Shader,
};

const HEAD: &str = "@group(0) @binding(0) var<storage, read_write> a: array<f32>;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;
";
const HEAD_LINES: u32 = 2;

#[track_caller]
fn parse(source: &str) -> Shader {
    Shader::parse(source).unwrap_or_else(|error| panic!("{error}\n{source}"))
}

/// Runs a kernel whose text follows `HEAD`, with 64 numbers in `a` and in `out`.
fn run_groups(kernel: &str, groups: u32) -> LaunchReport {
    let shader = parse(&format!("{HEAD}{kernel}"));
    let numbers: Vec<f32> = (0..64).map(|at| at as f32).collect();
    let mut buffers = [
        Buffer::from_f32(0, 0, &numbers),
        Buffer::from_f32(0, 1, &numbers),
    ];
    let report = shader.run(&Launch::new([groups, 1, 1]), &mut buffers, &mut ());
    report.unwrap_or_else(|error| panic!("{error}"))
}

fn run(kernel: &str) -> LaunchReport {
    run_groups(kernel, 1)
}

fn kinds(report: &LaunchReport) -> Vec<FindingKind> {
    report.findings.iter().map(|finding| finding.kind).collect()
}

/// Returns the only finding about a kernel, which is of this kind. The line is counted from the start of `kernel`.
#[track_caller]
fn only_finding(kernel: &str, kind: FindingKind, line: u32) -> Finding {
    let report = run(kernel);
    assert_eq!(kinds(&report), [kind], "{:?}", report.findings);
    let finding = report.findings[0].clone();
    assert_eq!(finding.location.line, line + HEAD_LINES, "{finding}");
    finding
}

#[track_caller]
fn assert_no_finding(kernel: &str) {
    let findings = run(kernel).findings;
    assert!(findings.is_empty(), "{findings:?}");
}

const MAIN: &str = "@compute @workgroup_size(32) fn main(@builtin(local_invocation_index) i: u32)";

#[test]
fn a_missing_barrier_in_a_reduction_is_a_race() {
    let text = format!(
        "var<workgroup> sums: array<f32, 32>;
{MAIN} {{
    sums[i] = a[i];
    workgroupBarrier();
    for (var half = 16u; half > 0u; half /= 2u) {{
        if (i < half) {{
            sums[i] += sums[i + half];
        }}
    }}
    if (i == 0u) {{ out[0] = sums[0]; }}
}}"
    );
    let finding = only_finding(&text, FindingKind::Race, 7);
    let other = finding.other.expect("two accesses");
    assert_eq!(other.location.line, 7 + HEAD_LINES);
    assert_ne!(other.invocation.lane, finding.invocation.lane);
    assert_eq!(finding.variable.as_deref(), Some("sums"));
    // In the second round, lane 0 reads sums[8], which lane 8 wrote in the first.
    assert_eq!(finding.element.as_deref(), Some("sums[8]"));
    assert_no_finding(&text.replace(
        "        }\n    }",
        "        }\n        workgroupBarrier();\n    }",
    ));
}

#[test]
fn a_race_names_the_member_of_a_struct() {
    let text = format!(
        "struct Pair {{ left: f32, right: vec3<f32>, }}
var<workgroup> pairs: array<Pair, 32>;
{MAIN} {{
    pairs[i].left = a[i];
    pairs[i].right = vec3(a[i]);
    out[i] = pairs[i ^ 1u].right.y + pairs[i].left;
}}"
    );
    let finding = only_finding(&text, FindingKind::Race, 6);
    assert_eq!(finding.element.as_deref(), Some("pairs[1].right.y"));
    assert_eq!(finding.access, Some(AccessKind::Load));
    assert_eq!(finding.other.expect("a store").access, AccessKind::Store);
    // Another member is no race.
    assert_no_finding(&text.replace("[i ^ 1u].right.y", "[i].right.y"));
}

#[test]
fn stores_in_different_components_of_a_vector_are_no_race() {
    let text = format!(
        "var<workgroup> v: array<vec4<f32>, 8>;
{MAIN} {{
    v[i / 4u][i % 4u] = a[i];
    workgroupBarrier();
    out[i] = v[i / 4u].y;
}}"
    );
    let finding = only_finding(&text, FindingKind::VectorComponent, 3);
    assert_eq!(finding.element.as_deref(), Some("v[0].y"));
    let same = text.replace("[i % 4u] = a[i]", ".x = a[i]");
    let report = run(&same.replace("].y", "].x"));
    assert_eq!(kinds(&report), [FindingKind::Race]);
    assert_eq!(report.findings[0].element.as_deref(), Some("v[0].x"));
    // Another lane reads one component while the whole vector is written.
    let text = format!(
        "var<workgroup> v: array<vec4<f32>, 32>;
{MAIN} {{
    v[i] = vec4(a[i]);
    out[i] = v[(i + 1u) % 32u].z;
}}"
    );
    assert_eq!(
        only_finding(&text, FindingKind::Race, 4).element.as_deref(),
        Some("v[1].z")
    );
}

#[test]
fn an_index_from_memory_can_race() {
    let text = format!(
        "var<workgroup> t: array<f32, 32>;
var<workgroup> k: array<u32, 32>;
{MAIN} {{
    k[i] = i / 2u;
    workgroupBarrier();
    t[k[i]] = a[i];
    workgroupBarrier();
    out[i] = t[k[i]];
}}"
    );
    only_finding(&text, FindingKind::Race, 6);
    assert_no_finding(&text.replace("i / 2u", "31u - i"));
}

#[test]
fn a_race_inside_functions_names_their_lines() {
    let text = format!(
        "var<workgroup> t: array<f32, 32>;
fn main_index(i: u32) -> u32 {{ return i; }}
fn put(i: u32, x: f32) {{
    t[i] = x;
}}
{MAIN} {{
    put(main_index(i), a[i]);
    out[i] = t[main_index(31u - i)];
}}"
    );
    assert_eq!(
        only_finding(&text, FindingKind::Race, 8)
            .other
            .expect("a store")
            .location
            .line,
        4 + HEAD_LINES
    );
}

#[test]
fn a_buffer_that_only_a_function_writes_can_race() {
    only_finding(
        "fn put(i: u32, x: f32) { a[i] = x; }
@compute @workgroup_size(32) fn main(@builtin(local_invocation_index) i: u32) {
    put(i, 1.0);
    out[i] = a[31u - i];
}",
        FindingKind::Race,
        4,
    );
}

#[test]
fn invocations_race_over_storage_without_a_barrier() {
    only_finding(
        &format!("{MAIN} {{\n    out[i / 4u] += a[i];\n}}"),
        FindingKind::Race,
        2,
    );
    let text = format!(
        "{MAIN} {{\n    out[i] = a[i];\n    if (i > 0u) {{\n        out[i - 1u] = out[i - 1u];\n    }}\n}}"
    );
    let report = run(&text);
    assert!(kinds(&report).contains(&FindingKind::Race));
    assert!(report.findings.iter().all(|finding| {
        finding
            .other
            .as_ref()
            .is_some_and(|other| [2, 4].contains(&(other.location.line - HEAD_LINES)))
    }));
    // Accesses of one statement race, whatever the order of lanes.
    only_finding(
        &format!("{MAIN} {{\n    out[i] = out[i + 1u];\n}}"),
        FindingKind::Race,
        2,
    );
    only_finding(
        &format!("{MAIN} {{\n    out[i + 1u] = out[i];\n}}"),
        FindingKind::Race,
        2,
    );
    assert_no_finding(&format!("{MAIN} {{\n    out[i] += a[i ^ 1u];\n}}"));
}

#[test]
fn a_barrier_orders_only_its_own_memory() {
    let text = format!(
        "{MAIN} {{\n    out[i] = a[i];\n    workgroupBarrier();\n    a[i] = out[i ^ 1u];\n}}"
    );
    only_finding(&text, FindingKind::Race, 4);
    assert_no_finding(&text.replace("workgroupBarrier", "storageBarrier"));
    let text = format!(
        "var<workgroup> t: array<f32, 32>;
{MAIN} {{
    t[i] = a[i];
    storageBarrier();
    out[i] = t[31u - i];
}}"
    );
    only_finding(&text, FindingKind::Race, 5);
    assert_no_finding(&text.replace("storageBarrier", "workgroupBarrier"));
}

#[test]
fn a_barrier_that_not_all_lanes_reach_is_reported() {
    let finding = only_finding(
        &format!("{MAIN} {{\n    if (i < 16u) {{\n        workgroupBarrier();\n    }}\n}}"),
        FindingKind::DivergentBarrier,
        3,
    );
    let lanes: Vec<u32> = finding
        .invocations
        .iter()
        .map(|invocation| invocation.lane)
        .collect();
    assert_eq!(lanes, (16..32).collect::<Vec<_>>());
    let finding = only_finding(
        &format!("{MAIN} {{\n    if (i == 3u) {{ return; }}\n    storageBarrier();\n}}"),
        FindingKind::DivergentBarrier,
        3,
    );
    assert_eq!(finding.invocations.len(), 1);
    assert_eq!(finding.invocations[0].local, [3, 0, 0]);
    only_finding(
        &format!(
            "{MAIN} {{\n    for (var n = 0u; n < i; n++) {{\n        workgroupBarrier();\n    }}\n}}"
        ),
        FindingKind::DivergentBarrier,
        3,
    );
    // A return inside a function ends only that function.
    assert_no_finding(&format!(
        "fn f(i: u32) -> u32 {{ if (i < 4u) {{ return 1u; }} return 2u; }}\n{MAIN} {{\n    let x = f(i);\n    workgroupBarrier();\n}}"
    ));
}

#[test]
fn a_uniform_load_is_a_barrier_and_needs_a_uniform_pointer() {
    let text = format!(
        "var<workgroup> t: array<u32, 32>;
{MAIN} {{
    if (i == 0u) {{ t[0] = 7u; t[1] = 8u; }}
    let x = workgroupUniformLoad(&t[0]);
    if (i == 1u) {{ t[0] = 9u; }}
    out[i] = f32(x);
}}"
    );
    assert_no_finding(&text);
    only_finding(
        &text.replace("&t[0]", "&t[i / 16u]"),
        FindingKind::NonUniformValue,
        4,
    );
    // Accesses after the uniform load can race again.
    let text = text.replace("out[i] = f32(x)", "out[i] = f32(x + t[0])");
    only_finding(&text, FindingKind::Race, 6);
    let report = run(&text.replace(
        "    let x = workgroupUniformLoad(&t[0]);",
        "    if (i > 4u) { return; }\n    let x = workgroupUniformLoad(&t[0]);",
    ));
    assert!(kinds(&report).contains(&FindingKind::DivergentBarrier));
}

#[test]
fn an_index_past_the_end_is_reported_with_its_element() {
    let finding = only_finding(
        &format!("{MAIN} {{\n    out[i] = a[i + 40u];\n}}"),
        FindingKind::OutOfBounds,
        2,
    );
    assert_eq!((finding.index, finding.count), (Some((64, 64)), 8));
    assert_eq!(finding.element.as_deref(), Some("a[64]"));
    assert_eq!(finding.access, Some(AccessKind::Load));
}

#[test]
fn an_index_below_zero_is_a_store_out_of_bounds() {
    let finding = only_finding(
        &format!("{MAIN} {{\n    out[i - 1u] = 1.0;\n}}"),
        FindingKind::OutOfBounds,
        2,
    );
    assert_eq!(
        (finding.access, finding.invocation.lane),
        (Some(AccessKind::Store), 0)
    );
}

#[test]
fn the_element_past_the_end_is_named_in_arrays_of_a_function_and_of_a_workgroup() {
    let text =
        format!("{MAIN} {{\n    var t: array<f32, 8>;\n    t[i] = 1.0;\n    out[i] = t[0];\n}}");
    assert_eq!(
        only_finding(&text, FindingKind::OutOfBounds, 3)
            .element
            .as_deref(),
        Some("t[8]")
    );
    let text = format!(
        "struct S {{ x: f32, t: array<array<f32, 4>, 2>, }}\nvar<workgroup> s: S;\n{MAIN} {{\n    if (i < 5u) {{ s.t[1][i] = 1.0; }}\n}}"
    );
    assert_eq!(
        only_finding(&text, FindingKind::OutOfBounds, 4)
            .element
            .as_deref(),
        Some("s.t[1][4]")
    );
}

#[test]
fn an_index_past_the_end_of_a_value_is_found_and_a_guarded_index_is_not() {
    let text = format!(
        "{MAIN} {{\n    let t = array<f32, 4>(1.0, 2.0, 3.0, 4.0);\n    out[i] = t[i];\n}}"
    );
    only_finding(&text, FindingKind::OutOfBounds, 3);
    assert_no_finding(&format!(
        "{MAIN} {{\n    if (i < 8u && a[i] >= 0.0) {{ out[i] = 1.0; }}\n}}"
    ));
}

#[test]
fn a_read_of_memory_that_was_never_written_is_reported() {
    let text = format!(
        "var<workgroup> t: array<f32, 32>;\n{MAIN} {{\n    if (i < 31u) {{ t[i] = 1.0; }}\n    workgroupBarrier();\n    out[i] = t[i];\n}}"
    );
    let finding = only_finding(&text, FindingKind::UnwrittenRead, 5);
    assert_eq!(
        (finding.invocation.lane, finding.element.as_deref()),
        (31, Some("t[31]"))
    );
    // Values that an earlier workgroup left do not count as written.
    let report = run_groups(
        &text
            .replace("if (i < 31u)", "if (a[0] == 0.0)")
            .replace("out[i]", "a[0] = 1.0; out[i]"),
        2,
    );
    assert!(kinds(&report).contains(&FindingKind::UnwrittenRead));
    // A buffer may be unwritten as well.
    let shader = parse(&format!("{HEAD}{MAIN} {{ out[i] += a[i]; }}"));
    let mut buffers = [Buffer::zeroed(0, 0, 128), Buffer::unwritten(0, 1, 128)];
    let report = shader
        .run(&Launch::new([1, 1, 1]), &mut buffers, &mut ())
        .expect("runs");
    assert_eq!(kinds(&report), [FindingKind::UnwrittenRead]);
}

#[test]
fn a_loop_without_end_is_reported_as_the_innermost_one() {
    let text = format!(
        "{MAIN} {{\n    var n = 0u;\n    for (var k = 0u; k < 3u; k++) {{\n        loop {{\n            if (n == 1u && i < 40u) {{ continue; }}\n            n = 1u;\n            for (var j = 0u; j < 5u; j++) {{ n |= 1u; }}\n        }}\n    }}\n}}"
    );
    let report = run(&text);
    assert_eq!(kinds(&report), [FindingKind::Endless]);
    assert_eq!(report.findings[0].location.line, 4 + HEAD_LINES);
    assert!(!report.complete);
}

#[test]
fn the_limit_of_steps_ends_a_run_of_many_workgroups() {
    let shader = parse("@compute @workgroup_size(1) fn main() { }");
    let limits = LaunchLimits {
        steps: 1000,
        ..LaunchLimits::default()
    };
    let launch = Launch {
        limits,
        ..Launch::new([65535, 65535, 65535])
    };
    let report = shader.run(&launch, &mut [], &mut ()).expect("stops");
    assert!(!report.complete && report.findings.is_empty() && report.workgroups <= 1000);
}

#[test]
fn atomics_do_not_race() {
    assert_no_finding(&format!(
        "var<workgroup> n: atomic<u32>;
{MAIN} {{
    atomicAdd(&n, i);
    if (atomicLoad(&n) > 3u) {{ atomicStore(&n, 0u); }}
    workgroupBarrier();
    out[i] = f32(atomicLoad(&n));
}}"
    ));
}

#[test]
fn workgroups_race_over_storage() {
    let text = "@compute @workgroup_size(1) fn main(@builtin(workgroup_id) id: vec3<u32>) {\n    out[id.x / 2u] = f32(id.x);\n}";
    let report = run_groups(text, 4);
    assert_eq!(kinds(&report), [FindingKind::Race]);
    let finding = &report.findings[0];
    assert_eq!(
        (finding.invocation.workgroup, finding.count),
        ([1, 0, 0], 2)
    );
    assert_eq!(
        finding
            .other
            .as_ref()
            .expect("a store")
            .invocation
            .workgroup,
        [0, 0, 0]
    );
    // The second workgroup stores where the first has loaded; its own loads came in between.
    let text = "@compute @workgroup_size(4) fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) i: u32) {
    var x = a[0];
    storageBarrier();
    if (i == 0u) { x += a[0]; }
    storageBarrier();
    if (i == 0u && id.x == 1u) {
        a[0] = x;
    }
}";
    let report = run_groups(text, 2);
    assert_eq!(kinds(&report), [FindingKind::Race]);
    assert_eq!(
        report.findings[0]
            .other
            .as_ref()
            .expect("a load")
            .invocation
            .workgroup,
        [0, 0, 0]
    );
    // Loads of all workgroups and stores in different elements do not race.
    let text = "@compute @workgroup_size(8) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    out[id.x] = a[0];
}";
    assert_eq!(kinds(&run_groups(text, 8)), []);
}

#[test]
fn one_statement_that_stores_one_value_in_many_lanes_is_no_race() {
    let finding = only_finding(
        &format!("{MAIN} {{\n    out[0] = 3.0;\n}}"),
        FindingKind::SameValue,
        2,
    );
    assert_eq!(finding.count, 31);
}

/// Returns the message of a run that fails, with one buffer for `out`.
#[track_caller]
fn run_error(source: &str) -> String {
    let mut buffers = [Buffer::zeroed(0, 1, 4)];
    let result = parse(source).run(&Launch::new([1, 1, 1]), &mut buffers, &mut ());
    result.expect_err("does not run").to_string()
}

#[test]
fn a_part_of_the_language_that_is_not_supported_is_named_with_its_line() {
    let error = run_error(
        "@group(0) @binding(0) var t: texture_2d<f32>;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;
@compute @workgroup_size(1) fn main() {
    out[0] = textureLoad(t, vec2(0, 0), 0).x;
}",
    );
    assert_eq!(error, "not supported: textures, line 4");
}

#[test]
fn a_launch_that_does_not_fit_its_shader_is_refused() {
    assert_eq!(run_error(HEAD), "no compute entry point");
    let without_buffer = run_error(&format!("{HEAD}{MAIN} {{ out[i] = a[i]; }}"));
    assert_eq!(without_buffer, "no buffer for a, @group(0) @binding(0)");
    let large = run_error(
        "var<private> big: array<array<f32, 65535>, 5000>;
@compute @workgroup_size(256) fn main() { big[0][0] = 1.0; }",
    );
    assert!(
        large.ends_with("bytes of memory, the limit is 1073741824"),
        "{large}"
    );
}

#[test]
fn an_error_of_naga_has_its_line() {
    let error = Shader::parse("fn main() {\n    let x = ;\n}").expect_err("is not valid");
    assert_eq!(error.location.line, 2);
}

const MATRIX: &str = "enable f16;
enable wgpu_cooperative_matrix;
@group(0) @binding(0) var<storage, read_write> a: array<f32>;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;
var<workgroup> t: array<f32, 64>;
@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) {
    t[i] = a[i];
    workgroupBarrier();
    var sum = coop_mat8x8<f32, C>();
    let left = coopLoadT<coop_mat8x8<f32, A>>(&t[0], 8u);
    let right = coopLoad<coop_mat8x8<f32, B>>(&t[0], 8u);
    if (i < 32u) {
        sum = coopMultiplyAdd(left, right, sum);
        coopStoreT(sum, &out[0], 8u);
    }
}";

/// Runs a variant of `MATRIX`, and returns its report with the 64 numbers in `out`.
fn run_matrix(text: &str, subgroup_size: u32) -> (LaunchReport, Vec<f32>) {
    let numbers: Vec<f32> = (0..64).map(|at| at as f32).collect();
    let mut buffers = [
        Buffer::from_f32(0, 0, &numbers),
        Buffer::unwritten(0, 1, 256),
    ];
    let launch = Launch {
        subgroup_size,
        ..Launch::new([1, 1, 1])
    };
    let report = parse(text).run(&launch, &mut buffers, &mut ());
    let report = report.unwrap_or_else(|error| panic!("{error}"));
    (report, buffers[1].to_f32())
}

#[test]
fn a_subgroup_multiplies_cooperative_matrices() {
    let (report, out) = run_matrix(MATRIX, 32);
    assert_eq!(kinds(&report), []);
    // The left matrix is loaded row by row and the right one column by column, so element [row, column] is the product of two rows.
    for (index, found) in out.iter().enumerate() {
        let (row, column) = (index / 8, index % 8);
        let terms = (0..8).map(|k| ((row * 8 + k) * (column * 8 + k)) as f32);
        assert_eq!(*found, terms.sum::<f32>());
    }
    // Each of two subgroups loads two matrices of 64 elements.
    let loads = report
        .accesses
        .iter()
        .filter(|access| access.variable == "t");
    assert_eq!(loads.map(|access| access.loads).sum::<u64>(), 2 * 2 * 64);
}

#[test]
fn faults_of_operations_on_matrices_are_reported() {
    let (report, _) = run_matrix(&MATRIX.replace("    workgroupBarrier();\n", ""), 32);
    assert!(kinds(&report).contains(&FindingKind::Race));
    assert_eq!(report.findings[0].location.line, 9);
    // In the second subgroup, only 8 lanes take part.
    let (report, _) = run_matrix(&MATRIX.replace("i < 32u", "i < 40u"), 32);
    assert!(kinds(&report).contains(&FindingKind::DivergentSubgroup));
    // Two subgroups store the same matrix in the same elements.
    let (report, _) = run_matrix(&MATRIX.replace("i < 32u", "i < 64u"), 32);
    assert_eq!(kinds(&report), [FindingKind::SameValue]);
    let (report, _) = run_matrix(&MATRIX.replace("&out[0]", "&out[1]"), 64);
    assert!(kinds(&report).contains(&FindingKind::OutOfBounds));
    let (report, _) = run_matrix(&MATRIX.replace("&out[0]", "&out[i]"), 32);
    assert!(kinds(&report).contains(&FindingKind::NonUniformValue));
}

#[test]
fn unusual_right_kernels_have_no_finding() {
    let main_of_two_groups = "@compute @workgroup_size(32) fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) g: vec3<u32>)";
    let kernels = [
        // Two buffers exchange their roles in every round.
        "var<workgroup> t: array<array<f32, 32>, 2>;
MAIN {
    t[0][i] = a[i];
    for (var k = 0u; k < 5u; k++) {
        workgroupBarrier();
        t[(k + 1u) % 2u][i] = t[k % 2u][(i + 1u) % 32u];
    }
    out[i] = t[1][i];
}",
        // A scan in place has two barriers in each round.
        "var<workgroup> t: array<f32, 32>;
MAIN {
    t[i] = a[i];
    for (var far = 1u; far < 32u; far <<= 1u) {
        workgroupBarrier();
        var add = 0.0;
        if (i >= far) { add = t[i - far]; }
        workgroupBarrier();
        t[i] += add;
    }
    out[i] = t[i];
}",
        // All lanes take the branch with the barrier and the return.
        "var<workgroup> t: array<f32, 32>;
MAIN {
    t[i] = a[i];
    if (arrayLength(&a) > 40u) { workgroupBarrier(); out[i] = t[31u - i]; return; }
    workgroupBarrier();
}",
        // A histogram relies on the zeros of workgroup memory.
        "var<workgroup> bins: array<atomic<u32>, 4>;
MAIN {
    atomicAdd(&bins[u32(a[i]) % 4u], 1u);
    workgroupBarrier();
    if (i < 4u) { out[i] = f32(atomicLoad(&bins[i])); }
}",
        // One lane decides for all when a loop ends.
        "var<workgroup> go: u32;
MAIN {
    for (var k = 0u; k < 40u; k++) {
        if (i == 0u) { go = u32(k < 3u); }
        if (workgroupUniformLoad(&go) == 0u) { break; }
        out[i] += 1.0;
        workgroupBarrier();
    }
}",
        // A transposed tile with padding is stored as whole vectors.
        "var<workgroup> t: array<array<vec4<f32>, 5>, 8>;
MAIN {
    let row = i / 4u;
    let col = i % 4u;
    t[row][col] = vec4(a[i], a[i + 1u], a[i + 2u], a[i + 3u]);
    workgroupBarrier();
    out[i] = t[i % 8u][i / 8u].w;
}",
        // Half of the lanes use values that the others stored in a buffer.
        "MAIN {
    if (i < 16u) { out[i] = a[i]; }
    storageBarrier();
    if (i >= 16u) { out[i] = out[i - 16u]; }
}",
        // Each workgroup takes rows as long as there are any.
        "TWO {
    for (var k = g.x * 32u + i; k < 64u; k += 64u) { out[k] = a[63u - k]; }
}",
        // All lanes call a function with barriers.
        "var<workgroup> t: array<f32, 32>;
fn share(i: u32, x: f32) -> f32 {
    workgroupBarrier();
    t[i] = x;
    workgroupBarrier();
    return t[i ^ 1u];
}
MAIN {
    var x = a[i];
    for (var k = 0u; k < 3u; k++) { x = share(i, x) + 1.0; }
    out[i] = x;
}",
    ];
    for kernel in kernels {
        let groups = 1 + u32::from(kernel.contains("TWO"));
        let text = kernel
            .replace("MAIN", MAIN)
            .replace("TWO", main_of_two_groups);
        let findings = run_groups(&text, groups).findings;
        assert!(findings.is_empty(), "{findings:?}\n{text}");
    }
}
