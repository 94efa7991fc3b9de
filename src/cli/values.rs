//! Parses the values of flags, and writes the messages about values that are not accepted.

use std::ffi::OsStr;
use std::str::FromStr;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Arg, Command};
use strum::{VariantArray, VariantNames};

use crate::app::ThemeName;
use crate::settings::KEYS;
use protocol::config::{Preset, VERSIONS, nearest};

const DEVICES: &[&str] = &["auto", "cpu", "gpu", "vulkan-cpu"];

/// Takes the name of a model size.
pub(super) fn preset() -> impl TypedValueParser<Value = Preset> {
    PossibleValuesParser::new(Preset::VARIANTS).try_map(|name| name.parse())
}

/// Takes the name of a version. The changes behind the name are checked where they are read.
pub(super) fn versions() -> Completed<String> {
    let names = VERSIONS.iter().map(|(name, _)| *name).collect();
    Completed(names, |text| Ok(text.to_owned()))
}

/// Takes the name of a theme.
pub(super) fn theme() -> Completed<ThemeName> {
    let names = ThemeName::VARIANTS.iter().map(ThemeName::into_str);
    Completed(names.collect(), |name| named("theme", name))
}

/// Returns the value with this name, or a message that lists the names.
pub(super) fn named<T>(what: &str, name: &str) -> Result<T, String>
where
    T: FromStr + VariantArray,
    &'static T: Into<&'static str>,
{
    let mut all = T::VARIANTS.iter().map(Into::into);
    name.parse().map_err(|_| unknown(what, name, &mut all))
}

/// Returns the message about a word that is not among the known ones.
pub(super) fn unknown(what: &str, word: &str, known: &mut dyn Iterator<Item = &str>) -> String {
    let all: Vec<&str> = known.collect();
    let near = nearest(word, all.iter().copied());
    let (shown, all) = (crate::sanitize::line(word), all.join(", "));
    format!("unknown {what} `{shown}`; did you mean `{near}`? It is one of {all}")
}

/// A parser whose values a shell completes from some words. The function decides what is accepted.
#[derive(Clone)]
pub(super) struct Completed<T>(Vec<&'static str>, fn(&str) -> Result<T, String>);

impl<T: Clone + Send + Sync + 'static> TypedValueParser for Completed<T> {
    type Value = T;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<T, clap::Error> {
        self.1.parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue>>> {
        Some(Box::new(self.0.clone().into_iter().map(PossibleValue::new)))
    }
}

/// Takes the name of a device.
pub(super) fn devices() -> Completed<String> {
    Completed(DEVICES.to_vec(), device)
}

/// Takes the name of a setting. `config` itself refuses unknown names.
pub(super) fn key() -> Completed<String> {
    Completed(KEYS.iter().map(|(key, _)| *key).collect(), |key| {
        Ok(key.to_owned())
    })
}

/// Checks the form of a device's name. Only the engine knows whether the device exists.
pub(super) fn device(text: &str) -> Result<String, String> {
    let number = text.strip_prefix("gpu:");
    if DEVICES.contains(&text) || number.is_some_and(|number| number.parse::<u16>().is_ok()) {
        return Ok(text.to_owned());
    }
    // `cuda:1` means `gpu:1`.
    let (head, number) = text.split_once(':').unwrap_or((text, ""));
    let kind = nearest(head, DEVICES.iter().copied());
    let near = match number.parse::<u16>() {
        Ok(number) if kind == "gpu" => format!("gpu:{number}"),
        _ => kind.to_owned(),
    };
    Err(format!(
        "unknown device; did you mean `{near}`? It is auto, cpu, gpu, gpu:N or vulkan-cpu"
    ))
}

/// Parses the number of steps of a run.
pub(super) fn steps(text: &str) -> Result<u64, String> {
    let why = "write a whole number of steps, at least 1";
    number(text, |steps| *steps > 0, why)
}

/// Parses how many of the three hints are shown.
pub(super) fn hints(text: &str) -> Result<u8, String> {
    let why = "write how many hints to show: 1, 2 or 3";
    number(text, |hints| (1..=3).contains(hints), why)
}

/// Parses a seed of random numbers.
pub(super) fn seed(text: &str) -> Result<u64, String> {
    let why = "a seed is a whole number, 0 or larger; write --seed 7";
    number(text, |_| true, why)
}

/// Parses a number above 0.
pub(super) fn positive(text: &str) -> Result<f64, String> {
    let fits = |value: &f64| value.is_finite() && *value > 0.0;
    number(text, fits, "write a number above 0")
}

/// Parses a number that must fit. Fails with `why`.
fn number<T: FromStr>(text: &str, fits: impl FnOnce(&T) -> bool, why: &str) -> Result<T, String> {
    text.parse().ok().filter(fits).ok_or_else(|| why.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_and_numbers_are_checked_by_form() {
        assert_eq!(device("gpu:1").as_deref(), Ok("gpu:1"));
        let said = device("gpux").expect_err("unknown");
        assert!(said.contains("did you mean `gpu`"));
        for (typed, meant) in [
            ("cuda", "gpu"),
            ("cuda:1", "gpu:1"),
            ("llvmpipe", "vulkan-cpu"),
        ] {
            let said = device(typed).expect_err("another program's name");
            assert!(said.contains(&format!("did you mean `{meant}`?")), "{said}");
        }
        assert!(device("gpu:x").is_err());
        assert_eq!(positive("0.95"), Ok(0.95));
        assert_eq!((steps("1"), hints("3"), seed("0")), (Ok(1), Ok(3), Ok(0)));
        let said = steps("0").expect_err("no step");
        assert!(said.contains("at least 1"), "{said}");
        assert!(steps("x").is_err() && hints("x").is_err() && hints("4").is_err());
        assert!(
            ["0", "-1", "NaN", "inf"]
                .iter()
                .all(|text| positive(text).is_err())
        );
    }
}
