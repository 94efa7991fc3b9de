//! What a class has done, to keep: as a page, as JSON with everything that was shared, or as a table with a line for each
//! participant and stage.

use std::collections::BTreeMap;

use serde::Serialize;

use super::csv::{known, row};
use super::sheet::{RangeScale, Sheet, SheetBlock, SheetTable, interval};
use crate::class::board::{RaceRank, VoteTally, duration, predicted, race, tally};
use crate::class::record::{Participant, Question, RaceResult, SharedWork, Vote, mystery_of};
use crate::class::state::RoomState;
use crate::course::save_file::letter;
use crate::course::{Course, Stage};
use crate::sanitize::{bounded, csv as cell};
use protocol::units::{number, or_dash};

#[derive(Serialize)]
struct ClassFile<'a> {
    version: u32,
    votes: BTreeMap<String, Vote>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    questions: &'a BTreeMap<String, Question>,
    participants: Vec<Entry<'a>>,
}

#[derive(Serialize)]
struct Entry<'a> {
    /// As the board shows it.
    shown: &'a str,
    #[serde(flatten)]
    record: Participant,
}

pub fn json(room: &RoomState) -> String {
    let people = room.people.values().map(|it| Entry {
        shown: room.name_of(&it.record),
        // Whoever has it could write in the participant's place.
        record: Participant {
            id: String::new(),
            ..it.record.clone()
        },
    });
    let votes = room.class.votes.iter().map(|(id, vote)| {
        let closed = vote.asked.iter().take(vote.round + usize::from(!vote.open));
        let counts = closed.map(|number| room.round(vote, *number).counts);
        let counts = counts.collect();
        (
            id.clone(),
            Vote {
                counts,
                ..vote.clone()
            },
        )
    });
    let class = ClassFile {
        version: room.class.version,
        votes: votes.collect(),
        questions: &room.class.questions,
        participants: people.collect(),
    };
    let text = serde_json::to_string_pretty(&class).unwrap_or_default();
    crate::sanitize::json(&text).into_owned() + "\n"
}

pub fn csv(room: &RoomState) -> String {
    let mut out = String::from(
        "name,device,stage,state,prediction,first_vote,second_vote,range_low,range_high,measured,ratio,ratio_low,ratio_high,\
         checks_met,checks,hints,points,seconds,configurations\n",
    );
    let none = RaceResult::default();
    for person in room.people.values() {
        let it = &person.record;
        // A phone votes without any work of its own.
        let voted = room
            .class
            .votes
            .keys()
            .filter(|id| !it.stages.contains_key(*id));
        let voted = voted.map(|id| (id, SharedWork::default()));
        let worked = it.stages.iter().map(|(id, shared)| (id, shared.clone()));
        for (id, shared) in worked.chain(voted) {
            let vote = room.class.votes.get(id);
            let ballots = [0, 1].map(|round| it.ballot(vote?, round));
            if it.stages.contains_key(id) || ballots != [None; 2] {
                let who = [room.name_of(it), &it.device, id];
                line(&mut out, &who, ballots, &shared, &none);
            }
        }
        for (task, result) in &it.races {
            let shared = SharedWork {
                ratio: result.ratio,
                ..SharedWork::default()
            };
            let who = [room.name_of(it), &it.device, task];
            line(&mut out, &who, [None; 2], &shared, result);
        }
    }
    out
}

