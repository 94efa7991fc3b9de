//! The progress as a TOML document: what it says, and how a change is put in. Keys that this version does not know stay.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::de::DeserializeOwned;
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, TableLike, value};

use super::{MysteryScore, Prediction, Progress, ProgressChange, StageProgress, Times, letter};
use crate::course::text;

/// Tables of tables.
const TABLES: [&str; 2] = ["stage", "mystery"];

/// Something that could not be read.
#[derive(Debug, PartialEq, Eq)]
pub struct Lost {
    /// The stage or exercise that it belongs to.
    pub stage: Option<String>,
    /// A key, or a line that holds none.
    pub what: String,
}

impl Lost {
    /// For a message.
    pub fn name(&self) -> String {
        let what = text::one_line(&self.what);
        match &self.stage {
            Some(stage) if what.is_empty() => text::one_line(stage),
            Some(stage) => format!("{what} of {}", text::one_line(stage)),
            None => what,
        }
    }
}

/// Puts a change in; what is known of the same stage or mystery stays.
pub fn apply(document: &mut DocumentMut, change: &ProgressChange) {
    match change {
        ProgressChange::Stage(id, stage) => {
            let known = progress(document).0.stage(id);
            if let Some(table) = table(document, "stage", id) {
                let merged = known.clone().merge(stage);
                table.insert("state", value(merged.state.name()));
                note_times(table, &known, &merged, seconds_now());
                write_stage(table, &merged);
            }
        }
        ProgressChange::Mystery(name, score) => {
            let known = progress(document).0.mysteries.get(name).copied();
            let best = known.map_or(score.best, |known| known.best.max(score.best));
            let mut both = InlineTable::new();
            both.insert("last", i64::from(score.last).into());
            both.insert("best", i64::from(best).into());
            if let Some(all) = all(document, "mystery") {
                all.insert(name, value(both));
            }
        }
        ProgressChange::Current(id) => document["current"] = value(id),
        ProgressChange::Presented(id, beat) => {
            document["presented"] = value(format!("{id} {beat}"))
        }
        ProgressChange::Welcomed => document["welcomed"] = value(true),
        ProgressChange::Seed(seed) if progress(document).0.seed.is_none() => {
            document["seed"] = value(i64::from(*seed));
        }
        ProgressChange::Seed(_) => {}
        ProgressChange::Reset(id) => {
            if let Some(stages) = all(document, "stage") {
                stages.remove(id);
            }
        }
    }
}

/// Notes when something was said for the first time.
fn note_times(table: &mut dyn TableLike, before: &StageProgress, now: &StageProgress, at: i64) {
    if before.prediction.is_none() && now.prediction.is_some() {
        table.insert("predicted-at", value(at));
    }
    if before.estimate.is_none() && now.estimate.is_some() {
        table.insert("estimated-at", value(at));
    }
    if now.answers.len() > before.answers.len() {
        let mut all = table
            .get("answered-at")
            .and_then(Item::as_array)
            .cloned()
            .unwrap_or_default();
        while all.len() < now.answers.len() {
            all.push(at);
        }
        table.insert("answered-at", value(all));
    }
}

fn seconds_now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |it| it.as_secs() as i64)
}

/// When a stage's prediction, range and answers were given.
pub fn times(document: &DocumentMut, id: &str) -> Times {
    let stage = document.get("stage").and_then(|all| all.get(id));
    let at = |key: &str| stage?.get(key)?.as_integer();
    let answers = stage.and_then(|it| it.get("answered-at")?.as_array());
    let answers = answers
        .into_iter()
        .flatten()
        .filter_map(toml_edit::Value::as_integer);
    Times {
        predicted: at("predicted-at"),
        estimated: at("estimated-at"),
        answered: answers.collect(),
    }
}

