//! The warning that other programs keep this machine busy. The engine measures their load and decides when the machine is busy. Where it
//! cannot measure the load, step times that vary a lot are the sign.

use super::App;
use protocol::{Load, TimingState};

/// The number of timed steps from which on their spread is meaningful.
const MANY: u64 = 64;

/// Returns the warning in three wordings, the longest first. `None` while the machine is idle.
pub fn wordings(app: &App) -> Option<[String; 3]> {
    // A second engine of our own also takes time; the header and the card of the check say so.
    if app.devices.warms_up() || app.checking().is_some() || app.mode.is_watching() {
        return None;
    }
    let (use_or_used, machine, are_or_were) = if app.mode.is_live() {
        ("use", "this machine", "are")
    } else {
        ("used", "the recorded machine", "were")
    };
    let load = app.devices.load.as_ref()?;
    if let Some(share) = share(load) {
        let cause = format!("Other programs {use_or_used} {share} % of {machine}");
        return Some([
            format!("{cause}: times {are_or_were} longer than necessary; pairs need a steady load"),
            format!("{cause}: steps {are_or_were} slower, pairs less exact"),
            format!("Others {use_or_used} {share} %: steps {are_or_were} slower, pairs less exact"),
        ]);
    }
    let times = app.shown_run().shown().throughput.as_ref();
    let varies =
        times.is_some_and(|times| times.state == TimingState::Noisy && times.step_ms.n >= MANY);
    (load.others.is_none() && varies).then(|| {
        let guess = "Step times vary a lot: other programs may use";
        [
            format!("{guess} {machine}. Pairs need a steady load"),
            format!("{guess} {machine}; pairs are less exact"),
            "Step times vary a lot; pairs are less exact".to_owned(),
        ]
    })
}

/// Returns the share of other programs in percent, in steps of 5 so that it does not change with every reading. `None` while the
/// machine is idle, or if the share is not known.
fn share(load: &Load) -> Option<u32> {
    if !load.busy {
        return None;
    }
    Some(((20.0 * load.others?).round() as u32 * 5).max(5))
}

/// Returns true if two readings are shown in different words.
pub fn changes(before: Option<&Load>, now: &Load) -> bool {
    before.is_none_or(|before| {
        share(before) != share(now) || before.others.is_none() != now.others.is_none()
    })
}
