//! Results that WGSL leaves open: for each kind, a kernel that is reported and a similar right one that is not. Further tests are about
//! the liberties of a device, overrides, subgroups, and launches of a few workgroups.

use wgsl_lockstep::{Buffer, FindingKind, Launch, LaunchReport, Liberty, OpenResult, Shader};

const HEAD: &str = "@group(0) @binding(0) var<storage, read_write> a: array<f32>;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;
var<workgroup> kept: array<f32, 32>; fn half(x: f32) -> f32 { if (x > 0.0) { return 0.5 * x; } return x; }
@compute @workgroup_size(32) fn main(@builtin(local_invocation_index) i: u32) {
";

/// Returns the numbers from −16 to 47.
fn numbers() -> Vec<f32> {
    (0..64).map(|at| at as f32 - 16.0).collect()
}

/// Runs the body of a kernel with `numbers()` in `a` and in `out`, and returns its report and `out`.
fn run(body: &str, liberties: &[Liberty]) -> (LaunchReport, Vec<f32>) {
    let shader = Shader::parse(&format!("{HEAD}{body}\n}}"));
    let shader = shader.unwrap_or_else(|error| panic!("{error}: {body}"));
    let mut buffers = [0, 1].map(|binding| Buffer::from_f32(0, binding, &numbers()));
    let mut launch = Launch::new([1, 1, 1]);
    for liberty in liberties {
        launch.liberties[*liberty as usize] = true;
    }
    let report = shader.run(&launch, &mut buffers, &mut ());
    let report = report.unwrap_or_else(|error| panic!("{error}: {body}"));
    (report, buffers[1].to_f32())
}

/// Returns the open results of a kernel's body, which are its only findings.
#[track_caller]
fn open(body: &str) -> Vec<OpenResult> {
    let (report, _) = run(body, &[]);
    let kinds = report.findings.iter().map(|finding| match finding.kind {
        FindingKind::Open(open) => {
            assert_eq!(finding.location.line, 5, "{finding}");
            open
        }
        _ => panic!("{finding}"),
    });
    kinds.collect()
}

#[test]
fn open_results_are_reported_and_similar_right_kernels_are_not() {
    use OpenResult::{
        Clamp, Conversion, IntegerDivision, NanTest, NotFinite, Overflow, PowOfNegative, Shift,
    };
    for (kind, wrong, right) in [
        (
            PowOfNegative,
            "out[i] = pow(a[i], 2.0);",
            "out[i] = pow(abs(a[i]), 2.0);",
        ),
        (
            PowOfNegative,
            "out[i] = pow(f32(i), 0.0);",
            "out[i] = pow(f32(i), 2.0);",
        ),
        (
            Shift,
            "out[i] = f32(1u << (i + 1u));",
            "out[i] = f32(1u << i);",
        ),
        (
            Conversion,
            "out[i] = f32(u32(a[i]));",
            "out[i] = f32(i32(a[i]));",
        ),
        (
            Conversion,
            "out[i] = f32(i32(a[i] * 1e9));",
            "out[i] = f32(i32(a[i] * 1e6));",
        ),
        (
            IntegerDivision,
            "out[i] = f32(7u / i);",
            "out[i] = f32(7u / (i + 1u));",
        ),
        (
            IntegerDivision,
            "out[i] = f32(7u % i);",
            "out[i] = f32(7u % max(i, 1u));",
        ),
        (
            Clamp,
            "out[i] = clamp(a[i], a[i] + 1.0, a[i]);",
            "out[i] = clamp(a[i], a[i], a[i]);",
        ),
        (
            NotFinite,
            "out[i] = max(a[i], -1.0 / (a[16] * 1.0));",
            "out[i] = max(a[i], -3.4e38);",
        ),
        (
            NotFinite,
            "out[i] = select(0.0, 1.0, a[i] > log(a[16]));",
            "out[i] = select(0.0, 1.0, a[i] > log(a[17]));",
        ),
        (
            NotFinite,
            "out[i] = sign(a[16] / a[16]);",
            "out[i] = sign(a[17] / a[17]);",
        ),
        (
            NanTest,
            "let x = a[i]; out[i] = select(x, 0.0, x != x);",
            "let x = a[i]; out[i] = select(x, 0.0, x != a[0]);",
        ),
        (
            NanTest,
            "out[i] = select(0.0, 1.0, a[i] == a[i]);",
            "out[i] = select(0.0, 1.0, a[i] == a[0]);",
        ),
        (
            Overflow,
            "out[i] = 1.0 / (1.0 + exp(-10.0 * a[i]));",
            "out[i] = 1.0 / (1.0 + exp(-a[i]));",
        ),
        (
            Overflow,
            "out[i] = tanh(a[i] * 10.0);",
            "out[i] = tanh(clamp(a[i] * 10.0, -15.0, 15.0));",
        ),
    ] {
        assert_eq!(open(wrong), [kind], "{wrong}");
        assert_eq!(open(right), [], "{right}");
    }
    // An exponential that overflows is the only kind that is no fault, because most devices give infinity.
    let (report, _) = run("out[i] = exp(100.0 * a[i]);", &[]);
    assert_eq!((report.findings.len(), report.faults().count()), (1, 0));
    let (report, _) = run("out[i] = pow(a[i], 2.0);", &[]);
    assert_eq!(
        report.findings[0].to_string(),
        "line 5: `pow` of a number that is not above 0: WGSL leaves the result open; \
         write `x * x` for a square, or `pow(abs(x), y)`"
    );
}

#[test]
fn values_of_inactive_lanes_and_unused_values_are_no_findings() {
    assert_eq!(open("if (a[i] > 0.0) { out[i] = pow(a[i], 2.0); }"), []);
    // The overflow itself is reported, and the limit around it is no second finding.
    let limited = "out[i] = min(exp(a[i] * 10.0), 1e30);";
    assert_eq!(open(limited), [OpenResult::Overflow]);
    // An infinity that decides nothing is no finding.
    assert_eq!(
        open("let one = 1.0 / a[i]; if (a[i] > 0.0) { out[i] = one; }"),
        []
    );
}

#[test]
fn a_barrier_under_a_condition_on_memory_is_reported_although_all_lanes_agree() {
    let wrong = [
        "kept[i] = 1.0; workgroupBarrier(); if (kept[0] > 0.5) { workgroupBarrier(); } out[i] = 1.0;",
        "if (a[0] < 0.0) { workgroupBarrier(); } out[i] = 1.0;",
        "let x = a[0]; var n = 0u; if (x < 0.0) { n = 2u; } for (var k = 0u; k < n; k++) { workgroupBarrier(); } out[i] = 1.0;",
        "if (a[0] > 0.0) { return; } workgroupBarrier(); out[i] = 1.0;",
        "if (half(a[0]) < 0.0) { workgroupBarrier(); } out[i] = 1.0;",
        "var n = 1.0; for (var k = 0u; k < 2u; k++) { if (n > 0.0) { workgroupBarrier(); } n = a[40]; } out[i] = 1.0;",
        "loop { workgroupBarrier(); if (a[0] < 0.0) { break; } } out[i] = 1.0;",
    ];
    for body in wrong {
        assert_eq!(open(body), [OpenResult::Barrier], "{body}");
    }
    let right = [
        "kept[i] = 1.0; workgroupBarrier(); if (workgroupUniformLoad(&kept[0]) > 0.5) { workgroupBarrier(); } out[i] = 1.0;",
        "for (var k = 0u; k < 3u; k++) { workgroupBarrier(); } out[i] = 1.0;",
        "if (a[i] > 0.0) { out[i] = 1.0; } workgroupBarrier(); out[i] = 2.0;",
        "var n = a[0]; n = 1.0; if (n > 0.0) { workgroupBarrier(); n = a[1]; } out[i] = n;",
        "out[i] = half(a[i]); workgroupBarrier(); out[i] = 2.0;",
        "for (var k = 0u; k < u32(a[i] > 0.0); k++) { out[i] = 1.0; } workgroupBarrier(); out[i] = 2.0;",
    ];
    for body in right {
        assert_eq!(open(body), [], "{body}");
    }
}

#[test]
fn the_report_has_the_outcomes_of_conditions_on_buffers() {
    let branches = |body: &str| -> Vec<[bool; 2]> {
        let (report, _) = run(body, &[]);
        report.branches.iter().map(|branch| branch.taken).collect()
    };
    assert_eq!(
        branches("if (a[i] > 0.0) { out[i] = 1.0; }"),
        [[true, true]]
    );
    assert_eq!(
        branches("if (a[i] > 99.0) { out[i] = 1.0; }"),
        [[true, false]]
    );
    assert_eq!(
        branches("out[i] = select(1.0, 2.0, a[i] < 99.0);"),
        [[false, true]]
    );
    let kept = "kept[i] = a[i]; workgroupBarrier(); if (kept[0] > 0.0) { out[i] = 1.0; }";
    assert_eq!(branches(kept), [[true, false]]);
    assert!(branches("if (i > 99u) { out[i] = a[i]; }").is_empty());
}

#[test]
fn a_liberty_is_reported_and_changes_the_result_when_it_is_taken() {
    // Returns the reported liberties, the plain results, and the results with a liberty.
    let results = |body: &str, liberty: Liberty| {
        let (report, plain) = run(body, &[]);
        let (_, free) = run(body, &[liberty]);
        let reported = report.liberties.iter().map(|(liberty, _)| *liberty);
        (reported.collect::<Vec<_>>(), plain, free)
    };
    // In Kahan's sum, a device that simplifies computes 0 for the rounding error of `t`.
    let lost = "let sum = a[0] + 1e8; let t = sum + a[i]; out[i] = (t - sum) - a[i];";
    let (met, plain, free) = results(lost, Liberty::Reassociation);
    assert_eq!(met, [Liberty::Reassociation]);
    assert!(plain.iter().take(32).any(|x| *x != 0.0));
    assert!(free.iter().take(32).all(|x| *x == 0.0));
    let in_variable = "let sum = a[0] + 1e8; var t = sum + a[i]; out[i] = (t - sum) - a[i];";
    assert_eq!(results(in_variable, Liberty::Reassociation).0, met);
    let (met, ..) = results("out[i] = (a[i] + 1.0) - a[i];", Liberty::Reassociation);
    assert_eq!(met, [], "nothing is rounded");
    let round = "let x = a[i] + 0.3; out[i] = (x + 12582912.0) - 12582912.0;";
    let (met, plain, free) = results(round, Liberty::Reassociation);
    assert_eq!(
        (met, plain[0], free[0]),
        (vec![Liberty::Reassociation], -16.0, -15.7)
    );
    let product = "let p = (a[i] + 0.1) * 1.1; out[i] = fma(a[i] + 0.1, 1.1, -p);";
    let (met, plain, free) = results(product, Liberty::Fma);
    assert_eq!(met, [Liberty::Fma]);
    assert!(plain.iter().take(32).any(|x| *x != 0.0));
    assert!(free.iter().take(32).all(|x| *x == 0.0));
    let (met, plain, free) = results("out[i] = (a[i] * 1e-30) * 1e-10;", Liberty::Subnormals);
    assert_eq!(met, [Liberty::Subnormals]);
    assert!(plain[0] != 0.0 && free[0] == 0.0);
    let sign = "out[i] = f32(bitcast<u32>(-a[16]) >> 31u);";
    let (met, plain, free) = results(sign, Liberty::ZeroSign);
    assert_eq!(
        (met, plain[0], free[0]),
        (vec![Liberty::ZeroSign], 1.0, 0.0)
    );
}

#[test]
fn a_launch_gives_overrides_their_values() {
    let text = "override N = 2u;
@id(7) override SCALE: f32;
@group(0) @binding(0) var<storage, read_write> out: array<f32>;
var<workgroup> kept: array<f32, N>;
@compute @workgroup_size(N) fn main(@builtin(local_invocation_index) i: u32) {
    kept[i] = SCALE;
    out[i] = kept[i] * f32(i);
}";
    let shader = Shader::parse(text).expect("is right");
    let run_with = |overrides: &[(&str, f64)]| {
        let mut buffers = [Buffer::from_f32(0, 0, &[-1.0; 4])];
        let launch = Launch {
            overrides,
            ..Launch::new([1, 1, 1])
        };
        let report = shader.run(&launch, &mut buffers, &mut ());
        report.map(|_| buffers[0].to_f32())
    };
    assert_eq!(run_with(&[("7", 3.0)]), Ok(vec![0.0, 3.0, -1.0, -1.0]));
    assert_eq!(
        run_with(&[("7", 2.0), ("N", 4.0)]),
        Ok(vec![0.0, 2.0, 4.0, 6.0])
    );
    let error = run_with(&[]).expect_err("has no default");
    assert!(error.to_string().contains("Missing value"), "{error}");
    assert!(run_with(&[("7", 3.0), ("M", 1.0)]).is_err());
}

const SUBGROUPS: &str = "enable subgroups;
@group(0) @binding(0) var<storage, read_write> out: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32, @builtin(subgroup_size) size: u32, @builtin(subgroup_invocation_id) lane: u32) {
    out[i] = ";

/// Stores a value in `out` with subgroups of a size. Returns the kinds of findings, and `out`.
fn run_subgroups(value: &str, subgroup_size: u32) -> (Vec<FindingKind>, Vec<u32>) {
    let shader = Shader::parse(&format!("{SUBGROUPS}{value};\n}}"));
    let shader = shader.unwrap_or_else(|error| panic!("{error}: {value}"));
    let mut buffers = [Buffer::zeroed(0, 0, 256)];
    let launch = Launch {
        subgroup_size,
        ..Launch::new([1, 1, 1])
    };
    let report = shader.run(&launch, &mut buffers, &mut ());
    let report = report.unwrap_or_else(|error| panic!("{error}: {value}"));
    let kinds = report.findings.iter().map(|finding| finding.kind);
    (kinds.collect(), buffers[0].to_u32())
}

#[test]
fn operations_of_subgroups_use_the_lanes_of_their_subgroup() {
    for size in [8, 32] {
        let first = |i: u32| i / size * size;
        for (value, expected) in [
            (
                "subgroupAdd(i)",
                &(|i| (first(i)..first(i) + size).sum()) as &dyn Fn(u32) -> u32,
            ),
            ("subgroupMax(i)", &|i| first(i) + size - 1),
            ("subgroupMin(i)", &first),
            ("subgroupExclusiveAdd(1u)", &|i| i - first(i)),
            ("subgroupInclusiveAdd(1u)", &|i| i - first(i) + 1),
            ("subgroupBroadcast(i, 3u)", &|i| first(i) + 3),
            ("subgroupBroadcastFirst(i)", &first),
            ("subgroupShuffle(i, size - 1u - lane)", &|i| {
                2 * first(i) + size - 1 - i
            }),
            ("subgroupShuffleXor(i, 1u)", &|i| i ^ 1),
            ("subgroupBallot(lane == 2u).x", &|_| 4),
            (
                "u32(subgroupAny(lane == 2u)) + u32(subgroupAll(lane < 2u))",
                &|_| 1,
            ),
        ] {
            let (_, found) = run_subgroups(value, size);
            let expected: Vec<u32> = (0..64).map(expected).collect();
            assert_eq!(found, expected, "{value} at {size}");
        }
    }
}

#[test]
fn a_result_that_depends_on_the_subgroup_size_is_reported() {
    let differs = [FindingKind::Open(OpenResult::SubgroupSize)];
    assert_eq!(run_subgroups("subgroupAdd(i)", 32).0, differs);
    assert_eq!(run_subgroups("subgroupAdd(0u)", 32).0, []);
    assert_eq!(run_subgroups("subgroupShuffleXor(i, 1u)", 32).0, []);
    let inactive = FindingKind::Open(OpenResult::InactiveLane);
    assert!(
        run_subgroups("subgroupShuffleDown(i, 1u)", 32)
            .0
            .contains(&inactive)
    );
}

#[test]
fn floats_that_are_added_in_another_order_do_not_depend_on_the_subgroup_size() {
    let text = "enable subgroups;
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
var<workgroup> sums: array<f32, 64>;
@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32, @builtin(subgroup_size) size: u32) {
    let sum = subgroupAdd(x[i]);
    sums[i] = 0.0;
    workgroupBarrier();
    if (i % size == 0u) { sums[i / size] = sum; }
    workgroupBarrier();
    var all = 0.0;
    for (var k = 0u; k < 64u; k++) { all += sums[k]; }
    x[i] = all;
}";
    let shader = Shader::parse(text).expect("is right");
    let values: Vec<f32> = (0..64).map(|at| 1.0 / (at as f32 + 0.7)).collect();
    let mut buffers = [Buffer::from_f32(0, 0, &values)];
    let report = shader.run(&Launch::new([1, 1, 1]), &mut buffers, &mut ());
    let report = report.expect("runs");
    assert_eq!(report.findings.len(), 0, "{}", report.findings[0]);
    assert!((buffers[0].to_f32()[0] - values.iter().sum::<f32>()).abs() < 1e-5);
}

