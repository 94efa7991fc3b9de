//! Writes a page about the runs of a stream. It is equal for a live session and for the recording of this session. It has one section for
//! each configuration of a stage. The section shows the longest run, with the figures of other runs where the longest run lacks them.

mod section;

use serde::{Deserialize, Serialize};

use super::sheet::{Curve, Sheet, SheetBlock, SheetChart};
use protocol::story::{RunDescription, RunStory, StreamStory};
use protocol::units::Digits;
use protocol::*;
use section::Section;

/// A run replaces a saved run only if its curve has at least this number of points.
const MIN_POINTS: usize = 10;

/// The sections of a report. A file keeps the last runs of each stage in this form.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RunReport {
    hello: Hello,
    sections: Vec<Section>,
    /// The last paired comparison of each stage.
    pairs: Vec<(u32, Pair)>,
}

impl RunReport {
    /// Returns the report on the runs of a stream, in the order in which their configurations began.
    pub fn from_story(story: &StreamStory) -> Self {
        let mut runs: Vec<&RunStory> = story.runs().collect();
        runs.sort_by_key(|run| run.number);
        let mut groups: Vec<Vec<&RunStory>> = Vec::new();
        for run in runs {
            let is_alike = |group: &&mut Vec<_>| has_same_configuration(group[0], run);
            match groups.iter_mut().find(is_alike) {
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
            if section.stage() == 0 || section.curve.len() < MIN_POINTS {
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

    fn sections_of(&self, stage: u32) -> Vec<&Section> {
        let is_of_stage = |section: &&Section| section.stage() == stage;
        self.sections.iter().filter(is_of_stage).collect()
    }

    /// Returns the figures of the last broken and of the last fixed run of a stage, for texts with figures.
    pub fn figures(&self, stage: u32) -> [Option<Finished>; 2] {
        let last_named = |names: &[&str]| {
            self.sections_of(stage)
                .into_iter()
                .rfind(|section| names.contains(&section.run.name.as_str()))
                .map(Section::summed_up)
        };
        [last_named(&["broken"]), last_named(&["fixed", "custom"])]
    }

    /// Returns the curves of a stage, and the device and date of each.
    pub fn curves_of_stage(&self, stage: u32) -> Vec<SheetBlock> {
        let sections = self.sections_of(stage);
        let mut blocks: Vec<SheetBlock> = loss_chart(stage, &sections).into_iter().collect();
        for section in sections {
            let device = device_in_words(&section.run);
            let date = date_or_unknown(&section.date);
            blocks.push(SheetBlock::Remark(format!(
                "{}: {device}, {date}",
                section.run.name
            )));
        }
        blocks
    }

    /// Returns the runs and the comparisons. The curves of stages are included if `with_curves` is set.
    pub fn blocks(&self, with_curves: bool) -> Vec<SheetBlock> {
        let mut stages: Vec<u32> = self.sections.iter().map(Section::stage).collect();
        stages.sort_unstable();
        stages.dedup();
        let mut blocks = Vec::new();
        for stage in stages {
            let sections = self.sections_of(stage);
            let mut chart = if with_curves || stage == 0 {
                loss_chart(stage, &sections)
            } else {
                None
            };
            let as_found = sections
                .iter()
                .find(|section| section.run.slot == Slot::A)
                .and_then(|section| section.run.config.as_ref());
            for section in &sections {
                let configs = section.run.config.as_ref().zip(as_found);
                let changes = configs.map(|(config, found)| config.values_unlike(found));
                blocks.extend(section.blocks(&changes.unwrap_or_default()));
                blocks.extend(chart.take());
            }
            for (stage_of_pair, pair) in &self.pairs {
                if *stage_of_pair == stage {
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

/// Returns true if both runs have one configuration of a stage, so that they share a section. The slot does not matter. A run of another
/// program does not report its configuration, so its slot tells it from the run beside it.
fn has_same_configuration(one: &RunStory, other: &RunStory) -> bool {
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
fn loss_chart(stage: u32, sections: &[&Section]) -> Option<SheetBlock> {
    let mut curves = Vec::new();
    for section in sections.iter().filter(|section| section.curve.len() > 1) {
        let points = section.curve.iter();
        curves.push(Curve {
            name: section.run.name.clone(),
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
    let first = sections.first()?;
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
    if pair.differs.is_empty() {
        return "nothing".to_owned();
    }
    pair.differs.join(", ")
}

/// Returns a sentence with a lint, its reason and its advice.
pub fn in_words(lint: &Lint) -> String {
    let why = lint.why.trim_end_matches('.');
    format!("{}: {why}. Next: {}", lint.name, lint.next)
}

/// Writes a loss with four digits after the point; NaN is written as NaN.
pub fn loss_in_words(loss: Num) -> String {
    if loss.0.is_finite() {
        format!("{:.4}", Digits(loss.0))
    } else {
        loss.to_string()
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;
    use crate::pages::sheet::absent;
    use protocol::config::{Preset, RunConfig};

    /// A run of stage 1 that a test plays. Runs with different learning rates have different configurations.
    struct PlayedRun {
        learning_rate: f64,
        /// The steps that the run makes.
        steps: Range<u64>,
        /// True if the run is a side of a paired comparison.
        paired: bool,
    }

    fn run(learning_rate: f64, steps: Range<u64>) -> PlayedRun {
        PlayedRun {
            learning_rate,
            steps,
            paired: false,
        }
    }

    fn started(played: &PlayedRun) -> Event {
        let mut config = RunConfig::preset(Preset::Tiny);
        config.train.learning_rate = played.learning_rate;
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
            from_step: played.steps.start,
            peaks: None,
            paired: played.paired,
            matrix_cores: false,
            request: 0,
        })
    }

    /// Plays runs one after the other. The peak of memory of each run is its number, counted from 1.
    fn story_of(runs: &[PlayedRun]) -> StreamStory {
        let mut story = StreamStory::default();
        for (number, run) in (1..).zip(runs) {
            story.on_event(&started(run), 0);
            make_steps(&mut story, run.steps.clone());
            let memory = Memory {
                peak_bytes: Some(number),
                ..Memory::default()
            };
            story.on_event(&Event::Memory(memory), 0);
        }
        story
    }

    fn make_steps(story: &mut StreamStory, steps: Range<u64>) {
        for step in steps {
            let step = Step {
                step,
                loss: Some(Num(7.0 - step as f64 / 1000.0)),
                ..Step::default()
            };
            story.on_event(&Event::Step(step), 0);
        }
    }

    /// Returns the points of the first curve that is drawn.
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
        let mut story = story_of(&[run(0.1, 0..1)]);
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
    fn a_curve_has_the_longest_run_and_never_goes_back_to_an_earlier_step() {
        let mut runs = vec![
            run(0.1, 0..50),
            // Pairs begin at step 0 and do not belong to the curve.
            PlayedRun {
                paired: true,
                ..run(0.1, 0..20)
            },
            run(0.1, 50..60),
            // Another configuration trains these weights in between.
            run(0.2, 60..90),
            run(0.1, 90..99),
            // The run is started again, but makes fewer steps.
            run(0.1, 0..30),
        ];
        let assert_last_step = |runs: &[PlayedRun], expected: u64| {
            let report = RunReport::from_story(&story_of(runs));
            let points = points(&report);
            assert!(points.is_sorted_by(|a, b| a.0 < b.0), "{points:?}");
            assert_eq!(report.sections.len(), 2, "one for each configuration");
            let last = report.sections[0].last.map(|(step, _)| step);
            assert_eq!(last, Some(expected));
            let last_point = points.last().map(|point| point.0);
            assert_eq!(last_point, Some(expected as f64));
        };
        assert_last_step(&runs, 59);
        runs.push(run(0.1, 0..80));
        assert_last_step(&runs, 79);
    }

    #[test]
    fn a_run_that_continues_joins_its_curve() {
        let report = RunReport::from_story(&story_of(&[run(0.1, 0..50), run(0.1, 50..60)]));
        let last = report.sections[0].last;
        assert_eq!(last.map(|(step, _)| step), Some(59));
    }

    #[test]
    fn figures_come_from_the_run_whose_curve_is_drawn() {
        let runs = [
            run(0.1, 0..50),
            run(0.1, 0..30),
            run(0.2, 30..60),
            // The first run continues with weights that another run has trained.
            run(0.1, 60..90),
            // The first run is started again and makes more steps.
            run(0.1, 0..60),
        ];
        for (number, expected) in [(1, 1), (2, 1), (3, 1), (4, 1), (5, 5)] {
            let report = RunReport::from_story(&story_of(&runs[..number]));
            let memory = report.sections[0].memory.as_ref();
            assert_eq!(memory.and_then(|memory| memory.peak_bytes), Some(expected));
        }
    }

    #[test]
    fn a_figure_that_a_run_did_not_report_has_a_reason() {
        let mut story = StreamStory::default();
        let run = RunDescription {
            name: "train.py".to_owned(),
            rank: Some(3),
            ..RunDescription::default()
        };
        story.begin(run, 0);
        make_steps(&mut story, 0..3);
        let text = RunReport::from_story(&story).sheet().markdown();
        assert!(text.contains("train.py, rank 3"), "{text}");
        let row = text.lines().find(|line| line.contains("ln V"));
        assert!(
            row.is_some_and(|row| row.contains(&absent("unknown"))),
            "{text}"
        );
    }

    #[test]
    fn a_file_of_an_earlier_version_is_read_and_written_unchanged() {
        let template = r#"{"hello":{"protocol":1,"version":"0.1.0","pid":1,"os":"linux","cores":2,"date":"2026-11-21"},"sections":[{"started":STARTED,"date":"2026-11-20","first":[0,6.9],"last":[40,"NaN"],"curve":[[0,6.9],[2,6.8]],"every":2,"throughput":null,"kernels":null,"gradients":null,"memory":null,"lints":[],"ended":null,"others":null}],"pairs":[]}"#;
        let Event::Started(started) = started(&run(0.1, 0..1)) else {
            unreachable!()
        };
        let started_json = serde_json::to_string(&started).expect("plain data");
        let file = template.replace("STARTED", &started_json);
        let report: RunReport = serde_json::from_str(&file).expect("a report");
        assert_eq!(report.sections[0].curve[1], (2, Num(6.8)));
        assert_eq!(serde_json::to_string(&report).expect("plain data"), file);
    }
}
