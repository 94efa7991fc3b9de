//! `perflings compare`: two configurations in pairs on one device. It refuses what would compare different work.

use anyhow::Result;

use super::args::CompareArgs;
use super::variant::{change, named};
use crate::config::{Changes, Knob};
use crate::course::named::NamedConfig;
use crate::measure::runner::{Runner, Work, engine_command};
use crate::out::{Exit, notice, progress, result, usage};
use crate::protocol::{Event, Pair, Slot, Spread, Verdict};

pub fn compare(args: &CompareArgs) -> Result<Exit> {
    let context = args.course.load()?;
    let preset = args.change.preset;
    let mut a = named(&args.a, &context, preset)?;
    let mut b = named(&args.b, &context, preset)?;
    change(&mut a.config, &args.change)?;
    change(&mut b.config, &args.change)?;
    refuse_different_work(&a, &b)?;
    let command = engine_command(args.engine.engine.as_deref())?;
    let mut runner = Runner::new(command, args.record.as_deref())?;
    let work = Work::Pair {
        a: a.spec(Slot::A),
        b: b.spec(Slot::B),
        pairs: args.pairs,
    };
    let mut shown = 0;
    let measured = runner.measure(&args.engine.device, &work, |line, text| {
        match &line.event {
            _ if args.json => result(text)?,
            Event::Pair(pair) if pair.n >= shown + 5 => {
                shown = pair.n;
                progress(&format!(
                    "{} of {} pairs, ratio {:.3} so far, {:.0} s left",
                    pair.n, pair.wanted, pair.ratio, pair.remaining_s
                ));
            }
            Event::Started(started) => progress(&format!(
                "{:?}: {} on {}",
                started.run.slot, started.run.variant, started.device.name
            )),
            _ => {}
        }
        if let Event::Log(log) = &line.event
            && log.level != "info"
        {
            progress(&format!("{}: {}", log.level, log.text));
        }
        Ok(())
    })?;
    match &measured.pair {
        Some(pair) if !args.json => result(&verdict(pair, &a.name, &b.name))?,
        Some(_) => {}
        None => notice("no pair was measured"),
    }
    Ok(if measured.interrupted {
        Exit::Interrupted
    } else {
        Exit::Ok
    })
}

/// Names every key that makes the two do different work, unless the stage they belong to studies it.
fn refuse_different_work(a: &NamedConfig, b: &NamedConfig) -> Result<()> {
    let one_stage = a.stage == b.stage && a.stage != 0;
    let studied = |path: &str| one_stage && a.varies.iter().any(|v| v == path);
    let other_preset = a.config.preset != b.config.preset;
    let found: Vec<String> = a
        .config
        .differences(&b.config)
        .into_iter()
        .filter_map(Knob::known)
        .filter(|knob| knob.changes_work() && !studied(knob.path))
        // Sizes follow from the preset; naming it says it all.
        .filter(|knob| !other_preset || knob.path == "preset" || knob.changes != Changes::Size)
        .map(|knob| {
            let (a, b) = ((knob.get)(&a.config), (knob.get)(&b.config));
            format!("{} ({a} and {b})", knob.path)
        })
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
    let spread = |s: &Spread| {
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
