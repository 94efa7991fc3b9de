//! Writes a workgroup's run as text: each executed line with what its lanes did. Of a loop, the first iteration and those with a fault are
//! printed; the others are counted.

use std::ops::Range;

use super::{LINE_BYTES, WorkgroupRun};

/// The largest number of lines of the text.
const MOST: usize = 300;
/// The largest number of iterations whose lanes are named.
const NAMED: usize = 8;

/// Returns the text of a run, line by line, under a title.
pub fn listing(title: &str, run: &WorkgroupRun) -> Vec<String> {
    let [x, y, z] = run.size;
    let mut listing = Listing {
        run,
        lines: vec![
            title.to_owned(),
            format!(
                "workgroup {} of {}, counted from 0: {} lanes, {x} × {y} × {z}; a line of memory has {LINE_BYTES} bytes",
                run.group,
                run.groups,
                run.lanes(),
            ),
            String::new(),
            " step  line".to_owned(),
        ],
        said: String::new(),
    };
    listing.steps(0..run.steps.len());
    if run.faults.is_empty() {
        listing.lines.push("nothing is wrong here".to_owned());
    }
    if run.cut {
        let count = run.steps.len();
        listing
            .lines
            .push(format!("(cut after {count} steps; more follow)"));
    }
    if listing.lines.len() > MOST {
        let more = listing.lines.len() - MOST;
        listing.lines.truncate(MOST);
        listing.lines.push(format!("… {more} more lines"));
    }
    listing.lines
}

struct Listing<'a> {
    run: &'a WorkgroupRun,
    lines: Vec<String>,
    /// The last sentence about the lanes, which is not repeated.
    said: String,
}

impl Listing<'_> {
    /// Adds a range of steps.
    fn steps(&mut self, range: Range<usize>) {
        let mut at = range.start;
        while at < range.end {
            let rounds = self.rounds(at..range.end);
            self.step(at);
            let (Some(second), Some(last)) = (rounds.get(1), rounds.last()) else {
                at += 1;
                continue;
            };
            self.steps(at + 1..*second);
            let mut left = Vec::new();
            for round in rounds[1..].windows(2) {
                let [from, to] = [round[0], round[1]];
                let mut faulty = self.run.faults.iter().flat_map(|fault| {
                    let other = fault.other.map(|(step, _)| step);
                    [Some(fault.step), other].into_iter().flatten()
                });
                if faulty.any(|step| (from..to).contains(&step)) {
                    self.skipped(&mut left);
                    self.step(from);
                    self.steps(from + 1..to);
                } else {
                    left.push(from..to);
                }
            }
            self.skipped(&mut left);
            // At the end of a loop, its head shows nothing new.
            let is_end = self.run.steps[*last].accesses.is_empty()
                && self.run.faults_at(*last).next().is_none();
            at = *last + usize::from(is_end);
        }
    }

    /// Returns the starts of the iterations of the loop whose head begins `range`: the same line again, with only the loop's body between.
    fn rounds(&self, range: Range<usize>) -> Vec<usize> {
        let steps = &self.run.steps;
        let head = &steps[range.start];
        let mut rounds = vec![range.start];
        for (at, step) in range.clone().zip(&steps[range.clone()]).skip(1) {
            if step.depth < head.depth || step.depth == head.depth && step.line < head.line {
                break;
            }
            if step.depth == head.depth && step.line == head.line {
                rounds.push(at);
            }
        }
        rounds
    }

    /// Adds a line about the iterations that are left out.
    fn skipped(&mut self, rounds: &mut Vec<Range<usize>>) {
        let Some(last) = rounds.last().cloned() else {
            return;
        };
        let steps = &self.run.steps;
        let fewest = |round: &Range<usize>| {
            let lanes = steps[round.clone()].iter().map(|step| step.lanes.len());
            lanes.min().unwrap_or(0)
        };
        let mut lanes: Vec<usize> = rounds.iter().map(fewest).collect();
        lanes.dedup();
        let lines = steps[last.clone()].iter();
        let lines = lines.filter(|step| step.depth == steps[last.start].depth);
        let end = lines.map(|step| step.line).max().unwrap_or(0);
        let mut said = match rounds.len() {
            1 => "             … 1 more iteration".to_owned(),
            count => format!("             … {count} more iterations"),
        };
        said += &format!(" of lines {} to {end}", steps[last.start].line);
        if lanes.len() > 1 {
            let named = lanes.iter().take(NAMED).map(usize::to_string);
            let more = if lanes.len() > NAMED { ", …" } else { "" };
            said += &format!(
                ", with {}{more} lanes",
                named.collect::<Vec<_>>().join(", ")
            );
        }
        self.lines.push(said);
        rounds.clear();
    }

    /// Adds one step.
    fn step(&mut self, at: usize) {
        let line = self.run.steps[at].line;
        self.lines.push(format!(
            "{:>5} {line:>5}  {}",
            at + 1,
            self.run.source(line)
        ));
        let sentences = self.run.sentences(at);
        for (number, said) in sentences.into_iter().enumerate() {
            if number > 0 || said != self.said {
                self.lines.push(format!("             - {said}"));
            }
            if number == 0 {
                self.said = said;
            }
        }
    }
}
