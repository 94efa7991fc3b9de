//! Writes down what a class has done: as a sheet for its instructor, as JSON with everything that was shared, or as a CSV table with a line
//! for each stage, vote and race of each participant.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::csv::{or_empty, push_row};
use super::sheet::{RangeScale, Sheet, SheetBlock, SheetTable, interval};
use crate::class::board::{RaceRank, VoteTally, duration, race, tally, tally_without_votes};
use crate::class::record::{Participant, Question, RaceResult, SharedWork, Vote, mystery_of};
use crate::class::state::RoomState;
use crate::course::save_file::letter;
use crate::course::{Course, Stage};
use crate::sanitize::{bounded, csv as cell};
use protocol::units::{number, or_dash};

/// The class as JSON.
#[derive(Serialize)]
struct ClassFile<'a> {
    version: u32,
    /// The votes, each with the counts of its closed rounds.
    votes: BTreeMap<&'a str, Vote>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    questions: &'a BTreeMap<String, Question>,
    participants: Vec<ParticipantEntry<'a>>,
}

/// A participant as JSON.
#[derive(Serialize)]
struct ParticipantEntry<'a> {
    /// The name on the board.
    shown: &'a str,
    #[serde(flatten)]
    record: Participant,
}

/// Returns everything that the class has shared as JSON, without the ids of participants.
pub fn json(room: &RoomState) -> String {
    let mut votes = BTreeMap::new();
    for (id, vote) in &room.class.votes {
        let closed_rounds = vote.round + usize::from(!vote.open);
        let rounds = vote.asked.iter().take(closed_rounds);
        let counts = rounds.map(|number| room.round(vote, *number).counts);
        let mut counted_vote = vote.clone();
        counted_vote.counts.extend(counts);
        votes.insert(id.as_str(), counted_vote);
    }
    let mut participants = Vec::new();
    for person in room.people.values() {
        let mut record = person.record.clone();
        // Whoever has the id could write in the participant's place.
        record.id.clear();
        participants.push(ParticipantEntry {
            shown: room.name_of(&person.record),
            record,
        });
    }
    let class = ClassFile {
        version: room.class.version,
        votes,
        questions: &room.class.questions,
        participants,
    };
    let text = serde_json::to_string_pretty(&class).unwrap_or_default();
    crate::sanitize::json(&text).into_owned() + "\n"
}

/// Returns the table of the class: a line for each stage, vote and race of each participant.
pub fn csv(room: &RoomState) -> String {
    let mut out = String::from(
        "name,device,stage,state,prediction,first_vote,second_vote,range_low,range_high,measured,ratio,ratio_low,ratio_high,\
         checks_met,checks,hints,points,seconds,configurations\n",
    );
    let no_work = SharedWork::default();
    let no_result = RaceResult::default();
    for person in room.people.values() {
        let record = &person.record;
        let name = room.name_of(record);
        let mut works: Vec<(&String, &SharedWork)> = record.stages.iter().collect();
        // A phone votes without any work of its own.
        for id in room.class.votes.keys() {
            if !record.stages.contains_key(id) {
                works.push((id, &no_work));
            }
        }
        for (id, work) in works {
            let vote = room.class.votes.get(id);
            let ballots = [0, 1].map(|round| record.ballot(vote?, round));
            if record.stages.contains_key(id) || ballots != [None; 2] {
                let who = [name, &record.device, id];
                push_line(&mut out, &who, ballots, work, &no_result);
            }
        }
        for (task, result) in &record.races {
            let work = SharedWork {
                ratio: result.ratio,
                ..SharedWork::default()
            };
            let who = [name, &record.device, task];
            push_line(&mut out, &who, [None; 2], &work, result);
        }
    }
    out
}

/// Appends a line to the CSV table. `who` is the name, the device, and the stage or race; `ballots` are the votes of the two rounds.
fn push_line(
    out: &mut String,
    who: &[&str; 3],
    ballots: [Option<usize>; 2],
    work: &SharedWork,
    result: &RaceResult,
) {
    let mut cells: Vec<String> = who.iter().map(|text| cell(text)).collect();
    cells.push(cell(&work.state));
    cells.extend([work.vote, ballots[0], ballots[1]].map(|vote| or_empty(vote.map(letter))));
    cells.extend([0, 1].map(|end| or_empty(work.range.map(|range| range[end]))));
    cells.push(or_empty(work.measured));
    cells.extend([0, 1, 2].map(|part| or_empty(work.ratio.map(|ratio| ratio[part]))));
    cells.extend([0, 1].map(|part| or_empty(work.checks.map(|checks| checks[part]))));
    cells.push(work.hints.to_string());
    let mystery = result.mystery.as_ref();
    cells.push(or_empty(mystery.map(|mystery| mystery.points)));
    cells.push(or_empty(mystery.map(|mystery| mystery.seconds)));
    cells.push(or_empty(mystery.map(|mystery| mystery.configurations)));
    push_row(out, &cells);
}

