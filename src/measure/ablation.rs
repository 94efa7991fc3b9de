//! What each knob with a faster version is worth: combinations of them compared in pairs, and each knob's mean effect.

use anyhow::Result;
use serde::Serialize;

use crate::config::{Knob, KnobValue, RunConfig};
use crate::out::usage;
use crate::protocol::{Pair, Verdict};
use crate::stats::sequential::{FIRST_LOOK, LookResult, verdict};

/// Which knobs have their faster value: bit k is the k-th knob of [`Knob::with_fast_version`].
type Combination = u32;

/// Two combinations to be timed against each other: times of `a` over times of `b`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contrast {
    pub a: Combination,
    pub b: Combination,
    pub place: EffectPlace,
}

/// Where an effect was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum EffectPlace {
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
pub struct ChangeEffect {
    pub name: String,
    pub place: EffectPlace,
    pub ratio: f64,
    /// 95 % interval: none below 10 pairs or combinations.
    pub low: Option<f64>,
    pub high: Option<f64>,
    pub n: u32,
    pub verdict: Verdict,
}

/// One preset on one device.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PresetEffects {
    pub select: String,
    pub device: String,
    pub preset: String,
    /// As measured.
    pub effects: Vec<ChangeEffect>,
    /// Each knob's mean over the combinations, where all were measured.
    pub means: Vec<ChangeEffect>,
}

/// Adds an effect to the group of its preset and device, the last one or a new one.
pub fn add(
    groups: &mut Vec<PresetEffects>,
    select: &str,
    preset: &str,
    device: &str,
    effect: ChangeEffect,
) {
    let last = groups.last();
    if last.is_none_or(|group| (&*group.select, &*group.preset) != (select, preset)) {
        groups.push(PresetEffects {
            select: select.to_owned(),
            preset: preset.to_owned(),
            device: device.to_owned(),
            ..PresetEffects::default()
        });
    }
    if let Some(group) = groups.last_mut() {
        group.effects.push(effect);
    }
}

fn knobs() -> Vec<&'static Knob> {
    Knob::with_fast_version().collect()
}

/// Every knob on.
fn all_on() -> Combination {
    (1 << knobs().len()) - 1
}

/// Plain against itself and against everything, and each knob alone from both ends; or with `full` every combination
/// against plain.
pub fn contrasts(full: bool) -> Vec<Contrast> {
    let contrast = |a, b, place| Contrast { a, b, place };
    let all = all_on();
    let mut contrasts = vec![contrast(0, 0, EffectPlace::None)];
    if full {
        contrasts.extend((1..=all).map(|on| contrast(0, on, EffectPlace::Combination)));
    } else {
        contrasts.push(contrast(0, all, EffectPlace::All));
        let bits = || (0..knobs().len()).map(|k| 1 << k);
        contrasts.extend(bits().map(|bit| contrast(0, bit, EffectPlace::FromPlain)));
        contrasts.extend(bits().map(|bit| contrast(all & !bit, all, EffectPlace::FromFull)));
    }
    contrasts
}

/// Refuses a base that has a faster version on already: the ablation would overwrite it.
pub fn check_base(base: &RunConfig) -> Result<(), &'static str> {
    let differs = Knob::with_fast_version().find(|knob| Some(&*(knob.get)(base)) != knob.plain());
    differs.map_or(Ok(()), |knob| Err(knob.path))
}

/// The configuration with these knobs at their faster values and the others plain.
pub fn combine(base: &RunConfig, on: Combination) -> Result<RunConfig> {
    let mut config = base.clone();
    for (k, knob) in knobs().into_iter().enumerate() {
        let is_on = on & (1 << k) != 0;
        let value = if is_on { knob.fast } else { knob.plain() };
        let value = KnobValue::Text(value.unwrap_or_default().to_owned());
        knob.set(&mut config, &value).map_err(usage)?;
    }
    Ok(config)
}

