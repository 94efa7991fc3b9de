//! Writes the results of a class as a page, as JSON with everything that was shared, or as a table with a line for each participant and
//! stage.

use serde::Serialize;

use super::csv::{known, row};
use super::sheet::{RangeScale, Sheet, SheetBlock, SheetTable, interval};
use crate::class::board::{RaceRank, VoteTally, duration, race, tally};
use crate::class::record::{Participant, RaceResult, SharedWork, Vote, mystery_of};
use crate::class::state::RoomState;
use crate::course::save_file::letter;
use crate::course::{Course, Stage};
use crate::sanitize::{bounded, csv as cell};
use protocol::units::{number, or_dash};

/// The JSON of a class.
#[derive(Serialize)]
struct ClassFile<'a> {
    version: u32,
    votes: &'a std::collections::BTreeMap<String, Vote>,
    participants: Vec<Entry<'a>>,
}

/// A participant in the JSON of a class.
#[derive(Serialize)]
struct Entry<'a> {
    /// The name on the board.
    shown: &'a str,
    #[serde(flatten)]
    record: Participant,
}

/// Writes everything that a class shared as JSON.
pub fn json(room: &RoomState) -> String {
    let people = room.people.values().map(|person| Entry {
        shown: room.name_of(&person.record),
        // With the id, somebody else could write in the participant's place.
        record: Participant {
            id: String::new(),
            ..person.record.clone()
        },
    });
    let class = ClassFile {
        version: room.class.version,
        votes: &room.class.votes,
        participants: people.collect(),
    };
    let text = serde_json::to_string_pretty(&class).unwrap_or_default();
    crate::sanitize::json(&text).into_owned() + "\n"
}

/// Writes a table with a line for each participant and stage, and for each of their results in races.
pub fn csv(room: &RoomState) -> String {
    let mut out = String::from(
        "name,device,stage,state,prediction,first_vote,second_vote,range_low,range_high,measured,ratio,ratio_low,ratio_high,\
         checks_met,checks,hints,points,seconds,configurations\n",
    );
    let none = RaceResult::default();
    for person in room.people.values() {
        let record = &person.record;
        let name = room.name_of(record);
        for (stage, shared) in &record.stages {
            let vote = room.class.votes.get(stage);
            let ballots = [0, 1].map(|round| record.ballot(vote?, round));
            let who = [name, &record.device, stage];
            line(&mut out, &who, ballots, shared, &none);
        }
        for (task, result) in &record.races {
            let shared = SharedWork {
                ratio: result.ratio,
                ..SharedWork::default()
            };
            let who = [name, &record.device, task];
            line(&mut out, &who, [None; 2], &shared, result);
        }
    }
    out
}