#[test]
fn a_launch_can_run_a_few_of_its_workgroups() {
    let text = "@group(0) @binding(0) var<storage, read_write> x: array<u32>;
@compute @workgroup_size(4) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    x[min(id.x, 50u)] = id.x;
}";
    let shader = Shader::parse(text).expect("is right");
    let run_only = |only: &[[u32; 3]]| {
        let mut buffers = [Buffer::zeroed(0, 0, 256)];
        let launch = Launch {
            only,
            ..Launch::new([16, 1, 1])
        };
        let report = shader.run(&launch, &mut buffers, &mut ()).expect("runs");
        (report, buffers[0].to_u32())
    };
    let (report, x) = run_only(&[[1, 0, 0], [3, 0, 0]]);
    assert_eq!((report.workgroups, report.findings.len()), (2, 0));
    assert_eq!((x[4], x[8], x[15]), (4, 0, 15));
    // The four lanes of workgroup 14 store different numbers in x[50]. The race has the right ids although workgroups before did not run.
    let (report, _) = run_only(&[[14, 0, 0], [15, 0, 0]]);
    let races: Vec<(u32, u32)> = report
        .findings
        .iter()
        .filter(|finding| finding.kind == FindingKind::Race)
        .filter_map(|race| {
            let other = race.other.as_ref()?.invocation;
            Some((race.invocation.workgroup[0], other.workgroup[0]))
        })
        .collect();
    assert_eq!(races, [(14, 14)]);
}