/// The report of the class, for its instructor.
pub fn sheet(room: &RoomState, course: &Course) -> Sheet {
    let mut people: Vec<&Participant> = room.people.values().map(|it| &it.record).collect();
    people.sort_by_cached_key(|it| room.name_of(it).to_lowercase());
    let mut blocks = vec![
        SheetBlock::Title(format!("{}: the class", course.title)),
        SheetBlock::Intro(format!(
            "{}{} participants. Each ratio was measured on the participant's own device.",
            match room.class.opened.as_str() {
                "" => String::new(),
                day => format!("{day}. "),
            },
            people.len()
        )),
        everybody(room, course, &people),
    ];
    for stage in &course.stages {
        let begun = people.iter().filter_map(|it| {
            let shared = it.stages.get(&stage.id)?;
            shared.has_begun().then_some((*it, shared))
        });
        let begun: Vec<(&Participant, &SharedWork)> = begun.collect();
        let vote = room.class.votes.get(&stage.id);
        let voted = vote.and_then(|vote| Some((vote, tally(room, course, &stage.id, vote)?)));
        if !begun.is_empty() || voted.is_some() {
            blocks.extend(of_stage(room, stage, voted, &begun));
        }
    }
    for (id, vote) in &room.class.votes {
        if let Some(found) = tally(room, course, id, vote).filter(|it| it.stage == 0) {
            blocks.push(SheetBlock::Heading(found.prompt.clone()));
            blocks.push(SheetBlock::Intro(format!("Voted: {}.", found.who())));
            blocks.push(votes(&found));
        }
    }
    let mut tasks: Vec<&String> = people.iter().flat_map(|it| it.races.keys()).collect();
    tasks.sort_unstable();
    tasks.dedup();
    for task in tasks {
        let ranks = race(room, task).ranks;
        blocks.push(SheetBlock::Heading(format!("Results in {task}")));
        blocks.push(SheetBlock::Table(match mystery_of(task) {
            Some(_) => mystery_ranks(ranks),
            None => kernel_ranks(ranks),
        }));
    }
    Sheet(blocks)
}

fn place(rank: &RaceRank) -> String {
    or_dash(rank.place, |place| place.to_string())
}

fn mystery_ranks(ranks: Vec<RaceRank>) -> SheetTable {
    let of = |it: &RaceRank| it.result.mystery.unwrap_or_default();
    SheetTable::filled(
        ranks,
        &[
            ("place", &place),
            ("name", &|rank| rank.name.clone()),
            ("points", &|rank| of(rank).points.to_string()),
            ("time", &|rank| duration(of(rank).seconds)),
            ("configurations", &|rank| {
                of(rank).configurations.to_string()
            }),
            ("device", &|rank| rank.device.clone()),
        ],
    )
}

fn kernel_ranks(ranks: Vec<RaceRank>) -> SheetTable {
    SheetTable::filled(
        ranks,
        &[
            ("device", &|rank| rank.device.clone()),
            ("place", &place),
            ("name", &|rank| rank.name.clone()),
            ("ratio", &|rank| {
                spread(rank.result.ratio.unwrap_or_default())
            }),
        ],
    )
}

/// A ratio with its interval.
fn spread([ratio, low, high]: [f64; 3]) -> String {
    interval(ratio, low, high)
}

fn everybody(room: &RoomState, course: &Course, people: &[&Participant]) -> SheetBlock {
    let stages = |it: &Participant, meets: &dyn Fn(&Stage, &SharedWork) -> bool| {
        let stages = course.stages.iter();
        let known = stages.filter_map(|stage| Some((stage, it.stages.get(&stage.id)?)));
        known.filter(|(stage, it)| meets(stage, it)).count()
    };
    let share = |part: usize, of: usize| format!("{part} of {of}");
    let held = |it: &SharedWork| Some((it.range?, it.measured?));
    SheetBlock::Table(SheetTable::filled(
        people,
        &[
            ("name", &|it| room.name_of(it).to_owned()),
            ("device", &|it| it.device.clone()),
            ("stages passed", &|it| {
                stages(it, &|_, it| it.is_passed()).to_string()
            }),
            ("predictions right", &|it| {
                let right =
                    |stage: &Stage, it: &SharedWork| it.vote == Some(stage.prediction.answer);
                let all = stages(it, &|_, it| it.vote.is_some());
                share(stages(it, &right), all)
            }),
            ("ranges held", &|it| {
                let holds = |it: &SharedWork| {
                    held(it).is_some_and(|([low, high], x)| (low..=high).contains(&x))
                };
                let all = stages(it, &|_, it| held(it).is_some());
                share(stages(it, &|_, it| holds(it)), all)
            }),
            ("hints", &|it| {
                let hints = it.stages.values().map(|it| it.hints);
                hints.sum::<u32>().to_string()
            }),
        ],
    ))
}

