//! What each knob with a faster version is worth: combinations of them compared in pairs, and each knob's mean effect.

use anyhow::Result;
use serde::Serialize;

use super::plan::{self, Job, Progress};
use super::report::{FORMAT, Machine, Missing};
use super::runner::{Runner, Work};
use crate::config::{Knob, Preset, RunConfig, Value};
use crate::out::usage;
use crate::profile::stats::mean_ratio;
use crate::protocol::{Pair, Verdict};

/// Which knobs have their faster value: bit k is the k-th knob of [`Knob::with_fast_version`].
type Combination = u32;

/// Two combinations to be timed against each other: times of `a` over times of `b`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Contrast {
    a: Combination,
    b: Combination,
    place: Place,
}

/// Where an effect was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// Plain against itself: what the method reports where there is no effect.
    None,
    /// Everything against plain.
    All,
    /// One knob turned on, the others plain.
    FromPlain,
    /// One knob turned off, the others on.
    FromFull,
    /// Any combination against plain.
    Combination,
    /// A knob's mean over all combinations of the others.
    Mean,
}

/// What something is worth: time without it over time with it, above 1 it helps.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Effect {
    pub name: String,
    pub place: Place,
    pub ratio: f64,
    /// 95 % interval.
    pub low: f64,
    pub high: f64,
    pub n: u32,
    pub verdict: Verdict,
}

/// The whole result.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Ablation {
    pub bench: &'static str,
    pub format: u32,
    pub machine: Machine,
    pub groups: Vec<Group>,
    pub missing: Vec<Missing>,
    pub interrupted: bool,
}

/// One preset on one device.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Group {
    pub select: String,
    pub device: String,
    pub preset: String,
    /// As measured.
    pub effects: Vec<Effect>,
    /// Each knob's mean over the combinations, where all were asked for.
    pub means: Vec<Effect>,
}

/// Compares combinations of the knobs on each device at each base: each knob alone, or with `full` all combinations.
pub fn measure(
    runner: &mut Runner,
    devices: &[String],
    bases: &[(Preset, RunConfig)],
    full: bool,
    pairs: u32,
    tell: &mut dyn FnMut(Progress<'_>) -> Result<()>,
) -> Result<Ablation> {
    let contrasts = if full {
        every_combination()
    } else {
        each_knob()
    };
    let mut jobs = Vec::new();
    for device in devices {
        for (preset, base) in bases {
            for (at, contrast) in contrasts.iter().enumerate() {
                let (a, b) = (combine(base, contrast.a)?, combine(base, contrast.b)?);
                let (of_a, of_b) = (name(contrast.a), name(contrast.b));
                let (number, of) = (at + 1, contrasts.len());
                jobs.push(Job {
                    label: format!("{number} of {of}, {preset} on {device}: {of_b} against {of_a}"),
                    subject: jobs.len(),
                    device: device.clone(),
                    work: Work::pair((&of_a, &a), (&of_b, &b), pairs),
                    fresh: false,
                    must_finish: true,
                });
            }
        }
    }
    plan::check_memory(runner, &jobs)?;
    let outcome = plan::measure(runner, &jobs, tell)?;
    let mut ablation = Ablation {
        bench: "ablation",
        format: FORMAT,
        machine: Machine::of(runner.hello()),
        interrupted: outcome.interrupted,
        ..Ablation::default()
    };
    let place = |subject: usize| {
        let (preset, _) = &bases[subject / contrasts.len() % bases.len()];
        (*preset, &contrasts[subject % contrasts.len()])
    };
    for (subject, measured) in &outcome.measured {
        let (preset, contrast) = place(*subject);
        let (Some(pair), Some(finished)) = (&measured.pair, &measured.finished) else {
            continue;
        };
        let (select, preset) = (&jobs[*subject].device, preset.to_string());
        let groups = &mut ablation.groups;
        if groups
            .last()
            .is_none_or(|group| (&group.select, &group.preset) != (select, &preset))
        {
            groups.push(Group {
                select: select.clone(),
                preset,
                device: finished.device.name.clone(),
                ..Group::default()
            });
        }
        if let Some(group) = groups.last_mut() {
            group.effects.push(effect(contrast, pair));
        }
    }
    if full {
        for group in &mut ablation.groups {
            group.means = means(&group.effects);
        }
    }
    let missing = outcome.failures.iter().map(|failure| {
        let (preset, contrast) = place(failure.subject);
        let what = format!("{} against {}", name(contrast.b), name(contrast.a));
        Missing::of(failure, preset, what, None)
    });
    ablation.missing = missing.collect();
    Ok(ablation)
}

/// Refuses a base that has a faster version on already: the ablation would overwrite it.
pub fn check_base(base: &RunConfig) -> Result<(), &'static str> {
    let differs = Knob::with_fast_version().find(|knob| Some(&*(knob.get)(base)) != knob.plain());
    differs.map_or(Ok(()), |knob| Err(knob.path))
}

