//! The runs of a config exercise, one after the other, for the command line and the screen alike: the sweep, then pairs
//! where times are held against each other.

use anyhow::{Result, anyhow};

use super::bench::Bench;
use crate::config::RunConfig;
use crate::course::exercise::{ConfigMetric, Configs, apply};
use crate::course::sweep::{SweepPoint, SweepRuns};
use crate::out::{Exit, Stop, usage};
use crate::protocol::Pair;

/// What happens meanwhile.
pub enum Told<'a> {
    /// A run or comparison begins: which of how many, and what it is about.
    Begins {
        number: usize,
        of: usize,
        what: &'a str,
    },
    /// Something is measured: everything so far.
    Found(&'a SweepRuns),
}

/// Makes every run of the exercise; without `speed`, each only as long as it takes to see that it works. None when
/// interrupted.
pub fn measure(
    bench: &mut Bench,
    configs: &Configs,
    speed: bool,
    tell: &mut dyn FnMut(Told<'_>),
) -> Result<Option<SweepRuns>> {
    let mut found = SweepRuns::default();
    let steps = if speed { configs.steps } else { 2 };
    let points = configs.points();
    let base = points
        .first()
        .map(|(with, value)| at(configs, *with, value));
    let mut number = 0;
    for (with, value) in &points {
        let config = at(configs, *with, value)?;
        number += 1;
        tell(Told::Begins {
            number,
            of: points.len() + paired(configs, &found, speed).len() + configs.rank.len(),
            what: &label(configs, *with, value),
        });
        // A fresh engine for each: what an earlier run kept in its pools is not this one's memory.
        bench.fresh();
        let run = match attempt(bench.run(0, &config, steps))? {
            Ok(None) => return Ok(None),
            Ok(Some(run)) => Ok(run),
            // Without the first value there is nothing to compare with.
            Err(why) if found.points.is_empty() => return Err(anyhow!(why)),
            Err(why) => Err(why),
        };
        found.points.push(SweepPoint {
            with: with.map(str::to_owned),
            value: (*value).to_owned(),
            run,
        });
        tell(Told::Found(&found));
    }
    let values = paired(configs, &found, speed);
    let of = points.len() + values.len() + configs.rank.len();
    for value in values {
        let Some(Ok(base)) = &base else { break };
        number += 1;
        tell(Told::Begins {
            number,
            of,
            what: &format!("pairs: {value}"),
        });
        match attempt(bench.pair(0, base, &at(configs, None, value)?))? {
            Ok(None) => return Ok(None),
            Ok(Some(pair)) => found.speeds.push((value.to_owned(), Ok(pair))),
            Err(why) => found.speeds.push((value.to_owned(), Err(why))),
        }
        tell(Told::Found(&found));
    }
    for change in &configs.rank {
        let config = change
            .set
            .iter()
            .try_fold(configs.config.clone(), |config, set| apply(&config, set))
            .map_err(usage)?;
        number += 1;
        tell(Told::Begins {
            number,
            of,
            what: &format!("pairs: {}", change.label),
        });
        let pair = if speed {
            attempt(bench.pair(0, &configs.config, &config))?
        } else {
            // That it runs at all is seen in two steps.
            attempt(bench.run(0, &config, steps))?.map(|run| run.map(|_| Pair::default()))
        };
        match pair {
            Ok(None) => return Ok(None),
            Ok(Some(pair)) => found.changes.push(Ok(pair)),
            Err(why) => found.changes.push(Err(why)),
        }
        tell(Told::Found(&found));
    }
    Ok(Some(found))
}

/// Values of the sweep whose time is held against the first one's: those that a check asks about and that are not
/// known to be refused.
fn paired<'a>(configs: &'a Configs, found: &SweepRuns, speed: bool) -> Vec<&'a str> {
    let refused = |of: &str| {
        let mut points = found.points.iter();
        points.any(|point| point.value == of && point.run.is_err())
    };
    configs
        .checks
        .iter()
        .filter_map(|check| match &check.metric {
            ConfigMetric::Speed { of } if speed && !refused(of) => Some(of.as_str()),
            _ => None,
        })
        .collect()
}

fn at(configs: &Configs, with: Option<&str>, value: &str) -> Result<RunConfig> {
    let mut config = configs.config.clone();
    if let Some(sweep) = &configs.sweep {
        config = apply(&config, &format!("{}={value}", sweep.key)).map_err(usage)?;
    }
    match with {
        Some(set) => apply(&config, set).map_err(usage),
        None => Ok(config),
    }
}

fn label(configs: &Configs, with: Option<&str>, value: &str) -> String {
    let key = configs
        .sweep
        .as_ref()
        .map_or("", |sweep| sweep.key.as_str());
    match with {
        Some(set) => format!("{key} = {value}, {set}"),
        None => format!("{key} = {value}"),
    }
}

/// A refusal is a result; a device that is not here, or an engine that broke, is not.
fn attempt<T>(tried: Result<T>) -> Result<std::result::Result<T, String>> {
    match tried {
        Ok(found) => Ok(Ok(found)),
        Err(error) => match error.downcast_ref::<Stop>() {
            Some(stop) if stop.exit == Exit::Usage => Ok(Err(stop.text.clone())),
            _ => Err(error),
        },
    }
}
