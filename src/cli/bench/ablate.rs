//! What each fusion knob is worth: paired runs of combinations, ranked with their intervals.

use anyhow::Result;
use serde::Serialize;

use super::args::Extent;
use super::figures::{FORMAT, Machine};
use super::missing::{Kind, Missing};
use super::rank::{self, Duel, Effect, FULL, Place};
use super::rig::{Outcome, Rig, exit_of, kind_of, spec};
use super::sheet::{Part, Sheet, Table, digits, interval};
use super::target::Target;
use super::{BenchArgs, plan};
use crate::config::{Preset, RunConfig};
use crate::out::{Exit, notice, progress};
use crate::protocol::{Slot, Verdict};

/// The whole result.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
struct Ablation {
    bench: &'static str,
    format: u32,
    machine: Machine,
    groups: Vec<Group>,
    missing: Vec<Missing>,
    interrupted: bool,
}

/// One preset on one device.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
struct Group {
    select: String,
    device: String,
    preset: String,
    /// As measured.
    effects: Vec<Effect>,
    /// Each knob's mean over the combinations, where all were asked for.
    means: Vec<Effect>,
}

pub fn ablate(args: &BenchArgs, target: Target) -> Result<Exit> {
    let extent = args.ablate.unwrap_or(Extent::Each);
    let duels = match extent {
        Extent::Each => rank::each(),
        Extent::Full => rank::full(),
    };
    let mut bases: Vec<(Preset, RunConfig)> = Vec::new();
    for preset in args.presets() {
        let base = plan::changed(args, RunConfig::preset(preset))?;
        refuse_fixed_knobs(args, &base)?;
        bases.push((preset, base));
    }
    let together: Vec<_> = bases.iter().map(|(_, base)| vec![base, base]).collect();
    let mut rig = super::rig(args, &args.devices(), &together)?;
    let mut ablation = Ablation {
        bench: "ablation",
        format: FORMAT,
        ..Ablation::default()
    };
    'all: for device in args.devices() {
        for (preset, base) in &bases {
            let mut group = Group {
                select: device.clone(),
                preset: preset.to_string(),
                ..Group::default()
            };
            let more = duel(
                &mut rig,
                args.pairs,
                &duels,
                base,
                &mut group,
                &mut ablation,
            )?;
            if extent == Extent::Full {
                group.means = rank::means(&gains(&duels, &group.effects));
            }
            if !group.effects.is_empty() {
                ablation.groups.push(group);
            }
            match more {
                More::Go => {}
                More::NotHere => continue 'all,
                More::Stop => break 'all,
            }
        }
    }
    rig.end();
    ablation.machine = rig.machine.take().unwrap_or_default();
    for missing in &ablation.missing {
        notice(&missing.text());
    }
    let exit = exit_of(
        ablation.interrupted,
        !ablation.groups.is_empty(),
        &ablation.missing,
    );
    target.write(&ablation, &sheet(&ablation))?;
    Ok(exit)
}

/// What `--set` gives a fusion knob would be overwritten.
fn refuse_fixed_knobs(args: &BenchArgs, base: &RunConfig) -> Result<()> {
    let plain = rank::combine(base.clone(), 0)?;
    match base.differences(&plain).first() {
        Some(path) => Err(crate::out::usage(format!(
            "--set {path}: --ablate gives this key its values; leave one of {} out",
            args.sets.join(", ")
        ))),
        None => Ok(()),
    }
}

enum More {
    Go,
    NotHere,
    Stop,
}

fn duel(
    rig: &mut Rig,
    pairs: u32,
    duels: &[Duel],
    base: &RunConfig,
    group: &mut Group,
    ablation: &mut Ablation,
) -> Result<More> {
    for (at, duel) in duels.iter().enumerate() {
        let side = |on, slot| -> Result<_> {
            let config = rank::combine(base.clone(), on)?;
            Ok(spec(&rank::name(on), slot, config, None))
        };
        let (a, b) = (side(duel.a, Slot::A)?, side(duel.b, Slot::B)?);
        let label = format!(
            "{} of {}, {} on {}: {} against {}",
            at + 1,
            duels.len(),
            group.preset,
            group.select,
            rank::name(duel.b),
            rank::name(duel.a)
        );
        let mut miss = |kind, reason: String| {
            progress(&format!("{label}: {reason}"));
            ablation.missing.push(Missing {
                kind,
                preset: Some(group.preset.clone()),
                version: Some(format!(
                    "{} against {}",
                    rank::name(duel.b),
                    rank::name(duel.a)
                )),
                ..Missing::device(&group.select, reason)
            });
        };
        match rig.pair(&group.select, a, b, pairs)? {
            Outcome::Done((pair, device)) => {
                let effect = rank::effect(duel, &pair);
                progress(&format!("{label}: {}", worth(&effect)));
                group.device = device;
                group.effects.push(effect);
            }
            Outcome::Interrupted => {
                ablation.interrupted = true;
                return Ok(More::Stop);
            }
            Outcome::Absent(reason) if group.effects.is_empty() => {
                progress(&format!("{label}: {reason}"));
                ablation
                    .missing
                    .push(Missing::device(&group.select, reason));
                return Ok(More::NotHere);
            }
            Outcome::Absent(reason) => miss(Kind::Failed, reason),
            Outcome::Failed(exit, reason) => miss(kind_of(exit), reason),
        }
    }
    Ok(More::Go)
}