fn knobs() -> Vec<&'static Knob> {
    Knob::with_fast_version().collect()
}

/// Every knob on.
fn all_on() -> Combination {
    (1 << knobs().len()) - 1
}

/// All, none, and each knob alone from both ends.
fn each_knob() -> Vec<Contrast> {
    let contrast = |a, b, place| Contrast { a, b, place };
    let all = all_on();
    let bits: Vec<Combination> = (0..knobs().len()).map(|k| 1 << k).collect();
    let alone = bits.iter().map(|bit| contrast(0, *bit, Place::FromPlain));
    let last = bits
        .iter()
        .map(|bit| contrast(all & !bit, all, Place::FromFull));
    [contrast(0, 0, Place::None), contrast(0, all, Place::All)]
        .into_iter()
        .chain(alone)
        .chain(last)
        .collect()
}

/// Every combination against plain, plain itself included.
fn every_combination() -> Vec<Contrast> {
    let place = |b| match b {
        0 => Place::None,
        _ => Place::Combination,
    };
    let contrast = |b| Contrast {
        a: 0,
        b,
        place: place(b),
    };
    (0..=all_on()).map(contrast).collect()
}

/// The configuration with these knobs at their faster values and the others plain.
fn combine(base: &RunConfig, on: Combination) -> Result<RunConfig> {
    let mut config = base.clone();
    for (k, knob) in knobs().into_iter().enumerate() {
        let value = if on & (1 << k) == 0 {
            knob.plain()
        } else {
            knob.fast
        };
        let value = Value::Text(value.unwrap_or_default().to_owned());
        knob.set(&mut config, &value).map_err(usage)?;
    }
    Ok(config)
}

/// `none`, `all`, or the knobs that are on.
fn name(on: Combination) -> String {
    let knobs = knobs().into_iter().enumerate();
    let on_now = knobs.filter(|(k, _)| on & (1 << k) != 0);
    let short = on_now.map(|(_, knob)| knob.path.rsplit('.').next().unwrap_or(knob.path));
    match on {
        0 => "none".to_owned(),
        on if on == all_on() => "all".to_owned(),
        _ => short.collect::<Vec<_>>().join(" + "),
    }
}

/// `model.qkv = fused`.
fn assignment(knob: &Knob) -> String {
    format!("{} = {}", knob.path, knob.fast.unwrap_or_default())
}

fn effect(contrast: &Contrast, pair: &Pair) -> Effect {
    let changed = (contrast.a ^ contrast.b).trailing_zeros() as usize;
    let name = match (contrast.place, knobs().get(changed)) {
        (Place::FromPlain | Place::FromFull, Some(knob)) => assignment(knob),
        _ => name(contrast.b),
    };
    Effect {
        name,
        place: contrast.place,
        ratio: pair.ratio,
        low: pair.low,
        high: pair.high,
        n: pair.n,
        verdict: pair.verdict,
    }
}