/// Returns the report on the class for its instructor.
pub fn sheet(room: &RoomState, course: &Course) -> Sheet {
    let mut people: Vec<&Participant> = room.people.values().map(|person| &person.record).collect();
    people.sort_by_cached_key(|person| room.name_of(person).to_lowercase());
    let day = match room.class.opened.as_str() {
        "" => String::new(),
        day => format!("{day}. "),
    };
    let mut blocks = vec![
        SheetBlock::Title(format!("{}: the class", course.title)),
        SheetBlock::Intro(format!(
            "{day}{} participants. Each ratio was measured on the participant's own device.",
            people.len()
        )),
        SheetBlock::Table(people_table(room, course, &people)),
    ];
    for stage in &course.stages {
        blocks.extend(stage_blocks(room, course, stage, &people));
    }
    for id in room.class.questions.keys() {
        if let Some(tally) = tally(room, course, id) {
            blocks.push(SheetBlock::Heading(tally.prompt.clone()));
            blocks.push(SheetBlock::Intro(format!("Voted: {}.", tally.turnout())));
            blocks.push(SheetBlock::Table(vote_table(&tally)));
        }
    }
    let tasks: BTreeSet<&String> = people
        .iter()
        .flat_map(|person| person.races.keys())
        .collect();
    for task in tasks {
        let ranks = race(room, task).ranks;
        let table = match mystery_of(task) {
            Some(_) => mystery_table(ranks),
            None => kernel_table(ranks),
        };
        blocks.push(SheetBlock::Heading(format!("Results in {task}")));
        blocks.push(SheetBlock::Table(table));
    }
    Sheet(blocks)
}

fn place(rank: &RaceRank) -> String {
    or_dash(rank.place, |place| place.to_string())
}

fn mystery_table(ranks: Vec<RaceRank>) -> SheetTable {
    let mystery = |rank: &RaceRank| rank.result.mystery.unwrap_or_default();
    SheetTable::filled(
        ranks,
        &[
            ("place", &place),
            ("name", &|rank| rank.name.clone()),
            ("points", &|rank| mystery(rank).points.to_string()),
            ("time", &|rank| duration(mystery(rank).seconds)),
            ("configurations", &|rank| {
                mystery(rank).configurations.to_string()
            }),
            ("device", &|rank| rank.device.clone()),
        ],
    )
}

fn kernel_table(ranks: Vec<RaceRank>) -> SheetTable {
    SheetTable::filled(
        ranks,
        &[
            ("device", &|rank| rank.device.clone()),
            ("place", &place),
            ("name", &|rank| rank.name.clone()),
            ("ratio", &|rank| {
                ratio_in_words(rank.result.ratio.unwrap_or_default())
            }),
        ],
    )
}

/// Returns a ratio with its interval.
fn ratio_in_words([ratio, low, high]: [f64; 3]) -> String {
    interval(ratio, low, high)
}

/// Returns the stages of the course of which a participant has shared work, with this work.
fn works<'a>(
    course: &'a Course,
    person: &'a Participant,
) -> impl Iterator<Item = (&'a Stage, &'a SharedWork)> {
    let stages = course.stages.iter();
    stages.filter_map(|stage| Some((stage, person.stages.get(&stage.id)?)))
}

/// Counts the answers that are right: `2 of 3`.
fn right_of_all(answers: impl Iterator<Item = bool>) -> String {
    let mut right = 0;
    let mut all = 0;
    for is_right in answers {
        right += usize::from(is_right);
        all += 1;
    }
    format!("{right} of {all}")
}

/// Returns a table with a line for each participant.
fn people_table(room: &RoomState, course: &Course, people: &[&Participant]) -> SheetTable {
    SheetTable::filled(
        people,
        &[
            ("name", &|person| room.name_of(person).to_owned()),
            ("device", &|person| person.device.clone()),
            ("stages passed", &|person| {
                let passed = works(course, person).filter(|(_, work)| work.is_passed());
                passed.count().to_string()
            }),
            ("predictions right", &|person| {
                right_of_all(
                    works(course, person)
                        .filter_map(|(stage, work)| Some(work.vote? == stage.prediction.answer)),
                )
            }),
            ("ranges held", &|person| {
                right_of_all(works(course, person).filter_map(|(_, work)| {
                    let [low, high] = work.range?;
                    Some((low..=high).contains(&work.measured?))
                }))
            }),
            ("hints", &|person| {
                let hints = person.stages.values().map(|work| work.hints);
                hints.sum::<u32>().to_string()
            }),
        ],
    )
}

