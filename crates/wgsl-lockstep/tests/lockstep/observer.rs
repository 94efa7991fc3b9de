//! The events that an observer receives, and the counts of a report.

use wgsl_lockstep::lanes::record;
use wgsl_lockstep::{
    Access, AccessKind, Arrival, Buffer, Finding, FindingKind, Launch, Observer, Shader, Space,
    StatementStart,
};

const TEXT: &str = "@group(0) @binding(3) var<storage, read_write> out: array<vec2<f32>>;
var<workgroup> t: array<f32, 4>;
fn add(x: f32) -> f32 {
    return x + 1.0;
}
@compute @workgroup_size(4) fn main(@builtin(local_invocation_index) i: u32) {
    t[i] = f32(i);
    workgroupBarrier();
    if (i < 2u) {
        out[i].y = add(t[3u - i]);
    }
}";

/// Writes each event as a line of text.
#[derive(Default)]
struct Log(Vec<String>);

impl Observer for Log {
    fn workgroup_start(&mut self, id: [u32; 3], lanes: u32) {
        self.0.push(format!("start {id:?} {lanes}"));
    }

    fn workgroup_end(&mut self, id: [u32; 3]) {
        self.0.push(format!("end {id:?}"));
    }

    fn statement(&mut self, step: &StatementStart<'_>) {
        let line = format!("line {} {:?}", step.location.line, step.lanes);
        if self.0.last() != Some(&line) {
            self.0.push(line);
        }
    }

    fn access(&mut self, access: &Access<'_>) {
        let paths: Vec<String> = access.lanes.iter().map(|lane| access.path(*lane)).collect();
        let values: Vec<f32> = access
            .lanes
            .iter()
            .map(|lane| f32::from_bits(access.values[*lane as usize]))
            .collect();
        self.0.push(format!(
            "  {:?} {:?} {paths:?} {values:?}",
            access.kind, access.space
        ));
    }

    fn barrier(&mut self, arrival: &Arrival<'_>) {
        self.0.push(format!(
            "  barrier {:?} {:?}",
            arrival.lanes, arrival.missing
        ));
    }

    fn finding(&mut self, finding: &Finding) {
        self.0.push(format!("  {finding}"));
    }
}

#[test]
fn an_observer_receives_every_step_in_order() {
    let shader = Shader::parse(TEXT).expect("is right");
    let mut log = Log::default();
    let mut buffers = [Buffer::unwritten(0, 3, 32)];
    let report = shader
        .run(&Launch::new([1, 1, 1]), &mut buffers, &mut log)
        .expect("runs");
    let expected = [
        "start [0, 0, 0] 4",
        "line 7 [0, 1, 2, 3]",
        "  Store Workgroup [\"t[0]\", \"t[1]\", \"t[2]\", \"t[3]\"] [0.0, 1.0, 2.0, 3.0]",
        "line 8 [0, 1, 2, 3]",
        "  barrier [0, 1, 2, 3] []",
        "line 9 [0, 1, 2, 3]",
        "line 10 [0, 1]",
        "  Load Workgroup [\"t[3]\", \"t[2]\"] [3.0, 2.0]",
        "line 10 [0, 1]",
        "line 4 [0, 1]",
        "line 10 [0, 1]",
        "  Store Storage [\"out[0].y\", \"out[1].y\"] [4.0, 3.0]",
        "end [0, 0, 0]",
    ];
    assert_eq!(log.0, expected);
    let [unwritten] = report.unwritten.as_slice() else {
        panic!("{:?}", report.unwritten);
    };
    assert_eq!(
        (unwritten.element.as_str(), unwritten.first, unwritten.bytes),
        ("out[0].x", 0, 24)
    );
    assert_eq!(buffers[0].to_f32()[..4], [0.0, 4.0, 0.0, 3.0]);
    let [store, out, load] = report.accesses.as_slice() else {
        panic!("{:?}", report.accesses);
    };
    assert_eq!(
        (store.location.line, store.variable.as_str(), store.stores),
        (7, "t", 4)
    );
    assert_eq!(
        (load.location.line, load.space, load.loads),
        (10, Space::Workgroup, 2)
    );
    assert_eq!((out.binding, out.stores, out.loads), (Some((0, 3)), 2, 0));
}

#[test]
fn a_finding_has_the_span_and_the_column_of_its_access() {
    let text = TEXT.replace("3u - i", "i + 3u");
    let shader = Shader::parse(&text).expect("is right");
    let report = shader
        .run(
            &Launch::new([1, 1, 1]),
            &mut [Buffer::zeroed(0, 3, 32)],
            &mut (),
        )
        .expect("runs");
    let [finding] = report.findings.as_slice() else {
        panic!("{:?}", report.findings);
    };
    assert_eq!(finding.kind, FindingKind::OutOfBounds);
    assert_eq!(&text[finding.location.span.clone()], "t[i + 3u]");
    assert_eq!((finding.location.line, finding.location.column), (10, 24));
    assert_eq!(finding.access, Some(AccessKind::Load));
    assert_eq!(
        finding.to_string(),
        "line 10: invocation 1 reads t[4], of 4 elements"
    );
}

#[test]
fn a_fault_after_many_workgroups_is_recorded() {
    // 64,000 accesses of each workgroup; the last one also has a race.
    let text = "@group(0) @binding(0) var<storage, read_write> all: array<f32>;
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) lane: u32, @builtin(workgroup_id) group: vec3<u32>) {
    for (var i = 0u; i < 500u; i++) {
        all[64u * group.x + lane] += 1.0;
    }
    if (group.x == 39u) {
        all[64u * group.x] = f32(lane);
    }
}";
    let shader = Shader::parse(text).expect("reads");
    let mut buffers = [Buffer::from_f32(0, 0, &[0.0; 64 * 40])];
    let run = record(
        &shader,
        &Launch::new([40, 1, 1]),
        &mut buffers,
        text,
        &|at| at.line,
    );
    let run = run.expect("runs").expect("workgroups run");
    assert_eq!((run.group, run.cut), (39, false));
    assert_eq!(run.steps[run.faults[0].step].line, 8);
}
