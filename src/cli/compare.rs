//! `perflings compare`: measures two configurations in pairs on one device. Configurations that do different work are refused.

use anyhow::Result;

use super::args::training::CompareArgs;
use super::meter::ProgressMeter;
use super::variant::named;
use crate::course::named::NamedConfig;
use crate::measure::runner::EngineTask;
use crate::out::{self, Exit, notice, result, usage};
use crate::pages::report::differing_keys;
use protocol::config::{Changes, Knob};
use protocol::{Event, Pair, Slot, Spread, Verdict};

pub(super) fn compare(args: &CompareArgs) -> Result<Exit> {
    let context = args.course.load()?;
    let a = named(&args.a, &context, &args.change)?;
    let b = named(&args.b, &context, &args.change)?;
    refuse_different_work(&a, &b)?;
    let mut runner = args.engine.runner(args.record.as_deref())?;
    let work = EngineTask::Pair {
        a: a.spec(Slot::A),
        b: b.spec(Slot::B),
        pairs: args.pairs,
    };
    let meter = ProgressMeter::begin();
    let measured = runner.measure(&args.engine.device, &work, |line, text| {
        if args.json {
            result(text)?;
        }
        if let Event::Pair(pair) = &line.event {
            meter.set_work(format!(
                "pair {} of at most {}, at most {:.0} s left: {}",
                pair.n,
                pair.limit_pairs,
                pair.remaining_s,
                pair.figures()
            ));
        }
        out::log(&line.event);
        Ok(())
    })?;
    drop(meter);
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

/// Refuses configurations that do different work; the error names the keys in which they differ. Two configurations of one stage may differ
/// in the keys that the stage offers.
fn refuse_different_work(a: &NamedConfig, b: &NamedConfig) -> Result<()> {
    let is_one_stage = a.stage == b.stage && a.stage != 0;
    let is_offered = |path: &str| is_one_stage && a.offers.iter().any(|offer| offer == path);
    let presets_differ = a.config.preset != b.config.preset;
    let differences: Vec<String> = a
        .config
        .differences(&b.config)
        .into_iter()
        .filter_map(Knob::known)
        // If only the number of tokens in a step differs, times per token are compared.
        .filter(|knob| knob.changes_work() && !knob.changes_tokens() && !is_offered(knob.path))
        // Sizes follow from the preset, so the preset alone is named.
        .filter(|knob| !presets_differ || knob.path == "preset" || knob.changes != Changes::Size)
        .map(|knob| {
            let value_a = (knob.get)(&a.config);
            let value_b = (knob.get)(&b.config);
            format!("{} ({value_a} and {value_b})", knob.path)
        })
        .collect();
    if differences.is_empty() {
        return Ok(());
    }
    Err(usage(format!(
        "{} and {} do different work and cannot be compared: they differ in {}. \
         Give both the same with --preset or --set",
        a.name,
        b.name,
        differences.join(", ")
    )))
}

/// Returns the verdict in one line, and below it a line with the figures of each side.
fn verdict(pair: &Pair, a: &str, b: &str) -> String {
    let n = pair.n;
    let interval = format!("{}, n = {n}", pair.figures());
    let line = match pair.verdict {
        Verdict::Faster => format!("{b} is faster than {a}: {interval}"),
        Verdict::Slower => format!("{b} is slower than {a}: {interval}"),
        Verdict::Same => format!("{b} and {a} differ by less than 1 %: {interval}"),
        Verdict::Unclear => format!("unclear (n={n}): {interval}"),
    };
    let differs = differing_keys(pair);
    let spread = |times: &Spread| {
        format!(
            "{:.2} ms [{:.2}, {:.2}], p95 {:.2}",
            times.median, times.p25, times.p75, times.p95
        )
    };
    let [a_tokens, b_tokens] = match pair.tokens {
        Some(both) => both.map(|tokens| format!(" for {tokens} tokens")),
        None => Default::default(),
    };
    format!(
        "{line}\n  A  {a}: {}{a_tokens}\n  B  {b}: {}{b_tokens}\n  differ in {differs}",
        spread(&pair.a_ms),
        spread(&pair.b_ms)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::config::{Preset, RunConfig};

    #[test]
    fn configurations_of_one_stage_may_differ_in_the_keys_that_it_offers() {
        let mut a = NamedConfig {
            name: "mine".to_owned(),
            stage: 0,
            variant: "custom".to_owned(),
            config: RunConfig::preset(Preset::Tiny),
            offers: vec!["train.batch".to_owned()],
        };
        let mut b = a.clone();
        b.config.train.batch = 4;
        b.config.train.context = 32;
        assert!(refuse_different_work(&a, &b).is_ok(), "time per token");
        b.config.model.layers += 1;
        assert!(refuse_different_work(&a, &b).is_err());
        a.offers = vec!["model.layers".to_owned()];
        a.stage = 7;
        b.stage = 7;
        assert!(refuse_different_work(&a, &b).is_ok());
    }
}