/// Returns the votes or predictions of the class on a stage, and a line for each participant who has begun it. Returns nothing for a stage
/// that nobody has begun and on which the class has not voted.
fn stage_blocks(
    room: &RoomState,
    course: &Course,
    stage: &Stage,
    people: &[&Participant],
) -> Vec<SheetBlock> {
    let mut begun: Vec<(&Participant, &SharedWork)> = Vec::new();
    for person in people {
        if let Some(work) = person.stages.get(&stage.id)
            && work.has_begun()
        {
            begun.push((person, work));
        }
    }
    let vote = room.class.votes.get(&stage.id);
    if begun.is_empty() && vote.is_none() {
        return Vec::new();
    }
    let tally =
        tally(room, course, &stage.id).unwrap_or_else(|| prediction_tally(room, stage, &begun));
    let passed = begun.iter().filter(|(_, work)| work.is_passed()).count();
    let mut blocks = vec![
        SheetBlock::Heading(format!(
            "{} {}: {passed} of {} passed",
            stage.number,
            stage.title,
            begun.len()
        )),
        SheetBlock::Intro(format!(
            "{} The answer is {}.",
            tally.prompt,
            letter(stage.prediction.answer)
        )),
        SheetBlock::Table(vote_table(&tally)),
    ];
    blocks.extend(range_scale(stage, &tally).map(SheetBlock::Scale));
    let ballots = |person: &Participant| {
        let rounds = [0, 1].map(|round| person.ballot(vote?, round));
        let votes: Vec<String> = rounds.into_iter().flatten().map(letter).collect();
        Some(votes.join(", then "))
    };
    blocks.push(SheetBlock::Table(SheetTable::filled(
        begun,
        &[
            ("name", &|(person, _)| room.name_of(person).to_owned()),
            ("", &|(_, work)| work.state.clone()),
            ("prediction", &|(_, work)| or_empty(work.vote.map(letter))),
            ("votes", &|(person, _)| ballots(person).unwrap_or_default()),
            ("range", &|(_, work)| {
                let range = work.range;
                or_empty(range.map(|[low, high]| format!("{} to {}", number(low), number(high))))
            }),
            ("measured", &|(_, work)| or_empty(work.measured.map(number))),
            ("ratio of A to B", &|(_, work)| {
                or_empty(work.ratio.map(ratio_in_words))
            }),
            ("hints", &|(_, work)| work.hints.to_string()),
        ],
    )));
    blocks
}

/// Counts the predictions of a stage as if they were votes.
fn prediction_tally(
    room: &RoomState,
    stage: &Stage,
    begun: &[(&Participant, &SharedWork)],
) -> VoteTally {
    let mut counts = vec![0; stage.prediction.choices.len()];
    for (_, work) in begun {
        if let Some(count) = work.vote.and_then(|choice| counts.get_mut(choice)) {
            *count += 1;
        }
    }
    VoteTally {
        rounds: vec![counts],
        ..tally_without_votes(room, stage)
    }
}

/// Returns the choices with their votes in each round.
fn vote_table(tally: &VoteTally) -> SheetTable {
    SheetTable::filled(
        0..tally.choices.len(),
        &[
            ("", &|choice| letter(*choice)),
            ("choice", &|choice| tally.choices[*choice].clone()),
            ("votes", &|choice| tally.votes_in_words(*choice)),
        ],
    )
}

/// Returns the ranges that participants drew, with the median of their measurements as a mark; `None` without ranges.
fn range_scale(stage: &Stage, tally: &VoteTally) -> Option<RangeScale> {
    let estimate = stage.estimate.as_ref()?;
    if tally.ranges.is_empty() {
        return None;
    }
    let measured = match tally.measured {
        Some(median) => format!(
            "the median of the measured figures is {} {}",
            number(median),
            estimate.unit
        ),
        None => "nothing was measured".to_owned(),
    };
    Some(RangeScale {
        caption: format!(
            "{} {} ranges; {measured}",
            bounded(estimate.prompt.trim(), 200),
            tally.ranges.len()
        ),
        scale: estimate.scale(),
        ranges: tally.ranges.clone(),
        mark: tally.measured,
        even: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::log::Origin;
    use crate::class::record::MysteryResult;
    use crate::pages::html;

    fn solved_mystery() -> RaceResult {
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
    fn a_class_is_written_as_json_and_as_a_table_that_runs_no_formula() {
        let mut room = RoomState::default();
        let mut record = Participant {
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
        record.stages.insert("broken-init".to_owned(), shared);
        record
            .races
            .insert("mystery 7-1".to_owned(), solved_mystery());
        room.receive(record, &Origin::default(), 0).expect("heard");
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
    fn the_report_of_a_class_counts_answers_and_escapes_names() {
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
            let record = Participant {
                id: id.to_owned(),
                name: name.to_owned(),
                sequence: 1,
                stages: [(stage.id.clone(), shared)].into(),
                races: [("mystery 7-1".to_owned(), solved_mystery())].into(),
                ..Participant::default()
            };
            room.receive(record, &Origin::default(), 0).expect("heard");
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
