//! What a learner is to find out must not be read off the stream: it crosses the process boundary in a form that no eye reads. It
//! is no secret to a program; whoever wants to cheat has an easier way.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{Command, Event};
use crate::config::RunConfig;
use crate::random::{Rng, hash};

/// Longest sealed text, in bytes.
const MAX: usize = 256 * 1024;

/// A command or an event, sealed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seal(String);

impl Seal {
    /// Seals what can be written as JSON; `number` makes two seals of the same thing differ.
    fn close(it: &impl Serialize, number: u64) -> Option<Self> {
        let text = serde_json::to_vec(it).ok()?;
        let seed = hash(text.iter().copied()).wrapping_add(number);
        let mut out = format!("{seed:016x}");
        for byte in covered(&text, seed) {
            out.push_str(&format!("{byte:02x}"));
        }
        Some(Self(out))
    }

    fn open<T: DeserializeOwned>(&self) -> Option<T> {
        let text = self.0.get(..2 * MAX).unwrap_or(&self.0);
        let (seed, rest) = text.split_at_checked(16)?;
        let seed = u64::from_str_radix(seed, 16).ok()?;
        let bytes = rest.as_bytes().chunks(2).map(|pair| {
            let digits = std::str::from_utf8(pair).ok()?;
            u8::from_str_radix(digits, 16).ok()
        });
        let bytes: Option<Vec<u8>> = bytes.collect();
        serde_json::from_slice(&covered(&bytes?, seed)).ok()
    }
}

/// Covers a text, and uncovers what was covered.
fn covered(text: &[u8], seed: u64) -> Vec<u8> {
    let mut rng = Rng::named(seed, "seal", text.len() as u64);
    let bytes = text.iter();
    bytes.map(|byte| byte ^ rng.bits() as u8).collect()
}

impl Command {
    /// Whether it holds a configuration that is not to be read.
    fn is_secret(&self) -> bool {
        match self {
            Self::Start { run, .. } | Self::Apply { run } => run.sealed,
            Self::Pair { a, b, .. } => a.sealed || b.sealed,
            _ => false,
        }
    }

    /// As it is sent.
    #[must_use]
    pub fn sealed(self, number: u64) -> Self {
        let seal = self.is_secret().then(|| Seal::close(&self, number));
        match seal.flatten() {
            Some(seal) => Self::Sealed { seal },
            None => self,
        }
    }

    /// As it is meant.
    #[must_use]
    pub fn unsealed(self) -> Self {
        match &self {
            Self::Sealed { seal } => seal.open().unwrap_or(self),
            _ => self,
        }
    }
}

impl Event {
    /// As it is sent while a sealed run goes on: what names a value, a key or a fault is covered.
    #[must_use]
    pub fn sealed(self, number: u64) -> Self {
        let names = matches!(
            self,
            Self::Started(_) | Self::Lints { .. } | Self::Pair(_) | Self::Finished(_)
        );
        match names.then(|| Seal::close(&self, number)).flatten() {
            Some(seal) => Self::Sealed { seal },
            None => self,
        }
    }

    /// As it is meant.
    #[must_use]
    pub fn unsealed(self) -> Self {
        match &self {
            Self::Sealed { seal } => seal.open().unwrap_or(self),
            _ => self,
        }
    }

    /// As a recording and `--json` have it: what a sealed event would tell of the configuration is left out.
    #[must_use]
    pub fn covered(mut self) -> Self {
        match &mut self {
            Self::Started(started) => {
                let plain = RunConfig::preset(started.run.config.preset);
                (started.config, started.run.config) = (plain.hash(), plain);
            }
            Self::Lints { lints, .. } => lints.clear(),
            Self::Pair(pair) => pair.differs.clear(),
            Self::Finished(finished) => {
                finished.lints.clear();
                finished.config.clear();
                if let Some(pair) = &mut finished.pair {
                    pair.differs.clear();
                }
            }
            _ => {}
        }
        self
    }

    /// The run that begins is sealed, or is not; none where the event begins none.
    pub fn begins_sealed(&self) -> Option<bool> {
        match self {
            Self::Started(started) => Some(started.run.sealed),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Preset;
    use crate::protocol::{RunSpec, Slot, read};

    fn start(sealed: bool) -> Command {
        let mut config = RunConfig::preset(Preset::Tiny);
        config.train.learning_rate = 1e-7;
        let run = RunSpec {
            stage: 0,
            variant: "mystery".to_owned(),
            slot: Slot::A,
            config,
            steps: None,
            sealed,
        };
        let device = "cpu".to_owned();
        Command::Start { device, run }
    }

    #[test]
    fn a_sealed_run_is_not_read_off_the_line_and_arrives_whole() {
        let line = |command: &Command| serde_json::to_string(command).expect("plain data");
        assert!(line(&start(false).sealed(1)).contains("learning"));
        let sent = line(&start(true).sealed(1));
        for word in ["learning", "mystery", "config", "1e-7"] {
            assert!(!sent.contains(word), "{sent}");
        }
        assert_ne!(sent, line(&start(true).sealed(2)));
        let heard: Command = read(&sent).expect("a command");
        assert_eq!(heard.unsealed(), start(true));
    }

    #[test]
    fn a_broken_seal_is_no_command() {
        for seal in ["", "zz", "0123456789abcdefzz", "0123456789abcdef00", "äöü"] {
            let seal = Seal(seal.to_owned());
            let command = Command::Sealed { seal };
            assert_eq!(command.clone().unsealed(), command);
        }
    }
}