/// `none`, `all`, or the knobs that are on.
pub fn name(on: Combination) -> String {
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

pub fn effect(contrast: &Contrast, pair: &Pair) -> ChangeEffect {
    let changed = (contrast.a ^ contrast.b).trailing_zeros() as usize;
    let name = match (contrast.place, knobs().get(changed)) {
        (EffectPlace::FromPlain | EffectPlace::FromFull, Some(knob)) => assignment(knob),
        _ => name(contrast.b),
    };
    ChangeEffect {
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
pub fn rank(mut effects: Vec<ChangeEffect>) -> Vec<ChangeEffect> {
    let unclear = |effect: &ChangeEffect| effect.verdict == Verdict::Unclear;
    effects.sort_by(|a, b| b.ratio.total_cmp(&a.ratio));
    effects.sort_by_key(unclear);
    effects
}

/// Each knob's mean effect over the combinations of the others: the mean of ln(gain with it / gain without it). The gain
/// of a combination is the time of plain over its time; of plain it is 1, whether or not it was measured. Nothing where
/// combinations were not measured.
pub fn means(effects: &[ChangeEffect]) -> Vec<ChangeEffect> {
    let combinations = || {
        effects
            .iter()
            .filter(|e| e.place == EffectPlace::Combination)
    };
    let gain = |on: Combination| match on {
        0 => Some(1.0),
        on => Some(combinations().find(|e| e.name == name(on))?.ratio),
    };
    let gains: Vec<Option<f64>> = match combinations().next() {
        Some(_) => (0..=all_on()).map(gain).collect(),
        None => return Vec::new(),
    };
    let mean = |(k, knob): (usize, &Knob)| {
        let without = (0..gains.len()).filter(|on| on & (1 << k) == 0);
        let logs: Vec<f64> = without
            .filter_map(|on| Some((gains[on | 1 << k]? / gains[on]?).ln()))
            .filter(|x| x.is_finite())
            .collect();
        let mean = mean_ratio(&logs);
        ChangeEffect {
            name: assignment(knob),
            place: EffectPlace::Mean,
            ratio: mean.ratio,
            low: mean.interval.map(|it| it.0),
            high: mean.interval.map(|it| it.1),
            n: logs.len() as u32,
            verdict: mean.verdict,
        }
    };
    let means = knobs().into_iter().enumerate().map(mean);
    // A mean of one figure has no interval.
    rank(means.filter(|effect| effect.n > 1).collect())
}

/// The mean of log ratios as a ratio, and mean ± 2·s/√n as its interval, from 10 of them on.
fn mean_ratio(logs: &[f64]) -> LookResult {
    let n = logs.len() as f64;
    let mean = logs.iter().sum::<f64>() / n;
    let variance = logs.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let half = 2.0 * (variance / n).sqrt();
    let interval =
        (logs.len() >= FIRST_LOOK as usize).then(|| ((mean - half).exp(), (mean + half).exp()));
    LookResult {
        ratio: mean.exp(),
        interval,
        verdict: verdict(interval),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Preset;

    #[test]
    fn contrasts_cover_each_knob_from_both_ends() {
        let each = contrasts(false);
        assert_eq!(each.len(), 16);
        assert!(each[2..].iter().all(|c| (c.a ^ c.b).count_ones() == 1));
        assert_eq!(contrasts(true).len(), 128);
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
        let measured: Vec<ChangeEffect> = contrasts(true).iter().map(measured).collect();
        let effects = means(&measured);
        let (name, n) = (effects[0].name.as_str(), effects[0].n);
        assert_eq!((name, n), (&*assignment(knobs()[3]), 64));
        assert!((effects[0].ratio - 2.0).abs() < 1e-9);
        assert_eq!(effects[6].verdict, Verdict::Slower);
        assert_eq!(effects[5].verdict, Verdict::Same);
        let few = means(&measured[..11]);
        assert!(few.iter().all(|effect| effect.verdict == Verdict::Unclear));
    }
}
