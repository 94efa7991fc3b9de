//! A page about the runs of a stream, which is equal for a live session and its recording. It has one section for each configuration of a
//! stage: the longest run, with the figures of other runs where the longest run lacks them.

mod section;

use serde::{Deserialize, Serialize};

use super::sheet::{Curve, Sheet, SheetBlock, SheetChart};
use protocol::story::{RunDescription, RunStory, StreamStory};
use protocol::units::Digits;
use protocol::*;
use section::Section;

/// A run with fewer points than this does not replace a saved run.
const FEW: usize = 10;

/// The sections of a report. A file keeps the last runs of each stage in this form.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RunReport {
    hello: Hello,
    sections: Vec<Section>,
    /// The last paired comparison of each stage.
    pairs: Vec<(u32, Pair)>,
}

impl RunReport {
    /// Reports on the runs of a stream, in the order in which their configurations began.
    pub fn from_story(story: &StreamStory) -> Self {
        let mut runs: Vec<&RunStory> = story.runs().collect();
        runs.sort_by_key(|run| run.number);
        let mut groups: Vec<Vec<&RunStory>> = Vec::new();
        for run in runs {
            let mut known = groups.iter_mut();
            match known.find(|group| is_shown_with(group[0], run)) {
                Some(group) => group.push(run),
                None => groups.push(vec![run]),
            }
        }
        Self {
            hello: story.hello.clone(),
            sections: groups.into_iter().map(Section::from_runs).collect(),
            pairs: story.pairs().to_vec(),
        }
    }

    /// Returns the report as a sheet. Every figure in it comes from the stream.
    pub fn sheet(&self) -> Sheet {
        let mut blocks = vec![
            SheetBlock::Title("perflings report".to_owned()),
            self.origin(),
        ];
        if self.sections.is_empty() {
            blocks.push(SheetBlock::Intro("No run was started.".to_owned()));
        }
        blocks.extend(self.blocks(true));
        Sheet(blocks)
    }

    /// Returns the last run of each variant of a stage, without comparisons. An earlier run stays if this stream has no run that is long
    /// enough to replace it.
    pub fn kept(&self, earlier: &Self) -> Self {
        let mut sections: Vec<Section> = Vec::new();
        for section in earlier.sections.iter().chain(&self.sections) {
            if section.stage() == 0 || section.curve.len() < FEW {
                continue;
            }
            sections.retain(|other| {
                other.stage() != section.stage() || other.run.name != section.run.name
            });
            sections.push(section.clone());
        }
        let hello = if self.hello.date.is_empty() {
            &earlier.hello
        } else {
            &self.hello
        };
        Self {
            hello: hello.clone(),
            sections,
            ..Self::default()
        }
    }

    pub fn is_empty(&self) -> bool {
        self.sections.is_empty()
    }

    fn runs(&self, stage: u32) -> Vec<&Section> {
        let runs = self.sections.iter();
        runs.filter(|run| run.stage() == stage).collect()
    }

    /// Returns the figures of the broken and of the fixed run of a stage, for texts with figures.
    pub fn figures(&self, stage: u32) -> [Option<Finished>; 2] {
        let runs = self.runs(stage);
        let last_named = |names: &[&str]| {
            let mut runs = runs.iter().rev();
            let run = runs.find(|run| names.contains(&run.run.name.as_str()));
            run.map(|run| run.summed_up())
        };
        [last_named(&["broken"]), last_named(&["fixed", "custom"])]
    }

    /// Returns the curves of a stage, and the device and date of each.
    pub fn curves_of_stage(&self, stage: u32) -> Vec<SheetBlock> {
        let runs = self.runs(stage);
        let mut blocks: Vec<SheetBlock> = loss_chart(stage, &runs).into_iter().collect();
        for run in runs {
            let on = device_in_words(&run.run);
            let date = date_or_unknown(&run.date);
            blocks.push(SheetBlock::Remark(format!(
                "{}: {on}, {date}",
                run.run.name
            )));
        }
        blocks
    }

    /// Returns the runs and the comparisons. With `drawn`, the curves of stages are included.
    pub fn blocks(&self, drawn: bool) -> Vec<SheetBlock> {
        let mut stages: Vec<u32> = self.sections.iter().map(Section::stage).collect();
        stages.sort_unstable();
        stages.dedup();
        let mut blocks = Vec::new();
        for stage in stages {
            let runs = self.runs(stage);
            let mut chart = if drawn || stage == 0 {
                loss_chart(stage, &runs)
            } else {
                None
            };
            let as_found = runs
                .iter()
                .find(|run| run.run.slot == Slot::A)
                .and_then(|run| run.run.config.as_ref());
            for run in &runs {
                let configs = run.run.config.as_ref().zip(as_found);
                let changes = configs.map(|(config, found)| config.values_unlike(found));
                blocks.extend(run.blocks(&changes.unwrap_or_default()));
                blocks.extend(chart.take());
            }
            for (of, pair) in &self.pairs {
                if *of == stage {
                    blocks.extend(comparison(stage, pair));
                }
            }
        }
        blocks
    }

