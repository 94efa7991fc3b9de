//! `perflings compare`: two configurations in pairs on one device. It refuses what would compare different work.

use anyhow::Result;

use super::CompareArgs;
use super::variant::{change, named, preset_of};
use crate::course::named::NamedConfig;
use crate::measure::drive::{Drive, Ending, Flow, engine_command};
use crate::measure::machine;
use crate::out::{Exit, notice, progress, result, usage};
use crate::protocol::{Command, Event, Pair, RunSpec, Slot, Verdict};

/// Keys that say how much is computed, or on what. A comparison at different values of these compares nothing.
const SAME: &[&str] = &[
    "preset",
    "model.hidden",
    "model.layers",
    "model.heads",
    "model.kv-heads",
    "model.ffn",
    "model.vocab",
    "train.data",
    "train.precision",
    "train.batch",
    "train.context",
    "train.seed",
    "train.learning-rate",
];

pub fn compare(args: &CompareArgs) -> Result<Exit> {
    let context = args.course.load()?;
    let preset = preset_of(&args.change)?;
    let mut a = named(&args.a, &context, preset)?;
    let mut b = named(&args.b, &context, preset)?;
    change(&mut a.config, &args.change)?;
    change(&mut b.config, &args.change)?;
    refuse_different_work(&a, &b)?;
    let command = engine_command(args.engine.engine.as_deref())?;
    if command.is_own() {
        machine::check_memory(&args.engine.device, &[&a.config, &b.config])?;
    }
    let mut drive = Drive::new(command, args.record.as_deref())?;
    let (name_a, name_b) = (a.name.clone(), b.name.clone());
    let stage = if a.stage == b.stage { a.stage } else { 0 };
    let pair = Command::Pair {
        device: args.engine.device.clone(),
        stage,
        a: spec(a, Slot::A),
        b: spec(b, Slot::B),
        pairs: args.pairs,
    };
    let mut last: Option<Pair> = None;
    let mut shown = 0;
    let ending = drive.converse(pair, |line, text| {
        if args.json {
            result(text)?;
        }
        match &line.event {
            Event::Pair(pair) => {
                if !args.json && pair.n >= shown + 5 {
                    shown = pair.n;
                    progress(&format!(
                        "{} of {} pairs, ratio {:.3} so far, {:.0} s left",
                        pair.n, pair.wanted, pair.ratio, pair.remaining_s
                    ));
                }
                last = Some(pair.clone());
            }
            Event::Started(started) if !args.json => {
                progress(&format!(
                    "{:?}: {} on {}",
                    started.run.slot, started.run.variant, started.device.name
                ));
            }
            Event::Log(log) if log.level != "info" => {
                progress(&format!("{}: {}", log.level, log.text))
            }
            Event::Finished(finished) => {
                last = finished.pair.clone().or(last.take());
                return Ok(Flow::Done);
            }
            _ => {}
        }
        Ok(Flow::Go)
    })?;
    match last {
        Some(pair) if !args.json => result(&verdict(&pair, &name_a, &name_b))?,
        Some(_) => {}
        None => notice("no pair was measured"),
    }
    Ok(if ending == Ending::Interrupted {
        Exit::Interrupted
    } else {
        Exit::Ok
    })
}

fn spec(subject: NamedConfig, slot: Slot) -> RunSpec {
    RunSpec {
        stage: subject.stage,
        variant: subject.variant,
        slot,
        config: subject.config,
        steps: None,
    }
}

/// Names every key that makes the two do different work, unless the stage they belong to studies it.
fn refuse_different_work(a: &NamedConfig, b: &NamedConfig) -> Result<()> {
    let studied = |path: &str| {
        let one_stage = a.stage == b.stage && a.stage != 0;
        one_stage && a.varies.iter().any(|v| v == path)
    };
    let other_preset = a.config.preset != b.config.preset;
    // Sizes follow from the preset; naming it says it all.
    let follows = |path: &str| other_preset && path != "preset" && is_size(path);
    let found: Vec<String> = a
        .config
        .differences(&b.config)
        .into_iter()
        .filter(|path| SAME.contains(path) && !studied(path) && !follows(path))
        .map(|path| format!("{path} ({} and {})", a.value(path), b.value(path)))
        .collect();
    if found.is_empty() {
        return Ok(());
    }
    Err(usage(format!(
        "{} and {} do different work and cannot be compared: they differ in {}. Give both the same with --preset or --set",
        a.name,
        b.name,
        found.join(", ")
    )))
}

fn is_size(path: &str) -> bool {
    path.starts_with("model.") || matches!(path, "train.batch" | "train.context")
}

/// One line, and below it what it rests on.
fn verdict(pair: &Pair, a: &str, b: &str) -> String {
    let interval = format!(
        "{:.3}x [{:.3}, {:.3}], n = {}",
        pair.ratio, pair.low, pair.high, pair.n
    );
    let line = match pair.verdict {
        Verdict::Faster => format!("{b} is faster than {a}: {interval}"),
        Verdict::Slower => format!("{b} is slower than {a}: {interval}"),
        Verdict::Same => format!("{b} and {a} are the same within noise: {interval}"),
        Verdict::Unclear => format!("unclear (n={}): {interval}", pair.n),
    };
    let differs = if pair.differs.is_empty() {
        "nothing".to_owned()
    } else {
        pair.differs.join(", ")
    };
    let spread = |s: &crate::protocol::Spread| {
        format!(
            "{:.2} ms [{:.2}, {:.2}], p95 {:.2}",
            s.median, s.p25, s.p75, s.p95
        )
    };
    format!(
        "{line}\n  A  {a}: {}\n  B  {b}: {}\n  differ in {differs}",
        spread(&pair.a_ms),
        spread(&pair.b_ms)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Norm, Preset, RunConfig};

    fn subject(preset: Preset) -> NamedConfig {
        NamedConfig {
            name: preset.to_string(),
            stage: 0,
            variant: "custom".to_owned(),
            config: RunConfig::preset(preset),
            varies: Vec::new(),
        }
    }

    #[test]
    fn different_work_is_refused_by_key() {
        let error = refuse_different_work(&subject(Preset::Tiny), &subject(Preset::Small))
            .expect_err("refused")
            .to_string();
        assert!(
            error.contains("differ in preset (tiny and small). Give"),
            "{error}"
        );
        let mut seeded = subject(Preset::Tiny);
        seeded.config.train.seed = 43;
        let error = refuse_different_work(&subject(Preset::Tiny), &seeded)
            .expect_err("refused")
            .to_string();
        assert!(error.contains("train.seed (42 and 43)"), "{error}");
        let mut fused = subject(Preset::Tiny);
        fused.config.model.norm = Norm::Fused;
        assert!(refuse_different_work(&subject(Preset::Tiny), &fused).is_ok());
    }

    #[test]
    fn a_stage_may_study_what_others_must_keep() {
        let (mut a, mut b) = (subject(Preset::Tiny), subject(Preset::Tiny));
        b.config.train.batch = 4;
        assert!(refuse_different_work(&a, &b).is_err());
        (a.stage, b.stage) = (7, 7);
        a.varies = vec!["train.batch".to_owned()];
        assert!(refuse_different_work(&a, &b).is_ok());
    }

    #[test]
    fn the_verdict_carries_its_interval() {
        let pair = Pair {
            n: 30,
            ratio: 1.25,
            low: 1.2,
            high: 1.3,
            verdict: Verdict::Faster,
            ..Pair::default()
        };
        assert!(
            verdict(&pair, "v1", "v3")
                .starts_with("v3 is faster than v1: 1.250x [1.200, 1.300], n = 30\n")
        );
    }
}
