//! What a class has done, to keep: as JSON with everything that was shared, or as a table with a line for each participant and
//! stage.

use serde::Serialize;

use super::hall::Hall;
use super::record::{Participant, Shared, Vote};
use crate::clean::csv as cell;

#[derive(Serialize)]
struct ClassFile<'a> {
    version: u32,
    votes: &'a std::collections::BTreeMap<String, Vote>,
    participants: Vec<Entry<'a>>,
}

#[derive(Serialize)]
struct Entry<'a> {
    /// As the board shows it.
    shown: &'a str,
    #[serde(flatten)]
    record: Participant,
}

pub fn json(hall: &Hall) -> String {
    let people = hall.people.values().map(|it| Entry {
        shown: hall.name_of(&it.record),
        // Whoever has it could write in the participant's place.
        record: Participant {
            id: String::new(),
            ..it.record.clone()
        },
    });
    let class = ClassFile {
        version: hall.class.version,
        votes: &hall.class.votes,
        participants: people.collect(),
    };
    let text = serde_json::to_string_pretty(&class).unwrap_or_default();
    crate::clean::json(&text).into_owned() + "\n"
}

pub fn csv(hall: &Hall) -> String {
    let mut out = String::from(
        "name,device,stage,state,prediction,second_vote,range_low,range_high,measured,ratio,ratio_low,ratio_high,\
         checks_met,checks,hints\n",
    );
    for person in hall.people.values() {
        let it = &person.record;
        for (stage, shared) in &it.stages {
            line(&mut out, &[hall.name_of(it), &it.device, stage], shared);
        }
        for (task, ratio) in &it.races {
            let ratio = Some(*ratio);
            let shared = Shared {
                ratio,
                ..Shared::default()
            };
            line(&mut out, &[hall.name_of(it), &it.device, task], &shared);
        }
    }
    out
}

fn line(out: &mut String, who: &[&str; 3], it: &Shared) {
    let number = |x: Option<f64>| x.map_or_else(String::new, |x| x.to_string());
    let vote = |x: Option<usize>| x.map_or_else(String::new, crate::course::progress::letter);
    let [low, high] = [0, 1].map(|at| number(it.range.map(|range| range[at])));
    let [ratio, from, to] = [0, 1, 2].map(|at| number(it.ratio.map(|ratio| ratio[at])));
    let [met, all] = [0, 1].map(|at| it.checks.map_or_else(String::new, |it| it[at].to_string()));
    let cells = [
        cell(who[0]),
        cell(who[1]),
        cell(who[2]),
        cell(&it.state),
        vote(it.vote),
        vote(it.again),
        low,
        high,
        number(it.measured),
        ratio,
        from,
        to,
        met,
        all,
        it.hints.to_string(),
    ];
    out.push_str(&cells.join(","));
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::room::record::Class;

    #[test]
    fn a_class_is_kept_as_json_and_as_a_table() {
        let mut hall = Hall::new(Class::new());
        let mut it = Participant {
            id: "1".to_owned(),
            name: "=cmd|' /C calc'!A0".to_owned(),
            sequence: 1,
            ..Participant::default()
        };
        let shared = Shared {
            state: "passed".to_owned(),
            vote: Some(1),
            range: Some([1.0, 2.5]),
            hints: 2,
            ..Shared::default()
        };
        it.stages.insert("broken-init".to_owned(), shared);
        it.races.insert("mystery 7-1".to_owned(), [1.5, 1.25, 2.0]);
        hall.hear(it, 0);
        let table = csv(&hall);
        let lines: Vec<&str> = table.lines().collect();
        assert!(lines[0].ends_with(",hints"), "{}", lines[0]);
        assert_eq!(
            lines[1],
            "\"'=cmd|' /C calc'!A0\",,broken-init,passed,b,,1,2.5,,,,,,,2"
        );
        assert_eq!(
            lines[2],
            "\"'=cmd|' /C calc'!A0\",,mystery 7-1,,,,,,,1.5,1.25,2,,,0"
        );
        let json: serde_json::Value = serde_json::from_str(&json(&hall)).expect("JSON");
        assert_eq!(json["participants"][0]["stages"]["broken-init"]["vote"], 1);
    }
}