/// How the class voted and what it predicted, and a line for everybody who has begun the stage.
fn of_stage(
    room: &RoomState,
    stage: &Stage,
    voted: Option<(&Vote, VoteTally)>,
    begun: &[(&Participant, &SharedWork)],
) -> Vec<SheetBlock> {
    let passed = begun.iter().filter(|(_, it)| it.is_passed()).count();
    // Where the class has not voted, the predictions stand for the votes.
    let (vote, found) = match voted {
        Some((vote, found)) => (vote.clone(), found),
        None => {
            let mut counts = vec![0; stage.prediction.choices.len()];
            for choice in begun.iter().filter_map(|(_, it)| it.vote) {
                counts.iter_mut().skip(choice).take(1).for_each(|n| *n += 1);
            }
            let rounds = vec![counts];
            let found = VoteTally {
                rounds,
                ..predicted(room, stage)
            };
            (Vote::default(), found)
        }
    };
    let (said, answer) = (found.prompt.clone(), stage.prediction.answer);
    let mut blocks = vec![
        SheetBlock::Heading(format!(
            "{} {}: {passed} of {} passed",
            stage.number,
            stage.title,
            begun.len()
        )),
        SheetBlock::Intro(format!("{said} The answer is {}.", letter(answer))),
        votes(&found),
    ];
    blocks.extend(ranges(stage, &found));
    blocks.push(SheetBlock::Table(SheetTable::filled(
        begun,
        &[
            ("name", &|(who, _)| room.name_of(who).to_owned()),
            ("", &|(_, it)| it.state.clone()),
            ("prediction", &|(_, it)| known(it.vote.map(letter))),
            ("votes", &|(who, _)| {
                let votes = [0, 1].map(|round| who.ballot(&vote, round));
                let votes = votes.into_iter().flatten().map(letter);
                votes.collect::<Vec<_>>().join(", then ")
            }),
            ("range", &|(_, it)| {
                let said = |[low, high]: [f64; 2]| format!("{} to {}", number(low), number(high));
                known(it.range.map(said))
            }),
            ("measured", &|(_, it)| known(it.measured.map(number))),
            ("ratio of A to B", &|(_, it)| known(it.ratio.map(spread))),
            ("hints", &|(_, it)| it.hints.to_string()),
        ],
    )));
    blocks
}

/// The choices with their votes in each round.
fn votes(found: &VoteTally) -> SheetBlock {
    let rounds = |it: &usize| {
        let votes = found.votes(*it);
        let votes: Vec<String> = votes.iter().map(u32::to_string).collect();
        votes.join(", then ")
    };
    SheetBlock::Table(SheetTable::filled(
        0..found.choices.len(),
        &[
            ("", &|it| letter(*it)),
            ("choice", &|it| found.choices[*it].clone()),
            ("votes", &rounds),
        ],
    ))
}

/// The ranges that were drawn, over the middle of what was measured.
fn ranges(stage: &Stage, found: &VoteTally) -> Option<SheetBlock> {
    let of = stage.estimate.as_ref();
    let of = of.filter(|_| !found.ranges.is_empty())?;
    let middle = |it| {
        let (it, unit) = (number(it), &of.unit);
        format!("the middle of what was measured is {it} {unit}")
    };
    let measured = found.measured.map(middle);
    let measured = measured.unwrap_or("nothing was measured".to_owned());
    Some(SheetBlock::Scale(RangeScale {
        said: format!(
            "{} {} ranges; {measured}",
            bounded(of.prompt.trim(), 200),
            found.ranges.len()
        ),
        from: of.from,
        to: of.to,
        log: of.log,
        ranges: found.ranges.iter().map(|it| (it[0], it[1])).collect(),
        mark: found.measured,
        even: None,
    }))
}