/// Clear effects first, the greatest gain on top, the greatest loss below; then what is unclear.
pub fn rank(mut effects: Vec<Effect>) -> Vec<Effect> {
    effects.sort_by(|a, b| {
        let unclear = |effect: &Effect| effect.verdict == Verdict::Unclear;
        unclear(a)
            .cmp(&unclear(b))
            .then(b.ratio.total_cmp(&a.ratio))
    });
    effects
}

/// Each knob's mean effect over the combinations of the others: the mean of ln(gain with it / gain without it). The gain
/// of a combination is the time of plain over its time; of plain it is 1, whether or not it was measured.
fn means(effects: &[Effect]) -> Vec<Effect> {
    let gains: Vec<Option<f64>> = (0..=all_on())
        .map(|on| match on {
            0 => Some(1.0),
            on => Some(effects.iter().find(|e| e.name == name(on))?.ratio),
        })
        .collect();
    let mean = |(k, knob): (usize, &Knob)| {
        let without = (0..gains.len()).filter(|on| on & (1 << k) == 0);
        let logs: Vec<f64> = without
            .filter_map(|on| Some((gains[on | 1 << k]? / gains[on]?).ln()))
            .filter(|x| x.is_finite())
            .collect();
        let mean = mean_ratio(&logs);
        Effect {
            name: assignment(knob),
            place: Place::Mean,
            ratio: mean.ratio,
            low: mean.low,
            high: mean.high,
            n: logs.len() as u32,
            verdict: mean.verdict,
        }
    };
    let means = knobs().into_iter().enumerate().map(mean);
    // A mean of one figure has no interval.
    rank(means.filter(|effect| effect.n > 1).collect())
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// The effects of each knob alone, where `measured` says what was found for the contrast at a place of the list.
    pub fn effects(measured: impl Fn(usize) -> (f64, Verdict)) -> Vec<Effect> {
        let contrasts = each_knob();
        let effect = |(at, contrast)| {
            let (ratio, verdict) = measured(at);
            let pair = Pair {
                n: 30,
                ratio,
                low: 1.0,
                high: 3.0,
                verdict,
                ..Pair::default()
            };
            effect(contrast, &pair)
        };
        contrasts.iter().enumerate().map(effect).collect()
    }

    #[test]
    fn contrasts_cover_each_knob_from_both_ends() {
        let contrasts = each_knob();
        assert_eq!(contrasts.len(), 16);
        assert!(contrasts[2..].iter().all(|c| (c.a ^ c.b).count_ones() == 1));
        assert_eq!(every_combination().len(), 128);
    }

    #[test]
    fn combinations_are_configurations() {
        let plain = RunConfig::preset(Preset::Tiny);
        assert_eq!(combine(&plain, 0).expect("plain"), plain);
        let all = combine(&plain, all_on()).expect("all");
        assert_eq!(plain.differences(&all).len(), knobs().len());
        assert_eq!(name(0b11), "qkv + attention");
        assert_eq!(check_base(&plain), Ok(()));
        assert_eq!(check_base(&all), Err("model.qkv"));
    }

    #[test]
    fn means_recover_independent_effects() {
        let worth = [1.0, 1.2, 1.1, 2.0, 1.05, 0.8, 1.5];
        let measured = |contrast: &Contrast| {
            let on = (0..worth.len()).filter(|k| contrast.b & (1 << k) != 0);
            let ratio = on.map(|k| worth[k]).product();
            let pair = Pair {
                ratio,
                ..Pair::default()
            };
            effect(contrast, &pair)
        };
        let measured: Vec<Effect> = every_combination().iter().map(measured).collect();
        let effects = means(&measured);
        assert_eq!(
            (effects[0].name.as_str(), effects[0].n),
            (&*assignment(knobs()[3]), 64)
        );
        assert!((effects[0].ratio - 2.0).abs() < 1e-9);
        assert_eq!(effects[6].verdict, Verdict::Slower);
        assert_eq!(effects[5].verdict, Verdict::Same);
        let few = means(&measured[..11]);
        assert!(few.iter().all(|effect| effect.verdict == Verdict::Unclear));
    }
}
