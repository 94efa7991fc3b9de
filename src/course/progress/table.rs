//! One stage's record as a TOML table, and the whole progress from a document. Unknown keys are left alone.

use toml_edit::{Array, DocumentMut, Item, Table, value};

use super::{Prediction, Progress, StageProgress, State};
use crate::course::text;

pub fn progress(document: &DocumentMut) -> Progress {
    let stages = document.get("stage").and_then(Item::as_table_like);
    Progress {
        current: document
            .get("current")
            .and_then(Item::as_str)
            .map(text::one_line),
        welcomed: document
            .get("welcomed")
            .and_then(Item::as_bool)
            .unwrap_or(false),
        stages: stages
            .into_iter()
            .flat_map(|table| table.iter())
            .filter_map(|(id, item)| Some((id.to_owned(), read_stage(item.as_table_like()?))))
            .collect(),
    }
}

/// The table `[stage.<id>]`, made where it is missing.
pub fn stage_table<'a>(
    document: &'a mut DocumentMut,
    id: &str,
) -> &'a mut dyn toml_edit::TableLike {
    let stages = document.entry("stage").or_insert_with(|| {
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    });
    // `parse` refuses any other form of both.
    let item = &mut stages[id];
    if !item.is_table_like() {
        *item = Item::Table(Table::new());
    }
    item.as_table_like_mut().expect("a table was put here")
}

pub fn read_stage(table: &(impl toml_edit::TableLike + ?Sized)) -> StageProgress {
    let text = |key: &str| table.get(key).and_then(Item::as_str);
    let number = |item: &Item| {
        item.as_float()
            .or_else(|| item.as_integer().map(|n| n as f64))
    };
    let letter = |word: &str| match word.as_bytes() {
        [letter @ b'a'..=b'd'] => Some(usize::from(letter - b'a')),
        _ => None,
    };
    let right = table
        .get("prediction-right")
        .and_then(Item::as_bool)
        .unwrap_or(false);
    StageProgress {
        state: text("state").and_then(State::parse).unwrap_or_default(),
        prediction: text("prediction").and_then(|word| match word {
            "skipped" => Some(Prediction::Skipped),
            word => letter(word).map(|choice| Prediction::Choice { choice, right }),
        }),
        estimate: table
            .get("estimate")
            .and_then(Item::as_array)
            .and_then(|pair| {
                let ends: Vec<f64> = pair
                    .iter()
                    .filter_map(|x| x.as_float().or_else(|| x.as_integer().map(|n| n as f64)))
                    .collect();
                (ends.len() == 2).then(|| (ends[0], ends[1]))
            }),
        measured: table.get("measured").and_then(number),
        hints: table
            .get("hints")
            .and_then(Item::as_integer)
            .and_then(|n| u32::try_from(n).ok())
            .unwrap_or(0)
            .min(3),
        solution_shown: table
            .get("solution-shown")
            .and_then(Item::as_bool)
            .unwrap_or(false),
        quiz: table
            .get("quiz-right")
            .and_then(Item::as_array)
            .map(|list| {
                list.iter()
                    .filter_map(|n| usize::try_from(n.as_integer()?).ok())
                    .collect()
            })
            .unwrap_or_default(),
        best: table
            .get("best")
            .and_then(Item::as_table_like)
            .into_iter()
            .flat_map(|best| best.iter())
            .filter_map(|(name, item)| Some((name.to_owned(), number(item)?)))
            .collect(),
    }
}

/// Writes the keys this version knows; others in the table stay.
pub fn write_stage(table: &mut dyn toml_edit::TableLike, stage: &StageProgress) {
    table.insert("state", value(stage.state.name()));
    match stage.prediction {
        Some(Prediction::Skipped) => drop(table.insert("prediction", value("skipped"))),
        Some(Prediction::Choice { choice, right }) => {
            let letter = char::from(b'a' + u8::try_from(choice.min(3)).unwrap_or(3));
            table.insert("prediction", value(letter.to_string()));
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
    table.insert("hints", value(i64::from(stage.hints)));
    table.insert("solution-shown", value(stage.solution_shown));
    if !stage.quiz.is_empty() {
        let list = stage.quiz.iter().filter_map(|n| i64::try_from(*n).ok());
        table.insert("quiz-right", value(list.collect::<Array>()));
    }
    if !stage.best.is_empty() {
        if !table.get("best").is_some_and(Item::is_table_like) {
            table.insert("best", Item::Table(Table::new()));
        }
        if let Some(best) = table.get_mut("best").and_then(Item::as_table_like_mut) {
            for (name, number) in &stage.best {
                best.insert(name, value(*number));
            }
        }
    }
}
