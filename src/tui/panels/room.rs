//! The two cards of a class: the list of everything that the learner shares with it, and the question that the class votes on.
//!
//! ```text
//! ╭ the room ──────────────────────────────────── esc closes ╮
//! │ The room at /srv/class is open.                          │
//! │                                                          │
//! │ What you share, and nothing else                         │
//! │  name         Ada                                        │
//! │  passed       2                                          │
//! │  predictions  init b; strides a                          │
//! │                                                          │
//! │ The instructor sees it on a board, as Ada.               │
//! ╰──────────────────────────────────────────────────────────╯
//! ```

use ratatui::layout::Rect;

use super::content::Content;
use super::question::choices_with_keys;
use crate::app::member::{InstructorCall, Link, Membership};
use crate::app::{Action, App};
use crate::course::save_file::letter;
use crate::tui::prose::ProseWriter;
use crate::tui::theme::Theme;
use protocol::units::number;

/// Returns the title of the card of the vote.
fn title_of_vote(app: &App) -> &'static str {
    let open = app
        .class
        .as_ref()
        .and_then(|member| member.class.open_vote());
    if open.is_some_and(|(_, vote)| vote.round > 0) {
        "the room votes again"
    } else {
        "the room votes"
    }
}

/// Returns the card that lists everything that the learner shares.
pub(super) fn content<'a>(app: &'a App, theme: &'a Theme, area: Rect) -> Content<'a> {
    let mut w = ProseWriter::new(app, theme, area.width);
    match &app.class {
        Some(member) => shares(member, &mut w),
        None => w.text("You are in no room. `perflings --room WHERE` joins one."),
    }
    Content::titled("the room", w.lines)
}

/// Writes the state of the room, everything that is shared, and the name under which the instructor sees it.
fn shares(member: &Membership, w: &mut ProseWriter<'_>) {
    let theme = w.theme;
    let name = &member.me.name;
    let state = match &member.link {
        Link::Joining => "being reached".to_owned(),
        Link::Joined if member.class.closed => "closed by the instructor".to_owned(),
        Link::Joined => "open".to_owned(),
        Link::Lost(why) => {
            format!("not reached: {why}; it is tried again, and what was missed is shared then")
        }
        Link::Over(why) => format!("left: {why}"),
    };
    w.text(&format!("The room at {} is {state}.", member.me.at));
    w.heading("What you share, and nothing else");
    for (name, value) in shared(member) {
        w.item(&format!(" {name:<12} "), theme.dim, &value);
    }
    let under_name = match member.class.renamed.get(&member.me.id) {
        Some(other) => format!("as {other}: another participant has your name"),
        None if name.is_empty() => "without a name".to_owned(),
        None => format!("as {name}"),
    };
    w.blank();
    w.dim(&format!("The instructor sees it on a board, {under_name}."));
    let seat = &member.class.seat;
    if member.link == Link::Joined && !seat.is_empty() {
        w.dim(&format!(
            "To vote with a phone, open the room's address there and type your code {seat}: \
             you stay one person."
        ));
    }
    if !matches!(member.link, Link::Over(_)) {
        w.keys(
            "{} raises or lowers your hand, {} follows the room's call, {} leaves the room.",
            &[Action::RaiseHand, Action::TakeUp, Action::LeaveRoom],
        );
    }
}

/// Returns the name and the present value of each thing that is shared.
fn shared(member: &Membership) -> Vec<(&'static str, String)> {
    let shared = &member.shared;
    let mut predictions = Vec::new();
    let mut ranges = Vec::new();
    let mut checks = Vec::new();
    let mut ratios = Vec::new();
    let mut hints = 0;
    for (id, stage) in &shared.stages {
        if let Some(vote) = stage.vote {
            predictions.push(format!("{id} {}", letter(vote)));
        }
        if let Some([low, high]) = stage.range {
            ranges.push(format!("{id} {} to {}", number(low), number(high)));
        }
        if let Some([met, all]) = stage.checks {
            checks.push(format!("{met} of {all}"));
        }
        if let Some(ratio) = stage.ratio {
            ratios.push(format!("{id} {:.2}x", ratio[0]));
        }
        hints += stage.hints;
    }
    let mut votes = Vec::new();
    for (id, vote) in &member.class.votes {
        let ballots: Vec<String> = (0..=vote.round)
            .filter_map(|round| shared.ballot(vote, round))
            .map(letter)
            .collect();
        if !ballots.is_empty() {
            votes.push(format!("{id} {}", ballots.join(", then ")));
        }
    }
    let mut mysteries = Vec::new();
    for (id, race) in &shared.races {
        if let Some(mystery) = race.mystery {
            mysteries.push(format!(
                "{id} {} points, {} s, {} configurations",
                mystery.points, mystery.seconds, mystery.configurations
            ));
        } else if let Some(ratio) = race.ratio {
            ratios.push(format!("{id} {:.2}x", ratio[0]));
        }
    }
    let or_none = |text: &str| match text {
        "" => "none yet".to_owned(),
        text => text.to_owned(),
    };
    let joined = |parts: Vec<String>| or_none(&parts.join("; "));
    let hand = if member.raised { "raised" } else { "down" };
    vec![
        ("name", or_none(&shared.name)),
        ("stage", or_none(&shared.open_task)),
        ("passed", shared.passed().to_string()),
        ("predictions", joined(predictions)),
        ("votes", joined(votes)),
        ("ranges", joined(ranges)),
        ("checks met", joined(checks)),
        ("hints used", hints.to_string()),
        ("speed-ups", joined(ratios)),
        ("mysteries", joined(mysteries)),
        ("device", or_none(&shared.device)),
        ("hand", hand.to_owned()),
    ]
}

/// Returns the card of the vote: the question with its choices and their keys.
pub(super) fn vote<'a>(app: &'a App, theme: &'a Theme, area: Rect) -> Content<'a> {
    let mut w = ProseWriter::new(app, theme, area.width);
    if let Some(question) = app.voting() {
        if let Some(InstructorCall::Vote { at, .. }) = app.call() {
            let stage = &app.lesson.course.stages[at];
            let title = format!("Stage {} {}", stage.number, stage.title);
            w.plain(&title, theme.heading);
            w.blank();
        }
        choices_with_keys(letter, question, &mut w);
    } else {
        w.dim("No vote is open.");
    }
    Content::titled(title_of_vote(app), w.lines)
}
