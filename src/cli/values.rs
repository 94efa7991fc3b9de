//! Parsers for the values of flags. The error for a value that is not accepted says what to write instead.

use std::ffi::OsStr;
use std::str::FromStr;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Arg, Command};
use strum::{VariantArray, VariantNames};

use crate::app::ThemeName;
use crate::settings::KEYS;
use protocol::config::{Preset, VERSIONS, nearest};

const DEVICES: &[&str] = &["auto", "cpu", "gpu", "vulkan-cpu"];

/// Parses the name of a model size.
pub(super) fn preset() -> impl TypedValueParser<Value = Preset> {
    PossibleValuesParser::new(Preset::VARIANTS).try_map(|name| name.parse())
}

/// Accepts any text, and lets a shell complete the names of versions. `BenchArgs::rows` checks the name and the changes after it.
pub(super) fn versions() -> Completed<String> {
    let names = VERSIONS.iter().map(|(name, _)| *name).collect();
    Completed(names, |text| Ok(text.to_owned()))
}

/// Parses the name of a theme.
pub(super) fn theme() -> Completed<ThemeName> {
    let names = ThemeName::VARIANTS.iter().map(ThemeName::into_str);
    Completed(names.collect(), |name| named("theme", name))
}

/// Parses the name of a value. The error for another word lists the names; `what` is the kind of value, such as `theme`.
pub(super) fn named<T>(what: &str, name: &str) -> Result<T, String>
where
    T: FromStr + VariantArray,
    &'static T: Into<&'static str>,
{
    let mut all = T::VARIANTS.iter().map(Into::into);
    name.parse().map_err(|_| unknown(what, name, &mut all))
}

/// Returns the message about a word that is not one of the known words, with the most similar known word.
pub(super) fn unknown(what: &str, word: &str, known: &mut dyn Iterator<Item = &str>) -> String {
    let all: Vec<&str> = known.collect();
    let near = nearest(word, all.iter().copied());
    let shown = crate::sanitize::line(word);
    let names = all.join(", ");
    format!("unknown {what} `{shown}`; did you mean `{near}`? It is one of {names}")
}

/// A parser with words that a shell may complete. The function parses the value, which need not be one of the words.
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

/// Parses the name of a device.
pub(super) fn devices() -> Completed<String> {
    Completed(DEVICES.to_vec(), device)
}

/// Accepts any text, and lets a shell complete the names of settings. `config` refuses unknown names.
pub(super) fn key() -> Completed<String> {
    Completed(KEYS.iter().map(|(key, _)| *key).collect(), |key| {
        Ok(key.to_owned())
    })
}

/// Checks that a text has the form of a device's name. Only the engine knows whether there is such a device.
pub(super) fn device(text: &str) -> Result<String, String> {
    let number = text.strip_prefix("gpu:");
    if DEVICES.contains(&text) || number.is_some_and(|number| number.parse::<u16>().is_ok()) {
        return Ok(text.to_owned());
    }
    // The name may come from another program: `cuda:1` means `gpu:1`.
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

/// Parses the number of hints to show, 1 to 3.
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

/// Parses a number for which `fits` returns true. The error for any other text is `why`.
fn number<T: FromStr>(text: &str, fits: impl FnOnce(&T) -> bool, why: &str) -> Result<T, String> {
    text.parse().ok().filter(fits).ok_or_else(|| why.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_and_numbers_are_checked_by_form() {
        assert_eq!(device("gpu:1").as_deref(), Ok("gpu:1"));
        let why = device("gpux").expect_err("unknown");
        assert!(why.contains("did you mean `gpu`"));
        for (typed, meant) in [
            ("cuda", "gpu"),
            ("cuda:1", "gpu:1"),
            ("llvmpipe", "vulkan-cpu"),
        ] {
            let why = device(typed).expect_err("another program's name");
            assert!(why.contains(&format!("did you mean `{meant}`?")), "{why}");
        }
        assert!(device("gpu:x").is_err());
        assert_eq!(positive("0.95"), Ok(0.95));
        assert_eq!((steps("1"), hints("3"), seed("0")), (Ok(1), Ok(3), Ok(0)));
        let why = steps("0").expect_err("no step");
        assert!(why.contains("at least 1"), "{why}");
        assert!(steps("x").is_err() && hints("x").is_err() && hints("4").is_err());
        assert!(
            ["0", "-1", "NaN", "inf"]
                .iter()
                .all(|text| positive(text).is_err())
        );
    }
}
