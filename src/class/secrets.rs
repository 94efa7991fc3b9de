//! The words that a room draws: its codes, the codes of seats, and names that no other file has.

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
    /// The code lets its owner take part in the room.
    Learner,
    /// The key also lets its owner see the board and give orders.
    Instructor,
}

impl RoomSecrets {
    pub fn draw() -> Self {
        Self {
            code: drawn(8),
            key: drawn(16),
        }
    }

    /// Returns what a code permits; `None` for a wrong one. The time of the comparison does not depend on how much of the code is right.
    pub fn access(&self, given: &str) -> Option<Access> {
        // Codes have no capitals, but QR codes and people may use them.
        let given = given.to_ascii_lowercase();
        let is_equal = |secret: &str| bool::from(secret.as_bytes().ct_eq(given.as_bytes()));
        match (is_equal(&self.key), is_equal(&self.code)) {
            (true, _) => Some(Access::Instructor),
            (false, true) => Some(Access::Learner),
            (false, false) => None,
        }
    }
}

/// Returns a random word that cannot be guessed, from the standard library's source of randomness.
pub fn drawn(letters: usize) -> String {
    let mut word = String::with_capacity(letters);
    for _ in 0..letters {
        let bits = RandomState::new().build_hasher().finish();
        let at = bits % LETTERS.len() as u64;
        word.push(char::from(LETTERS[at as usize]));
    }
    word
}
