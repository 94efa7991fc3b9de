//! Values of flags: what is accepted, and the message for anything else.

use std::ffi::OsStr;
use std::str::FromStr;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Arg, Command};
use strum::{VariantArray, VariantNames};

use crate::app::ThemeName;
use crate::settings::KEYS;
use protocol::config::{Preset, VERSIONS, nearest};

const DEVICES: &[&str] = &["auto", "cpu", "gpu", "vulkan-cpu"];

/// The name of a model size.
pub(super) fn preset() -> impl TypedValueParser<Value = Preset> {
    PossibleValuesParser::new(Preset::VARIANTS).try_map(|name| name.parse())
}

/// Names of versions; what may stand behind one is decided where it is read.
pub(super) fn versions() -> Completed<String> {
    let names = VERSIONS.iter().map(|(name, _)| *name).collect();
    Completed(names, |text| Ok(text.to_owned()))
}

/// The name of a theme.
pub(super) fn theme() -> Completed<ThemeName> {
    let names = ThemeName::VARIANTS.iter().map(ThemeName::into_str);
    Completed(names.collect(), |name| named("theme", name))
}

/// The value that has this name.
pub(super) fn named<T>(what: &str, name: &str) -> Result<T, String>
where
    T: FromStr + VariantArray,
    &'static T: Into<&'static str>,
{
    let mut all = T::VARIANTS.iter().map(Into::into);
    name.parse().map_err(|_| unknown(what, name, &mut all))
}

/// The message for a word that is none of these.
pub(super) fn unknown(what: &str, word: &str, known: &mut dyn Iterator<Item = &str>) -> String {
    let all: Vec<&str> = known.collect();
    let near = nearest(word, all.iter().copied());
    let (shown, all) = (crate::sanitize::line(word), all.join(", "));
    format!("unknown {what} `{shown}`; did you mean `{near}`? It is one of {all}")
}

/// A value that a shell completes from some words; what is taken is decided by the function.
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

/// A device's name.
pub(super) fn devices() -> Completed<String> {
    Completed(DEVICES.to_vec(), device)
}

/// The name of a setting; `config` says what is wrong with another.
pub(super) fn key() -> Completed<String> {
    Completed(KEYS.iter().map(|(key, _)| *key).collect(), |key| {
        Ok(key.to_owned())
    })
}

/// The form of a device's name; whether it is here only the engine knows.
pub(super) fn device(text: &str) -> Result<String, String> {
    let number = text.strip_prefix("gpu:");
    if DEVICES.contains(&text) || number.is_some_and(|n| n.parse::<u16>().is_ok()) {
        return Ok(text.to_owned());
    }
    // `cuda:1` means `gpu:1`.
    let (head, number) = text.split_once(':').unwrap_or((text, ""));
    let near = match (
        nearest(head, DEVICES.iter().copied()),
        number.parse::<u16>(),
    ) {
        ("gpu", Ok(number)) => format!("gpu:{number}"),
        (near, _) => near.to_owned(),
    };
    Err(format!(
        "unknown device; did you mean `{near}`? It is auto, cpu, gpu, gpu:N or vulkan-cpu"
    ))
}

/// How many steps a run takes.
pub(super) fn steps(text: &str) -> Result<u64, String> {
    let why = "write a whole number of steps, at least 1";
    number(text, |steps| *steps > 0, why)
}

/// How many of the three hints are shown.
pub(super) fn hints(text: &str) -> Result<u8, String> {
    let why = "write how many hints to show: 1, 2 or 3";
    number(text, |hints| (1..=3).contains(hints), why)
}

/// The number that random numbers are drawn from.
pub(super) fn seed(text: &str) -> Result<u64, String> {
    let why = "a seed is a whole number, 0 or larger; write --seed 7";
    number(text, |_| true, why)
}

/// A number above 0.
pub(super) fn positive(text: &str) -> Result<f64, String> {
    number(
        text,
        |x: &f64| x.is_finite() && *x > 0.0,
        "write a number above 0",
    )
}

/// A number that fits; else `why` it does not.
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
