//! Random words that cannot be guessed, and the codes of a room on the network that are made of them.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;

/// Letters and digits that are not easily confused.
const LETTERS: &[u8] = b"abcdefghjkmnpqrstuvwxyz23456789";

/// The secrets of a room on the network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoomSecrets {
    /// The code with which learners join.
    pub code: String,
    /// The key for the instructor's page and presenter.
    pub key: String,
}

/// The access that a code gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The learners' code: to take part in the room.
    Learner,
    /// The instructor's key: also to see the board and to give orders.
    Instructor,
}

impl RoomSecrets {
    pub fn draw() -> Self {
        Self {
            code: random_word(8),
            key: random_word(16),
        }
    }

    /// Returns the access that a code gives; `None` for a wrong code. The time of the comparison does not depend on how many letters are
    /// right, so it helps nobody to guess.
    pub fn access(&self, code: &str) -> Option<Access> {
        // Codes have no capitals, but QR codes and people may use them.
        let lowercase = code.to_ascii_lowercase();
        let is_equal = |secret: &str| bool::from(secret.as_bytes().ct_eq(lowercase.as_bytes()));
        if is_equal(&self.key) {
            Some(Access::Instructor)
        } else if is_equal(&self.code) {
            Some(Access::Learner)
        } else {
            None
        }
    }
}

/// Returns a random word of this number of letters and digits. Each letter is a new hash of the standard library, whose keys come from
/// the operating system's source of randomness.
pub fn random_word(letters: usize) -> String {
    let mut word = String::with_capacity(letters);
    for _ in 0..letters {
        let bits = RandomState::new().build_hasher().finish();
        let index = bits % LETTERS.len() as u64;
        word.push(char::from(LETTERS[index as usize]));
    }
    word
}
