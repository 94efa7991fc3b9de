//! The cards of a room: what is shared, and the question that the class votes on.

use ratatui::layout::Rect;

use super::content::Content;
use super::question::choices_behind;
use crate::app::member::{InstructorCall, Link, Membership};
use crate::app::{Action, App};
use crate::course::save_file::letter;
use crate::tui::prose::ProseWriter;
use crate::tui::theme::Theme;
use protocol::units::number;

/// The title of the vote.
fn title_of_vote(app: &App) -> &'static str {
    let open = app.class.as_ref().and_then(|it| it.class.open_vote());
    match open.is_some_and(|(_, vote)| vote.round > 0) {
        true => "the room votes again",
        false => "the room votes",
    }
}

/// What is shared.
pub(super) fn content<'a>(app: &'a App, theme: &'a Theme, area: Rect) -> Content<'a> {
    let mut w = ProseWriter::new(app, theme, area.width);
    match &app.class {
        Some(member) => shares(member, &mut w),
        None => w.text("You are in no room. `perflings --room WHERE` joins one."),
    }
    Content::titled("the room", w.lines)
}

fn shares(member: &Membership, w: &mut ProseWriter<'_>) {
    let theme = w.theme;
    let (at, name) = (&member.me.at, &member.me.name);
    let state = match &member.link {
        Link::Joining => "being reached".to_owned(),
        Link::Joined if member.class.closed => "closed by the instructor".to_owned(),
        Link::Joined => "open".to_owned(),
        Link::Lost(why) => {
            format!("not reached: {why}; it is tried again, and what was missed is shared then")
        }
        Link::Over(why) => format!("left: {why}"),
    };
    w.text(&format!("The room at {at} is {state}."));
    w.heading("What you share, and nothing else");
    for (what, value) in shared(member) {
        w.item(&format!(" {what:<12} "), theme.dim, &value);
    }
    let called = match member.class.renamed.get(&member.me.id) {
        Some(other) => format!("as {other}: another participant has your name"),
        None if name.is_empty() => "without a name".to_owned(),
        None => format!("as {name}"),
    };
    w.blank();
    w.dim(&format!("The instructor sees it on a board, {called}."));
    let seat = &member.class.seat;
    if member.link == Link::Joined && !seat.is_empty() {
        w.dim(&format!(
            "To vote with a phone, open the room's address there and type your code {seat}: you stay one person."
        ));
    }
    if !matches!(member.link, Link::Over(_)) {
        w.keys(
            "{} raises or lowers your hand, {} follows the room's call, {} leaves the room.",
            &[Action::RaiseHand, Action::TakeUp, Action::LeaveRoom],
        );
    }
}

/// Each thing that is shared, as it is now.
fn shared(member: &Membership) -> Vec<(&'static str, String)> {
    let it = &member.shared;
    let stages = it.stages.values();
    let or_none = |text: String| match text.as_str() {
        "" => "none yet".to_owned(),
        _ => text,
    };
    let by_stage = || it.stages.iter();
    let predictions =
        by_stage().filter_map(|(id, shared)| Some(format!("{id} {}", letter(shared.vote?))));
    let votes = member.class.votes.iter().filter_map(|(id, vote)| {
        let ballots = (0..=vote.round).filter_map(|round| it.ballot(vote, round));
        let ballots = ballots.map(letter).collect::<Vec<_>>().join(", then ");
        (!ballots.is_empty()).then(|| format!("{id} {ballots}"))
    });
    let ranges = by_stage().filter_map(|(id, shared)| {
        let [low, high] = shared.range?;
        Some(format!("{id} {} to {}", number(low), number(high)))
    });
    let checks = stages
        .clone()
        .filter_map(|it| it.checks)
        .map(|[met, all]| format!("{met} of {all}"));
    let ratios = by_stage().filter_map(|(id, shared)| Some((id, shared.ratio?)));
    let kernels = it.races.iter().filter(|(_, it)| it.mystery.is_none());
    let ratios = ratios.chain(kernels.filter_map(|(id, it)| Some((id, it.ratio?))));
    let ratios = ratios.map(|(id, ratio)| format!("{id} {:.2}x", ratio[0]));
    let mysteries = it.races.iter().filter_map(|(id, it)| {
        let it = it.mystery?;
        let (points, tried) = (it.points, it.configurations);
        let seconds = it.seconds;
        Some(format!(
            "{id} {points} points, {seconds} s, {tried} configurations"
        ))
    });
    let join = |all: &mut dyn Iterator<Item = String>| or_none(all.collect::<Vec<_>>().join("; "));
    let hints: u32 = stages.map(|shared| shared.hints).sum();
    let hand = if member.raised { "raised" } else { "down" };
    vec![
        ("name", or_none(it.name.clone())),
        ("stage", or_none(it.here.clone())),
        ("passed", it.passed().to_string()),
        ("predictions", join(&mut predictions.into_iter())),
        ("votes", join(&mut votes.into_iter())),
        ("ranges", join(&mut ranges.into_iter())),
        ("checks met", join(&mut checks.into_iter())),
        ("hints used", hints.to_string()),
        ("speed-ups", join(&mut ratios.into_iter())),
        ("mysteries", join(&mut mysteries.into_iter())),
        ("device", or_none(it.device.clone())),
        ("hand", hand.to_owned()),
    ]
}

/// The question with its choices and their keys.
pub(super) fn vote<'a>(app: &'a App, theme: &'a Theme, area: Rect) -> Content<'a> {
    let mut w = ProseWriter::new(app, theme, area.width);
    if let Some(question) = app.voting() {
        if let Some(InstructorCall::Vote { at, .. }) = app.call() {
            let stage = &app.lesson.course.stages[at];
            let named = format!("Stage {} {}", stage.number, stage.title);
            w.plain(&named, theme.heading);
            w.blank();
        }
        choices_behind(letter, question, &mut w);
    } else {
        w.dim("No vote is open.");
    }
    Content::titled(title_of_vote(app), w.lines)
}
