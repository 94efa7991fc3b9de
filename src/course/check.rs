//! The criteria of a stage, as `[[check]]` of its file gives them. Whether a run meets them is the judge's business.

mod read;

pub use read::read;

/// One criterion.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// What is asked, in a few words: `first loss is what the formula says`.
    pub name: String,
    pub metric: Metric,
    pub test: Test,
    /// What this criterion says of the stage as it starts.
    pub starter: Starter,
    /// Reported, but does not decide: what not every device can show.
    pub optional: bool,
    pub line: usize,
}

/// What is looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Metric {
    /// A figure of the run, by its name in `metric.rs`.
    Figure(String),
    /// Time of the stage as it starts over time of the learner's, paired, with its interval.
    Ratio,
    /// A plausibility lint by name.
    Lint(String),
    /// A part of the model in the kernel list: `mlp.swiglu`.
    Part(String),
    /// The stage's questions.
    Quiz,
}

/// What it must be.
#[derive(Clone, Debug, PartialEq)]
pub enum Test {
    /// Not further from the target than this share of it.
    Within(f64, Target),
    AtLeast(Target),
    AtMost(Target),
    Above(Target),
    Below(Target),
    /// The lint or the part is there.
    Present,
    /// It is not there, in a run that would have shown it.
    Absent,
    /// Every question answered rightly.
    Right,
}

/// A number, or the name of one.
#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    Number(f64),
    /// `formula.first_loss`, `ln_vocab`, `entropy`, or another metric.
    Named(String),
}

/// What a criterion must say of the starter, so that `course check` can tell a fault from an accident.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Starter {
    #[default]
    Fails,
    Passes,
    /// Either.
    Any,
}
