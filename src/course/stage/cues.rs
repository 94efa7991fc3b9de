//! Reads the beats of a stage for presenter mode: where the room looks, what is said, what happens.

use super::PANELS;
use crate::course::fields::{Fields, Table};
use crate::course::{Cue, CueDoes};

/// What a beat may do when it is reached.
const DOES: &[(&str, CueDoes)] = &[
    ("nothing", CueDoes::Nothing),
    ("toggle", CueDoes::Toggle),
    ("pair", CueDoes::Pair),
    ("hint", CueDoes::Hint),
];

/// Every `[[beat]]`, in order.
pub fn cues(fields: &mut Fields<'_>, t: Table<'_>) -> Vec<Cue> {
    fields
        .tables(t, "beat")
        .into_iter()
        .map(|table| cue(fields, table))
        .collect()
}

fn cue(fields: &mut Fields<'_>, t: Table<'_>) -> Cue {
    fields.known(t, &["show", "say", "does"]);
    let panels: Vec<&str> = std::iter::once("lesson")
        .chain(PANELS.iter().copied())
        .collect();
    let show = fields.word(t, "show", &panels);
    if show.is_none() && !Fields::has(t, "show") {
        fields.missing(t, "show", "= \"loss\"");
    }
    let words: Vec<&str> = DOES.iter().map(|(word, _)| *word).collect();
    let does = fields.word(t, "does", &words);
    let does = DOES
        .iter()
        .find(|(word, _)| does.as_deref() == Some(word))
        .map_or(CueDoes::Nothing, |(_, does)| *does);
    let say = fields.text(t, "say");
    if say.chars().count() > LONGEST {
        let line = fields.line_of(t, "say");
        fields.fail(
            line,
            format!(
                "`say` has {} characters; a room reads at most {LONGEST}",
                say.chars().count()
            ),
        );
    }
    Cue {
        show: show.unwrap_or_default(),
        say,
        does,
    }
}

/// Three lines of a small screen.
const LONGEST: usize = 210;