/// What the document says, and which keys hold nothing that this version can read.
pub fn progress(document: &DocumentMut) -> (Progress, Vec<Lost>) {
    let root: toml::Table = document.to_string().parse().unwrap_or_default();
    let mut keys = Keys::of(&root);
    let mut progress = Progress {
        current: keys.get("current").map(|id: String| text::one_line(&id)),
        presented: keys.get("presented").and_then(|it: String| {
            let (id, beat) = it.rsplit_once(' ')?;
            Some((text::one_line(id), beat.parse().ok()?))
        }),
        welcomed: keys.get("welcomed").unwrap_or(false),
        seed: keys.get("seed"),
        ..Progress::default()
    };
    let mut lost = keys.lost(None);
    for (id, table) in tables(&root, "stage") {
        let mut keys = Keys::of(table);
        progress.stages.insert(id.clone(), stage(&mut keys));
        lost.extend(keys.lost(Some(id)));
    }
    for (name, table) in tables(&root, "mystery") {
        let mut keys = Keys::of(table);
        if let (Some(last), Some(best)) = (keys.get("last"), keys.get("best")) {
            let score = MysteryScore { last, best };
            progress.mysteries.insert(name.clone(), score);
        }
    }
    (progress, lost)
}

/// Takes values out that this version cannot read.
pub fn take_out_unreadable(document: &mut DocumentMut) -> Vec<Lost> {
    let mut lost = take_out_misfits(document);
    let (progress, unread) = progress(document);
    for it in &unread {
        match &it.stage {
            None => drop(document.remove(&it.what)),
            Some(id) => {
                if let Some(table) = table(document, "stage", id) {
                    table.remove(&it.what);
                    // A list keeps its first answers.
                    write_stage(table, &progress.stage(id));
                }
            }
        }
    }
    lost.extend(unread);
    lost
}

/// Takes out what is no table where one belongs.
fn take_out_misfits(document: &mut DocumentMut) -> Vec<Lost> {
    let mut lost = Vec::new();
    for of in TABLES {
        let Some(item) = document.get_mut(of) else {
            continue;
        };
        let Some(table) = item.as_table_like_mut() else {
            document.remove(of);
            lost.push(Lost {
                stage: None,
                what: of.to_owned(),
            });
            continue;
        };
        let inner = table.iter().filter(|(_, item)| !item.is_table_like());
        let wrong: Vec<String> = inner.map(|(key, _)| key.to_owned()).collect();
        for key in wrong {
            table.remove(&key);
            let (stage, what) = match of {
                "stage" => (Some(key), String::new()),
                _ => (None, format!("{of} {key}")),
            };
            lost.push(Lost { stage, what });
        }
    }
    lost
}

/// The keys of a table, and those whose values did not fit.
struct Keys<'a> {
    table: &'a toml::Table,
    lost: Vec<&'static str>,
}

impl<'a> Keys<'a> {
    fn of(table: &'a toml::Table) -> Self {
        let lost = Vec::new();
        Self { table, lost }
    }

    fn get<T: DeserializeOwned>(&mut self, key: &'static str) -> Option<T> {
        self.fitting(key, |_| true)
    }

    fn fitting<T: DeserializeOwned>(
        &mut self,
        key: &'static str,
        fits: impl Fn(&T) -> bool,
    ) -> Option<T> {
        let found = self.table.get(key)?.clone().try_into().ok().filter(fits);
        if found.is_none() {
            self.lost.push(key);
        }
        found
    }

    fn lost(self, stage: Option<&String>) -> Vec<Lost> {
        let name = |key: &str| Lost {
            stage: stage.cloned(),
            what: key.to_owned(),
        };
        self.lost.into_iter().map(name).collect()
    }
}

fn tables<'a>(
    root: &'a toml::Table,
    of: &str,
) -> impl Iterator<Item = (&'a String, &'a toml::Table)> {
    let all = root.get(of).and_then(toml::Value::as_table);
    let all = all.into_iter().flatten();
    all.filter_map(|(name, one)| Some((name, one.as_table()?)))
}