fn line(
    out: &mut String,
    who: &[&str; 3],
    ballots: [Option<usize>; 2],
    it: &SharedWork,
    result: &RaceResult,
) {
    let mystery = result.mystery.as_ref();
    let mut cells: Vec<String> = who
        .iter()
        .chain(&[it.state.as_str()])
        .map(|text| cell(text))
        .collect();
    cells.extend([it.vote, ballots[0], ballots[1]].map(|vote| known(vote.map(letter))));
    cells.extend([0, 1].map(|at| known(it.range.map(|range| range[at]))));
    cells.push(known(it.measured));
    cells.extend([0, 1, 2].map(|at| known(it.ratio.map(|ratio| ratio[at]))));
    cells.extend([0, 1].map(|at| known(it.checks.map(|checks| checks[at]))));
    cells.extend([
        it.hints.to_string(),
        known(mystery.map(|it| it.points)),
        known(mystery.map(|it| it.seconds)),
        known(mystery.map(|it| it.configurations)),
    ]);
    row(out, &cells);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::record::MysteryResult;
    use crate::pages::html;

    fn solved() -> RaceResult {
        RaceResult {
            ratio: Some([1.5, 1.25, 2.0]),
            mystery: Some(MysteryResult {
                points: 70,
                seconds: 90,
                configurations: 3,
            }),
        }
    }

    #[test]
    fn a_class_is_kept_as_json_and_as_a_table() {
        let mut room = RoomState::default();
        let mut it = Participant {
            id: "1".to_owned(),
            name: "=cmd|' /C calc'!A0".to_owned(),
            sequence: 1,
            ..Participant::default()
        };
        let shared = SharedWork {
            state: "passed".to_owned(),
            vote: Some(1),
            range: Some([1.0, 2.5]),
            hints: 2,
            ..SharedWork::default()
        };
        it.stages.insert("broken-init".to_owned(), shared);
        it.races.insert("mystery 7-1".to_owned(), solved());
        room.hear(it, 0).expect("heard");
        let table = csv(&room);
        let lines: Vec<&str> = table.lines().collect();
        assert!(lines[0].ends_with(",configurations"), "{}", lines[0]);
        assert_eq!(
            lines[1],
            "\"'=cmd|' /C calc'!A0\",,broken-init,passed,b,,,1,2.5,,,,,,,2,,,"
        );
        assert_eq!(
            lines[2],
            "\"'=cmd|' /C calc'!A0\",,mystery 7-1,,,,,,,,1.5,1.25,2,,,0,70,90,3"
        );
        let json: serde_json::Value = serde_json::from_str(&json(&room)).expect("JSON");
        assert_eq!(json["participants"][0]["stages"]["broken-init"]["vote"], 1);
    }

    #[test]
    fn the_report_of_a_class_counts_and_escapes() {
        let course = Course::builtin();
        let stage = &course.stages[0];
        let mut room = RoomState::default();
        for (id, name, vote) in [("1", "<script>x", stage.prediction.answer), ("2", "Bo", 3)] {
            let shared = SharedWork {
                state: "passed".to_owned(),
                vote: Some(vote),
                range: Some([6.0, 7.5]),
                measured: Some(7.0),
                ratio: Some([1.2, 1.1, 1.3]),
                ..SharedWork::default()
            };
            let it = Participant {
                id: id.to_owned(),
                name: name.to_owned(),
                sequence: 1,
                stages: [(stage.id.clone(), shared)].into(),
                races: [("mystery 7-1".to_owned(), solved())].into(),
                ..Participant::default()
            };
            room.hear(it, 0).expect("heard");
        }
        let text = sheet(&room, &course).text();
        for wanted in [
            "2 participants",
            "2 of 2 passed",
            "1 of 1",
            "0 of 1",
            "2 ranges",
            "1.200 [1.100, 1.300]",
            "mystery 7-1",
        ] {
            assert!(text.contains(wanted), "{wanted}: {text}");
        }
        let page = html::page(&sheet(&room, &course));
        assert!(page.contains("&lt;script&gt;x") && !page.contains("<script"));
        assert_eq!(page.matches("class=\"band\"").count(), 2);
    }
}
