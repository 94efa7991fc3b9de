//! Why a paragraph cannot be told yet: which of its figures are still to be measured.

use super::{Lookup, Subject, problem, subject, value};

/// What has to be done before the figures are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// A run has to go on.
    Run,
    /// The mended version has to run.
    Mended,
    /// Broken and fixed have to be measured against each other.
    Pairs,
}

/// What these names wait for. A figure that a run long under way does not have will not come: it is not waited for.
pub fn awaited<'a>(names: impl Iterator<Item = &'a str>, from: &dyn Lookup) -> Option<Awaited> {
    let mut found = None;
    for name in names {
        match awaits(name, from) {
            Some(Awaited::Pairs) => return Some(Awaited::Pairs),
            Some(run) => found = Some(run),
            None => {}
        }
    }
    found
}

fn awaits(name: &str, from: &dyn Lookup) -> Option<Awaited> {
    if problem(name).is_some() || value(name, from).is_some() {
        return None;
    }
    let pending = |subject: Subject| pending(subject, from);
    match name.split('.').next().unwrap_or(name) {
        "pair" => Some(Awaited::Pairs),
        "ratio" => (pending(Subject::Broken) || pending(Subject::Fixed)).then_some(Awaited::Pairs),
        "fixed" => pending(Subject::Fixed).then_some(Awaited::Mended),
        head => subject(head).is_some_and(pending).then_some(Awaited::Run),
    }
}

/// Whether a run is still to make the steps after which everything measured was measured once.
fn pending(subject: Subject, from: &dyn Lookup) -> bool {
    let measure = &from.config().measure;
    let due = measure.warmup.saturating_add(measure.profile_every);
    from.finished(subject).is_none_or(|run| run.steps <= due)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Preset, RunConfig};
    use crate::course::placeholder::Figures;
    use crate::protocol::Finished;

    #[test]
    fn a_paragraph_waits_for_what_can_still_come() {
        let config = RunConfig::preset(Preset::Tiny);
        let none = Figures::none(&config);
        let of = |names: &[&'static str], from: &Figures<'_>| awaited(names.iter().copied(), from);
        assert_eq!(of(&["ln_vocab", "config.vocab"], &none), None);
        assert_eq!(of(&["ln_vocab", "run.step_ms"], &none), Some(Awaited::Run));
        assert_eq!(
            of(&["pair.ratio", "fixed.step_ms"], &none),
            Some(Awaited::Pairs)
        );
        assert_eq!(of(&["ratio.step_ms"], &none), Some(Awaited::Pairs));
        assert_eq!(of(&["prediction.choice"], &none), None, "it was skipped");
        let long = Finished {
            steps: 1_000_000,
            ..Finished::default()
        };
        let figures = Figures {
            run: Some(&long),
            ..Figures::none(&config)
        };
        assert_eq!(of(&["run.step_ms"], &figures), None, "it never comes");
    }
}