fn stage(keys: &mut Keys<'_>) -> StageProgress {
    let right = keys.get("prediction-right").unwrap_or(false);
    let said = |it: &String| it == "skipped" || choice(it).is_some();
    let prediction = keys.fitting("prediction", said);
    let answers: Vec<toml::Value> = keys.get("quiz-answers").unwrap_or_default();
    let all = answers.len();
    // Answers by their letters, up to the first that is none.
    let answers: Vec<usize> = answers
        .iter()
        .map_while(|it| choice(it.as_str()?))
        .collect();
    if answers.len() < all {
        keys.lost.push("quiz-answers");
    }
    StageProgress {
        state: keys.get("state").unwrap_or_default(),
        prediction: prediction.map(|it| match choice(&it) {
            Some(choice) => Prediction::Choice { choice, right },
            None => Prediction::Skipped,
        }),
        estimate: keys.fitting("estimate", |(low, high): &(f64, f64)| low <= high),
        measured: keys.fitting("measured", |it: &f64| it.is_finite()),
        ratio: keys.fitting("ratio", |it: &[f64; 3]| {
            it.iter().all(|x| x.is_finite() && *x > 0.0)
        }),
        found: keys.get("found").map(|it: String| text::one_line(&it)),
        hints: keys.get("hints").unwrap_or(0).min(3),
        solution_shown: keys.get("solution-shown").unwrap_or(false),
        answers,
        quiz: keys.get("quiz-right").unwrap_or_default(),
    }
}

/// `b` is the second choice.
fn choice(word: &str) -> Option<usize> {
    match word.as_bytes() {
        [letter @ b'a'..=b'd'] => Some(usize::from(letter - b'a')),
        _ => None,
    }
}

/// The table of all stages or mysteries, made where it is missing.
fn all<'a>(document: &'a mut DocumentMut, of: &str) -> Option<&'a mut dyn TableLike> {
    let made = || {
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    };
    document.entry(of).or_insert_with(made).as_table_like_mut()
}

/// The table `[stage.<id>]`, made where it is missing.
fn table<'a>(document: &'a mut DocumentMut, of: &str, id: &str) -> Option<&'a mut dyn TableLike> {
    let stages = all(document, of)?;
    if !stages.get(id).is_some_and(Item::is_table_like) {
        stages.insert(id, Item::Table(Table::new()));
    }
    stages.get_mut(id)?.as_table_like_mut()
}

/// Writes the keys this version knows; others in the table stay.
fn write_stage(table: &mut dyn TableLike, stage: &StageProgress) {
    table.insert("state", value(stage.state.name()));
    match stage.prediction {
        Some(Prediction::Skipped) => drop(table.insert("prediction", value("skipped"))),
        Some(Prediction::Choice { choice, right }) => {
            table.insert("prediction", value(letter(choice)));
            table.insert("prediction-right", value(right));
        }
        None => {}
    }
    if let Some((low, high)) = stage.estimate {
        table.insert("estimate", value(Array::from_iter([low, high])));
    }
    if let Some(measured) = stage.measured {
        table.insert("measured", value(measured));
    }
    if let Some(ratio) = stage.ratio {
        table.insert("ratio", value(Array::from_iter(ratio)));
    }
    if let Some(found) = &stage.found {
        table.insert("found", value(found));
    }
    table.insert("hints", value(i64::from(stage.hints)));
    table.insert("solution-shown", value(stage.solution_shown));
    if !stage.answers.is_empty() {
        let letters = stage.answers.iter().map(|it| letter(*it));
        table.insert("quiz-answers", value(letters.collect::<Array>()));
    }
    if !stage.quiz.is_empty() {
        let list = stage.quiz.iter().filter_map(|n| i64::try_from(*n).ok());
        table.insert("quiz-right", value(list.collect::<Array>()));
    }
}