    /// Returns a sentence about the date and the machine of the measurement.
    pub fn origin(&self) -> SheetBlock {
        let Hello {
            version, os, cores, ..
        } = &self.hello;
        let date = date_or_unknown(&self.hello.date);
        SheetBlock::Intro(format!(
            "Measured on {date} by perflings {version}, {os}, {cores} cores."
        ))
    }
}

/// Returns true if both runs have one configuration of a stage. The slot does not matter, except where another program does not tell
/// its configuration.
fn is_shown_with(one: &RunStory, other: &RunStory) -> bool {
    if one.description.is_foreign() && one.description.slot != other.description.slot {
        return false;
    }
    let in_slot = RunDescription {
        slot: one.description.slot,
        ..other.description.clone()
    };
    one.description.is_like(&in_slot) && one.description.name == in_slot.name
}

/// Returns the words for the device of a run: `on EPYC 9654, 2 threads (cpu)`.
fn device_in_words(run: &RunDescription) -> String {
    match &run.device {
        Some(device) => format!("on {} ({})", device.name, device.kind),
        None => "on an unknown device".to_owned(),
    }
}

fn date_or_unknown(date: &str) -> &str {
    match date {
        "" => "date unknown",
        date => date,
    }
}

/// Returns a chart with the losses of a stage's runs; `None` without a run of several points.
fn loss_chart(stage: u32, runs: &[&Section]) -> Option<SheetBlock> {
    let mut curves = Vec::new();
    for run in runs.iter().filter(|run| run.curve.len() > 1) {
        let points = run.curve.iter();
        curves.push(Curve {
            name: run.run.name.clone(),
            points: points.map(|(step, loss)| (*step as f64, loss.0)).collect(),
        });
    }
    if curves.is_empty() {
        return None;
    }
    let name = match stage {
        0 => "Loss over steps".to_owned(),
        stage => format!("Loss over steps, stage {stage}"),
    };
    let first = runs.first()?;
    let mut levels = Vec::new();
    for (name, loss) in [("ln V", first.run.ln_vocab), ("entropy", first.run.entropy)] {
        levels.extend(loss.map(|loss| (name.to_owned(), loss)));
    }
    Some(SheetBlock::Chart(SheetChart {
        name,
        curves,
        levels,
    }))
}

/// Returns the result of a paired comparison.
fn comparison(stage: u32, pair: &Pair) -> [SheetBlock; 2] {
    let title = match stage {
        0 => "Comparison".to_owned(),
        stage => format!("Comparison, stage {stage}"),
    };
    let verdict = match pair.verdict {
        Verdict::Unclear => format!("unclear (n={})", pair.n),
        Verdict::Same => "A and B differ by less than 1 %".to_owned(),
        verdict => format!("B is {verdict}"),
    };
    let per_step = pair.tokens.map_or_else(String::new, |[a, b]| {
        format!(" for {a} and {b} tokens a step")
    });
    let differs = differing_keys(pair);
    let text = format!(
        "{verdict}: time of A over time of B {} (95 % interval), n = {} pairs. \
         A median {:.3} ms, B median {:.3} ms{per_step}. They differ in {differs}.",
        pair.figures(),
        pair.n,
        Digits(pair.a_ms.median),
        Digits(pair.b_ms.median)
    );
    [SheetBlock::Heading(title), SheetBlock::Intro(text)]
}

/// Returns the keys in which A and B differ, or `nothing`.
pub fn differing_keys(pair: &Pair) -> String {
    match pair.differs.join(", ") {
        none if none.is_empty() => "nothing".to_owned(),
        differs => differs,
    }
}

/// Returns a sentence with a lint, its reason and its advice.
pub fn in_words(lint: &Lint) -> String {
    let why = lint.why.trim_end_matches('.');
    format!("{}: {why}. Next: {}", lint.name, lint.next)
}

