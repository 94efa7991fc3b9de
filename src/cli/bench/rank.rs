//! The fusion knobs, their combinations, and what each is worth. Pure arithmetic on paired comparisons.

use anyhow::Result;
use serde::Serialize;

use crate::config::RunConfig;
use crate::config::file::set;
use crate::out::usage;
use crate::profile::stats::MIN_PAIRS;
use crate::protocol::{Pair, Verdict};

/// Knob, its plain value, its fast value. A combination is a set of bits in this order.
pub const FUSIONS: [(&str, &str, &str); 7] = [
    ("model.qkv", "separate", "fused"),
    ("model.norm", "composed", "fused"),
    ("model.swiglu", "separate", "fused-activation"),
    ("model.attention", "composed", "flash"),
    ("model.loss", "composed", "fused"),
    ("train.optimizer", "library", "fused"),
    ("model.matmul", "library", "own"),
];
/// Everything on.
pub const FULL: u8 = (1 << FUSIONS.len()) - 1;
/// Effects below this are none; the same band as in every paired verdict.
const DEAD_BAND: f64 = 0.01;

/// Two combinations to be timed against each other: times of `a` over times of `b`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Duel {
    pub a: u8,
    pub b: u8,
    pub place: Place,
}

/// Where an effect was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// Plain against itself: what the method reports where there is nothing.
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

/// All, none, and each knob alone from both ends.
pub fn each() -> Vec<Duel> {
    let duel = |a, b, place| Duel { a, b, place };
    let mut duels = vec![duel(0, 0, Place::None), duel(0, FULL, Place::All)];
    let bits = || (0..FUSIONS.len()).map(|k| 1_u8 << k);
    duels.extend(bits().map(|bit| duel(0, bit, Place::FromPlain)));
    duels.extend(bits().map(|bit| duel(FULL & !bit, FULL, Place::FromFull)));
    duels
}

/// Every combination against plain, plain itself included.
pub fn full() -> Vec<Duel> {
    (0..=FULL)
        .map(|b| Duel {
            a: 0,
            b,
            place: if b == 0 {
                Place::None
            } else {
                Place::Combination
            },
        })
        .collect()
}

/// The configuration with these knobs at their fast values and the others plain.
pub fn combine(mut config: RunConfig, on: u8) -> Result<RunConfig> {
    for (k, (path, plain, fast)) in FUSIONS.iter().enumerate() {
        let value = if on & (1 << k) == 0 { plain } else { fast };
        set(&mut config, &format!("{path}={value}")).map_err(usage)?;
    }
    Ok(config)
}

/// `none`, `all`, or the knobs that are on.
pub fn name(on: u8) -> String {
    let knobs: Vec<&str> = (0..FUSIONS.len())
        .filter(|k| on & (1 << k) != 0)
        .map(|k| short(FUSIONS[k].0))
        .collect();
    match on {
        0 => "none".to_owned(),
        FULL => "all".to_owned(),
        _ => knobs.join(" + "),
    }
}

fn short(path: &str) -> &str {
    path.split_once('.').map_or(path, |(_, key)| key)
}

/// What a measured duel says.
pub fn effect(duel: &Duel, pair: &Pair) -> Effect {
    let name = match duel.place {
        Place::FromPlain | Place::FromFull => {
            let knob = (duel.a ^ duel.b).trailing_zeros() as usize;
            FUSIONS
                .get(knob)
                .map_or_else(String::new, |(path, _, fast)| format!("{path} = {fast}"))
        }
        _ => name(duel.b),
    };
    Effect {
        name,
        place: duel.place,
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
        let unclear = |e: &Effect| e.verdict == Verdict::Unclear;
        unclear(a)
            .cmp(&unclear(b))
            .then(b.ratio.total_cmp(&a.ratio))
    });
    effects
}