/// Returns the report of the class for its instructor.
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
        everybody(room, course, &people),
    ];
    for stage in &course.stages {
        let mut begun: Vec<(&Participant, &SharedWork)> = Vec::new();
        for person in &people {
            if let Some(shared) = person.stages.get(&stage.id)
                && shared.has_begun()
            {
                begun.push((person, shared));
            }
        }
        if !begun.is_empty() {
            blocks.extend(of_stage(room, stage, &begun));
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
    let result = |rank: &RaceRank| rank.result.mystery.unwrap_or_default();
    SheetTable::filled(
        ranks,
        &[
            ("place", &place),
            ("name", &|rank| rank.name.clone()),
            ("points", &|rank| result(rank).points.to_string()),
            ("time", &|rank| duration(result(rank).seconds)),
            ("configurations", &|rank| {
                result(rank).configurations.to_string()
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

/// Writes a ratio with its interval.
fn spread([ratio, low, high]: [f64; 3]) -> String {
    interval(ratio, low, high)
}

/// Returns the table with a row for each participant.
fn everybody(room: &RoomState, course: &Course, people: &[&Participant]) -> SheetBlock {
    let count_stages = |person: &Participant, meets: &dyn Fn(&Stage, &SharedWork) -> bool| {
        let stages = course.stages.iter();
        let shared = stages.filter_map(|stage| Some((stage, person.stages.get(&stage.id)?)));
        shared.filter(|(stage, work)| meets(stage, work)).count()
    };
    let judged_range = |work: &SharedWork| Some((work.range?, work.measured?));
    SheetBlock::Table(SheetTable::filled(
        people,
        &[
            ("name", &|person| room.name_of(person).to_owned()),
            ("device", &|person| person.device.clone()),
            ("stages passed", &|person| {
                count_stages(person, &|_, work| work.is_passed()).to_string()
            }),
            ("predictions right", &|person| {
                let is_right =
                    |stage: &Stage, work: &SharedWork| work.vote == Some(stage.prediction.answer);
                let right = count_stages(person, &is_right);
                let all = count_stages(person, &|_, work| work.vote.is_some());
                format!("{right} of {all}")
            }),
            ("ranges held", &|person| {
                let is_held = |_: &Stage, work: &SharedWork| {
                    judged_range(work).is_some_and(|([low, high], x)| (low..=high).contains(&x))
                };
                let held = count_stages(person, &is_held);
                let all = count_stages(person, &|_, work| judged_range(work).is_some());
                format!("{held} of {all}")
            }),
            ("hints", &|person| {
                let hints = person.stages.values().map(|work| work.hints);
                hints.sum::<u32>().to_string()
            }),
        ],
    ))
}

/// Returns the votes and predictions of the class in a stage, and a row for each participant who has begun it.
fn of_stage(
    room: &RoomState,
    stage: &Stage,
    begun: &[(&Participant, &SharedWork)],
) -> Vec<SheetBlock> {
    let passed = begun.iter().filter(|(_, work)| work.is_passed()).count();
    // If the class has not voted, the predictions take the place of the votes.
    let predictions = || {
        let mut counts = vec![0; stage.prediction.choices.len()];
        for choice in begun.iter().filter_map(|(_, work)| work.vote) {
            if let Some(count) = counts.get_mut(choice) {
                *count += 1;
            }
        }
        Vote {
            counts: vec![counts],
            ..Vote::default()
        }
    };
    let votes = room.class.votes.get(&stage.id).cloned();
    let vote = votes.unwrap_or_else(predictions);
    let found = tally(room, stage, &vote);
    let answer = letter(stage.prediction.answer);
    let rounds = |choice: &usize| {
        let counts: Vec<String> = found.votes(*choice).iter().map(u32::to_string).collect();
        counts.join(", then ")
    };
    let mut blocks = vec![
        SheetBlock::Heading(format!(
            "{} {}: {passed} of {} passed",
            stage.number,
            stage.title,
            begun.len()
        )),
        SheetBlock::Intro(format!("{} The answer is {answer}.", found.prompt)),
        SheetBlock::Table(SheetTable::filled(
            0..found.choices.len(),
            &[
                ("", &|choice| letter(*choice)),
                ("choice", &|choice| found.choices[*choice].clone()),
                ("votes", &rounds),
            ],
        )),
    ];
    blocks.extend(ranges(stage, &found));
    blocks.push(SheetBlock::Table(SheetTable::filled(
        begun,
        &[
            ("name", &|(who, _)| room.name_of(who).to_owned()),
            ("", &|(_, work)| work.state.clone()),
            ("prediction", &|(_, work)| known(work.vote.map(letter))),
            ("votes", &|(who, _)| {
                let ballots = [0, 1].map(|round| who.ballot(&vote, round));
                let letters: Vec<String> = ballots.into_iter().flatten().map(letter).collect();
                letters.join(", then ")
            }),
            ("range", &|(_, work)| {
                let words = |[low, high]: [f64; 2]| format!("{} to {}", number(low), number(high));
                known(work.range.map(words))
            }),
            ("measured", &|(_, work)| known(work.measured.map(number))),
            ("ratio of A to B", &|(_, work)| {
                known(work.ratio.map(spread))
            }),
            ("hints", &|(_, work)| work.hints.to_string()),
        ],
    )));
    blocks
}

/// Returns a scale with the ranges of all participants and the median of their measurements; `None` without ranges.
fn ranges(stage: &Stage, found: &VoteTally) -> Option<SheetBlock> {
    let estimate = stage.estimate.as_ref()?;
    if found.ranges.is_empty() {
        return None;
    }
    let measured = match found.measured {
        Some(median) => format!(
            "the middle of what was measured is {} {}",
            number(median),
            estimate.unit
        ),
        None => "nothing was measured".to_owned(),
    };
    Some(SheetBlock::Scale(RangeScale {
        said: format!(
            "{} {} ranges; {measured}",
            bounded(estimate.prompt.trim(), 200),
            found.ranges.len()
        ),
        from: estimate.from,
        to: estimate.to,
        log: estimate.log,
        ranges: found
            .ranges
            .iter()
            .map(|[low, high]| (*low, *high))
            .collect(),
        mark: found.measured,
        even: None,
    }))
}

/// Appends a line of the table. `who` is the participant's name and device, and the stage or task.
fn line(
    out: &mut String,
    who: &[&str; 3],
    ballots: [Option<usize>; 2],
    work: &SharedWork,
    result: &RaceResult,
) {
    let mystery = result.mystery.as_ref();
    let mut cells: Vec<String> = who
        .iter()
        .chain(&[work.state.as_str()])
        .map(|text| cell(text))
        .collect();
    cells.extend([work.vote, ballots[0], ballots[1]].map(|vote| known(vote.map(letter))));
    cells.extend([0, 1].map(|at| known(work.range.map(|range| range[at]))));
    cells.push(known(work.measured));
    cells.extend([0, 1, 2].map(|at| known(work.ratio.map(|ratio| ratio[at]))));
    cells.extend([0, 1].map(|at| known(work.checks.map(|checks| checks[at]))));
    cells.extend([
        work.hints.to_string(),
        known(mystery.map(|mystery| mystery.points)),
        known(mystery.map(|mystery| mystery.seconds)),
        known(mystery.map(|mystery| mystery.configurations)),
    ]);
    row(out, &cells);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::record::{ClassState, MysteryResult};
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
        let mut room = RoomState::new(ClassState::new());
        let mut person = Participant {
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
        person.stages.insert("broken-init".to_owned(), shared);
        person.races.insert("mystery 7-1".to_owned(), solved());
        room.hear(person, 0).expect("heard");
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
        let mut room = RoomState::new(ClassState::new());
        for (id, name, vote) in [("1", "<script>x", stage.prediction.answer), ("2", "Bo", 3)] {
            let shared = SharedWork {
                state: "passed".to_owned(),
                vote: Some(vote),
                range: Some([6.0, 7.5]),
                measured: Some(7.0),
                ratio: Some([1.2, 1.1, 1.3]),
                ..SharedWork::default()
            };
            let person = Participant {
                id: id.to_owned(),
                name: name.to_owned(),
                sequence: 1,
                stages: [(stage.id.clone(), shared)].into(),
                races: [("mystery 7-1".to_owned(), solved())].into(),
                ..Participant::default()
            };
            room.hear(person, 0).expect("heard");
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
