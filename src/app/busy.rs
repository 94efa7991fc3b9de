//! What is said while other programs keep this machine busy. The engine decides when that is; where it does not know, step times
//! that vary a lot are the sign.

use super::App;
use protocol::{Load, TimingState};

/// Timed steps from which on their spread says something.
const MANY: u64 = 64;

/// The wordings, the longest first; none while the machine is idle.
pub fn busy(app: &App) -> Option<[String; 3]> {
    // A second engine of our own takes time as well; the header and the card of the check say so.
    if app.devices.warms_up() || app.checking().is_some() || app.mode.is_watching() {
        return None;
    }
    let (use_it, machine, are) = if app.mode.is_live() {
        ("use", "this machine", "are")
    } else {
        ("used", "the recorded machine", "were")
    };
    let load = app.devices.load.as_ref()?;
    let so = format!("times {are} longer than necessary; pairs need a steady load");
    if let Some(share) = share(load) {
        let said = format!("Other programs {use_it} {share} % of {machine}");
        return Some([
            format!("{said}: {so}"),
            format!("{said}: steps {are} slower, pairs less exact"),
            format!("Others {use_it} {share} %: steps {are} slower, pairs less exact"),
        ]);
    }
    let times = app.shown_run().shown().throughput.as_ref();
    let varies = times.is_some_and(|it| it.state == TimingState::Noisy && it.step_ms.n >= MANY);
    (load.others.is_none() && varies).then(|| {
        let said = "Step times vary a lot: other programs may use";
        [
            format!("{said} {machine}. Pairs need a steady load"),
            format!("{said} {machine}; pairs are less exact"),
            "Step times vary a lot; pairs are less exact".to_owned(),
        ]
    })
}

/// The share that is shown, in steps of 5 %, so that it does not change with every reading.
fn share(load: &Load) -> Option<u32> {
    let others = load.others.filter(|_| load.busy)?;
    Some(((20.0 * others).round() as u32 * 5).max(5))
}

/// Whether two readings are shown in different words.
pub fn changes(before: Option<&Load>, now: &Load) -> bool {
    before.is_none_or(|before| {
        share(before) != share(now) || before.others.is_none() != now.others.is_none()
    })
}