/// Each knob's mean effect over the combinations of the others: the mean of ln(gain with it / gain without it), as a
/// ratio, with mean ± 2·s/√n. `gains` are the times of plain over the times of each combination.
pub fn means(gains: &[(u8, f64)]) -> Vec<Effect> {
    let gain = |on: u8| {
        let found = gains.iter().find(|(other, _)| *other == on);
        // Plain against itself is 1, whether or not it was measured.
        if on == 0 {
            Some(1.0)
        } else {
            found.map(|(_, gain)| *gain)
        }
    };
    let effects = FUSIONS.iter().enumerate().map(|(k, (path, _, fast))| {
        let bit = 1_u8 << k;
        let steps: Vec<f64> = (0..=FULL)
            .filter(|on| on & bit == 0)
            .filter_map(|on| Some((gain(on | bit)? / gain(on)?).ln()))
            .filter(|x| x.is_finite())
            .collect();
        let n = steps.len() as f64;
        let mean = steps.iter().sum::<f64>() / n;
        let variance = steps.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
        let half = 2.0 * (variance / n).sqrt();
        Effect {
            name: format!("{path} = {fast}"),
            place: Place::Mean,
            ratio: mean.exp(),
            low: (mean - half).exp(),
            high: (mean + half).exp(),
            n: steps.len() as u32,
            verdict: verdict(mean - half, mean + half, steps.len()),
        }
    });
    // Knobs of which nothing was measured say nothing.
    rank(effects.filter(|e| e.n > 1).collect())
}

fn verdict(low: f64, high: f64, n: usize) -> Verdict {
    let band = DEAD_BAND.ln_1p();
    if n < MIN_PAIRS {
        Verdict::Unclear
    } else if low > band {
        Verdict::Faster
    } else if high < -band {
        Verdict::Slower
    } else if low >= -band && high <= band {
        Verdict::Same
    } else {
        Verdict::Unclear
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Matmul, Optimizer, Preset, Qkv};

    #[test]
    fn duels_cover_each_knob_from_both_ends() {
        let duels = each();
        assert_eq!(duels.len(), 16);
        assert!(duels[2..].iter().all(|d| (d.a ^ d.b).count_ones() == 1));
        assert_eq!(full().len(), 128);
    }

    #[test]
    fn combinations_are_configurations() {
        let plain = RunConfig::preset(Preset::Tiny);
        assert_eq!(combine(plain.clone(), 0).expect("plain"), plain);
        let all = combine(plain.clone(), FULL).expect("all");
        assert_eq!(
            (all.model.qkv, all.train.optimizer, all.model.matmul),
            (Qkv::Fused, Optimizer::Fused, Matmul::Own)
        );
        assert_eq!(plain.differences(&all).len(), FUSIONS.len());
        assert_eq!(name(0b1000001), "qkv + matmul");
    }

    fn measured(ratio: f64, verdict: Verdict) -> Effect {
        let pair = Pair {
            ratio,
            verdict,
            n: 30,
            ..Pair::default()
        };
        effect(&each()[2], &pair)
    }

    #[test]
    fn unclear_effects_come_last_whatever_their_size() {
        let ranked = rank(vec![
            measured(0.8, Verdict::Slower),
            measured(3.0, Verdict::Unclear),
            measured(1.5, Verdict::Faster),
            measured(1.0, Verdict::Same),
        ]);
        let order: Vec<f64> = ranked.iter().map(|e| e.ratio).collect();
        assert_eq!(order, [1.5, 1.0, 0.8, 3.0]);
        assert_eq!(ranked[0].name, "model.qkv = fused");
    }

    #[test]
    fn means_recover_independent_effects() {
        let worth = [1.0, 1.2, 1.1, 2.0, 1.05, 0.8, 1.5];
        let gains: Vec<(u8, f64)> = (1..=FULL)
            .map(|on| {
                let gain = (0..7)
                    .filter(|k| on & (1 << k) != 0)
                    .map(|k| worth[k])
                    .product();
                (on, gain)
            })
            .collect();
        let effects = means(&gains);
        assert_eq!(
            (effects[0].name.as_str(), effects[0].n),
            ("model.attention = flash", 64)
        );
        assert!((effects[0].ratio - 2.0).abs() < 1e-9);
        assert_eq!(effects[6].verdict, Verdict::Slower);
        assert_eq!(effects[5].verdict, Verdict::Same);
        let few = means(&gains[..10]);
        assert!(few.iter().all(|e| e.verdict == Verdict::Unclear));
    }
}