/// Times of plain over times of each combination.
fn gains(duels: &[Duel], effects: &[Effect]) -> Vec<(u8, f64)> {
    duels
        .iter()
        .filter_map(|duel| {
            let name = rank::name(duel.b);
            let effect = effects.iter().find(|e| e.name == name)?;
            Some((duel.b, effect.ratio))
        })
        .collect()
}

/// `1.250 [1.200, 1.300] faster`.
fn worth(effect: &Effect) -> String {
    format!(
        "{} {}",
        interval(effect.ratio, effect.low, effect.high),
        effect.verdict
    )
}

fn sheet(ablation: &Ablation) -> Sheet {
    let m = &ablation.machine;
    let mut intro = vec![
        "Time without a knob over time with it, in pairs, with a 95 % interval; above 1 the knob helps."
            .to_owned(),
    ];
    if !m.version.is_empty() {
        intro.push(format!(
            "perflings {} on {}, {} threads, {}.",
            m.version, m.os, m.cores, m.date
        ));
    }
    if ablation.interrupted {
        intro.push("Interrupted: what follows was measured before.".to_owned());
    }
    let mut parts: Vec<Part> = ablation.groups.iter().map(part).collect();
    if !ablation.missing.is_empty() {
        parts.push(Part {
            title: "Not measured".to_owned(),
            tables: Vec::new(),
            remarks: ablation.missing.iter().map(Missing::text).collect(),
        });
    }
    Sheet {
        title: "What each knob is worth".to_owned(),
        intro,
        parts,
    }
}

fn part(group: &Group) -> Part {
    let at = |place: Place| -> Vec<Effect> {
        let here = group.effects.iter().filter(|e| e.place == place);
        rank::rank(here.cloned().collect())
    };
    let ends: Vec<Effect> = [Place::None, Place::All].into_iter().flat_map(at).collect();
    let tables = [
        ("everything, and nothing", ends),
        ("turned on, the others plain", at(Place::FromPlain)),
        ("turned on last, the others on", at(Place::FromFull)),
        ("mean over all combinations", group.means.clone()),
        ("combination", at(Place::Combination)),
    ];
    Part {
        title: format!("{} on {}: {}", group.preset, group.select, group.device),
        tables: tables
            .into_iter()
            .filter(|(_, effects)| !effects.is_empty())
            .map(|(head, effects)| table(head, &effects))
            .collect(),
        remarks: remarks(group),
    }
}

fn table(head: &str, effects: &[Effect]) -> Table {
    let mut table = Table::new(&["rank", head, "worth [95 %]", "n", "verdict"]);
    for (at, effect) in effects.iter().enumerate() {
        let control = matches!(effect.place, Place::None | Place::All);
        let unranked = control || effect.verdict == Verdict::Unclear;
        table.push([
            if unranked {
                "-".to_owned()
            } else {
                (at + 1).to_string()
            },
            effect.name.clone(),
            interval(effect.ratio, effect.low, effect.high),
            effect.n.to_string(),
            effect.verdict.to_string(),
        ]);
    }
    table
}

/// What the figures say together.
fn remarks(group: &Group) -> Vec<String> {
    let mut remarks = Vec::new();
    let alone: Vec<f64> = group
        .effects
        .iter()
        .filter(|e| e.place == Place::FromPlain)
        .map(|e| e.ratio)
        .collect();
    let all = group
        .effects
        .iter()
        .find(|e| e.place == Place::All || e.name == rank::name(FULL));
    if let Some(all) = all.filter(|_| alone.len() == rank::FUSIONS.len()) {
        remarks.push(format!(
            "the product of the single effects is {}, all together are worth {}",
            digits(alone.iter().product()),
            digits(all.ratio)
        ));
    }
    let unclear: Vec<String> = group
        .effects
        .iter()
        .filter(|e| e.verdict == Verdict::Unclear)
        .filter_map(|e| match e.place {
            Place::FromPlain => Some(format!("{} from plain", e.name)),
            Place::FromFull => Some(format!("{} turned on last", e.name)),
            _ => None,
        })
        .collect();
    if !unclear.is_empty() {
        remarks.push(format!(
            "unclear, so not ranked: {}; more --pairs may tell",
            unclear.join(", ")
        ));
    }
    remarks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Pair;

    #[test]
    fn the_sheet_ranks_and_names_what_is_unclear() {
        let effects = rank::each()
            .iter()
            .enumerate()
            .map(|(at, duel)| {
                let pair = Pair {
                    n: 30,
                    ratio: 1.0 + at as f64 / 10.0,
                    low: 1.0,
                    high: 3.0,
                    verdict: if at == 8 {
                        Verdict::Unclear
                    } else {
                        Verdict::Faster
                    },
                    ..Pair::default()
                };
                rank::effect(duel, &pair)
            })
            .collect();
        let group = Group {
            select: "cpu".to_owned(),
            device: "Chip".to_owned(),
            preset: "tiny".to_owned(),
            effects,
            means: Vec::new(),
        };
        let ablation = Ablation {
            groups: vec![group],
            ..Ablation::default()
        };
        let text = sheet(&ablation).text();
        for says in [
            "tiny on cpu: Chip",
            "1     train.optimizer = fused",
            "-     model.matmul = own",
            "unclear, so not ranked: model.matmul = own from plain; more",
            "all together are worth 1.100",
        ] {
            assert!(text.contains(says), "`{says}` is missing in\n{text}");
        }
    }
}