/// Writes a loss with four digits after the point; NaN is written as NaN.
pub fn loss_in_words(x: Num) -> String {
    if x.0.is_finite() {
        format!("{:.4}", Digits(x.0))
    } else {
        x.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::sheet::absent;
    use protocol::config::{Preset, RunConfig};

    fn begun(learning_rate: f64, from_step: u64, paired: bool) -> Event {
        let mut config = RunConfig::preset(Preset::Tiny);
        config.train.learning_rate = learning_rate;
        let run = RunSpec {
            stage: 1,
            ..RunSpec::new("broken", &config)
        };
        Event::Started(Started {
            run,
            config: config.hash(),
            device: Device::default(),
            parameters: 1,
            tensors: 1,
            ln_vocab: 6.9,
            entropy: None,
            forward_flops: 1.0,
            from_step,
            peaks: None,
            paired,
            matrix_cores: false,
            request: 0,
        })
    }

    /// Plays runs with two learning rates: where each begins, whether it is a side of pairs, and the steps that it makes.
    fn played(runs: &[(f64, u64, bool, std::ops::Range<u64>)]) -> StreamStory {
        let mut story = StreamStory::default();
        for (peak, (rate, from, paired, made)) in (1..).zip(runs.iter().cloned()) {
            story.on_event(&begun(rate, from, paired), 0);
            steps(&mut story, made);
            story.on_event(
                &Event::Memory(Memory {
                    peak_bytes: Some(peak),
                    ..Memory::default()
                }),
                0,
            );
        }
        story
    }

    fn steps(story: &mut StreamStory, steps: std::ops::Range<u64>) {
        for step in steps {
            let step = Step {
                step,
                loss: Some(Num(7.0 - step as f64 / 1000.0)),
                ..Step::default()
            };
            story.on_event(&Event::Step(step), 0);
        }
    }

    fn points(report: &RunReport) -> Vec<(f64, f64)> {
        let blocks = report.blocks(true);
        let chart = blocks.iter().find_map(|block| match block {
            SheetBlock::Chart(chart) => Some(chart),
            _ => None,
        });
        chart.expect("a curve").curves[0].points.clone()
    }

    #[test]
    fn peaks_that_were_measured_after_the_first_loss_are_in_the_report() {
        let mut story = played(&[(0.1, 0, false, 0..1)]);
        let calibrated = Event::Calibrated {
            device: Device::default(),
            peaks: Peaks::default(),
        };
        story.on_event(&calibrated, 0);
        assert!(
            RunReport::from_story(&story).sections[0]
                .run
                .peaks
                .is_some()
        );
    }

    #[test]
    fn a_curve_never_runs_back() {
        let mut runs = vec![
            (0.1, 0, false, 0..50),
            // Pairs begin at step 0 and do not belong to the curve.
            (0.1, 0, true, 0..20),
            (0.1, 50, false, 50..60),
            // Another run trains these weights in between.
            (0.2, 60, false, 60..90),
            (0.1, 90, false, 90..99),
            // The run is started again, but makes fewer steps.
            (0.1, 0, false, 0..30),
        ];
        let ends = |runs: &[(f64, u64, bool, std::ops::Range<u64>)]| {
            let report = RunReport::from_story(&played(runs));
            let points = points(&report);
            assert!(points.is_sorted_by(|a, b| a.0 < b.0), "{points:?}");
            assert_eq!(report.sections.len(), 2);
            let last = report.sections[0].last.map(|(step, _)| step);
            (points.last().map(|point| point.0), last)
        };
        assert_eq!(ends(&runs), (Some(59.0), Some(59)));
        runs.push((0.1, 0, false, 0..80));
        assert_eq!(ends(&runs), (Some(79.0), Some(79)));
    }

    #[test]
    fn a_run_that_goes_on_joins_its_curve() {
        let report =
            RunReport::from_story(&played(&[(0.1, 0, false, 0..50), (0.1, 50, false, 50..60)]));
        let last = report.sections[0].last;
        assert_eq!(last.map(|(step, _)| step), Some(59));
    }

    #[test]
    fn figures_are_those_of_the_run_whose_curve_is_drawn() {
        let runs = [
            (0.1, 0, false, 0..50),
            (0.1, 0, false, 0..30),
            (0.2, 30, false, 30..60),
            // The first run continues with weights that another run has trained.
            (0.1, 60, false, 60..90),
            // The first run is started again and makes more steps.
            (0.1, 0, false, 0..60),
        ];
        for (number, expected) in [(1, 1), (2, 1), (3, 1), (4, 1), (5, 5)] {
            let report = RunReport::from_story(&played(&runs[..number]));
            let memory = report.sections[0].memory.as_ref();
            assert_eq!(memory.and_then(|memory| memory.peak_bytes), Some(expected));
        }
    }

    #[test]
    fn what_a_run_did_not_tell_has_its_reason() {
        let mut story = StreamStory::default();
        let run = RunDescription {
            name: "train.py".to_owned(),
            rank: Some(3),
            ..RunDescription::default()
        };
        story.begin(run, 0);
        steps(&mut story, 0..3);
        let text = RunReport::from_story(&story).sheet().markdown();
        assert!(text.contains("train.py, rank 3"), "{text}");
        let row = text.lines().find(|line| line.contains("ln V"));
        assert!(
            row.is_some_and(|row| row.contains(&absent("unknown"))),
            "{text}"
        );
    }

    /// Reads a file that an earlier version wrote.
    #[test]
    fn runs_that_were_kept_are_read_back() {
        let kept = r#"{"hello":{"protocol":1,"version":"0.1.0","pid":1,"os":"linux","cores":2,"date":"2026-11-21"},"sections":[{"started":STARTED,"date":"2026-11-20","first":[0,6.9],"last":[40,"NaN"],"curve":[[0,6.9],[2,6.8]],"every":2,"throughput":null,"kernels":null,"gradients":null,"memory":null,"lints":[],"ended":null,"others":null}],"pairs":[]}"#;
        let Event::Started(started) = begun(0.1, 0, false) else {
            unreachable!()
        };
        let started = serde_json::to_string(&started).expect("plain data");
        let kept = kept.replace("STARTED", &started);
        let report: RunReport = serde_json::from_str(&kept).expect("a file of today");
        assert_eq!(report.sections[0].curve[1], (2, Num(6.8)));
        assert_eq!(serde_json::to_string(&report).expect("plain data"), kept);
    }
}
