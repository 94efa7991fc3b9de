//! Writes the run of a workgroup as text: each executed line with sentences about its lanes. A loop is printed with its first iteration
//! and those with a fault; the others are counted.

use std::ops::Range;

use super::{LINE_BYTES, WorkgroupRun};

/// The largest number of lines of the text.
const MOST_LINES: usize = 300;
/// The largest number of iterations whose numbers of lanes are printed.
const NAMED: usize = 8;

/// Returns the lines of the text, with a title above them.
pub fn listing(title: &str, run: &WorkgroupRun) -> Vec<String> {
    let [x, y, z] = run.size;
    let mut listing = Listing {
        run,
        lines: vec![
            title.to_owned(),
            format!(
                "workgroup {} of {}, counted from 0: {} lanes, {x} × {y} × {z}; \
                 a line of memory has {LINE_BYTES} bytes",
                run.group,
                run.groups,
                run.lanes(),
            ),
            String::new(),
            " step  line".to_owned(),
        ],
        last_sentence: String::new(),
    };
    listing.add_steps(0..run.steps.len());
    if run.faults.is_empty() {
        listing.lines.push("nothing is wrong here".to_owned());
    }
    if run.cut {
        let count = run.steps.len();
        listing
            .lines
            .push(format!("(cut after {count} steps; more follow)"));
    }
    if listing.lines.len() > MOST_LINES {
        let more = listing.lines.len() - MOST_LINES;
        listing.lines.truncate(MOST_LINES);
        listing.lines.push(format!("… {more} more lines"));
    }
    listing.lines
}

struct Listing<'a> {
    run: &'a WorkgroupRun,
    lines: Vec<String>,
    /// The last printed sentence about the lanes, which is not repeated.
    last_sentence: String,
}

impl Listing<'_> {
    /// Adds a range of steps.
    fn add_steps(&mut self, range: Range<usize>) {
        let mut index = range.start;
        while index < range.end {
            let iterations = self.iteration_starts(index..range.end);
            self.add_step(index);
            let (Some(second), Some(last)) = (iterations.get(1), iterations.last()) else {
                index += 1;
                continue;
            };
            self.add_steps(index + 1..*second);
            let mut skipped = Vec::new();
            for iteration in iterations[1..].windows(2) {
                let steps = iteration[0]..iteration[1];
                if self.has_fault(&steps) {
                    self.add_skipped(&mut skipped);
                    self.add_step(steps.start);
                    self.add_steps(steps.start + 1..steps.end);
                } else {
                    skipped.push(steps);
                }
            }
            self.add_skipped(&mut skipped);
            // At the end of a loop, its head shows nothing new.
            let is_end = self.run.steps[*last].accesses.is_empty()
                && self.run.faults_at(*last).next().is_none();
            index = *last + usize::from(is_end);
        }
    }

    /// Returns true if a fault is about one of these steps.
    fn has_fault(&self, steps: &Range<usize>) -> bool {
        self.run.faults.iter().any(|fault| {
            steps.contains(&fault.step)
                || fault.other.is_some_and(|(step, _)| steps.contains(&step))
        })
    }

    /// Returns the first steps of the iterations of the loop whose head begins `range`. An iteration begins where the line of the head runs
    /// again and only lines of the loop's body ran in between. The result has one step if no loop begins here.
    fn iteration_starts(&self, range: Range<usize>) -> Vec<usize> {
        let steps = &self.run.steps;
        let head = &steps[range.start];
        let mut starts = vec![range.start];
        for (index, step) in range.clone().zip(&steps[range]).skip(1) {
            if step.depth < head.depth || step.depth == head.depth && step.line < head.line {
                break;
            }
            if step.depth == head.depth && step.line == head.line {
                starts.push(index);
            }
        }
        starts
    }

    /// Adds a line about the iterations that are left out, and clears their list.
    fn add_skipped(&mut self, iterations: &mut Vec<Range<usize>>) {
        let Some(last) = iterations.last().cloned() else {
            return;
        };
        let steps = &self.run.steps;
        let mut lanes: Vec<usize> = iterations
            .iter()
            .filter_map(|iteration| {
                steps[iteration.clone()]
                    .iter()
                    .map(|step| step.lanes.len())
                    .min()
            })
            .collect();
        lanes.dedup();
        let head = &steps[last.start];
        let end = steps[last]
            .iter()
            .filter(|step| step.depth == head.depth)
            .map(|step| step.line)
            .max()
            .unwrap_or(0);
        let mut line = match iterations.len() {
            1 => "             … 1 more iteration".to_owned(),
            count => format!("             … {count} more iterations"),
        };
        line += &format!(" of lines {} to {end}", head.line);
        if lanes.len() > 1 {
            let named: Vec<String> = lanes.iter().take(NAMED).map(usize::to_string).collect();
            let more = if lanes.len() > NAMED { ", …" } else { "" };
            line += &format!(", with {}{more} lanes", named.join(", "));
        }
        self.lines.push(line);
        iterations.clear();
    }

    /// Adds one step: its source line, then its sentences.
    fn add_step(&mut self, index: usize) {
        let line = self.run.steps[index].line;
        let source = self.run.source(line);
        self.lines
            .push(format!("{:>5} {line:>5}  {source}", index + 1));
        let mut sentences = self.run.sentences(index);
        let about_lanes = sentences.remove(0);
        if about_lanes != self.last_sentence {
            self.lines.push(format!("             - {about_lanes}"));
        }
        self.last_sentence = about_lanes;
        for sentence in sentences {
            self.lines.push(format!("             - {sentence}"));
        }
    }
}
