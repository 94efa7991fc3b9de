//! The first stage of a check: parses every file at every shape.

use super::check::CPU_FLOPS;
use super::watch::CheckNews;
use protocol::reference::cost;
use protocol::validate::{self, ParsedText};
use protocol::{KernelError, KernelFile, KernelJob, KernelResult, KernelShape};

/// The largest text, in bytes, that is parsed again for each size named in it.
const LARGEST_REPEATED: usize = 16 << 10;

/// Parses every file at every shape. The result has `None` for a file with an error. Sizes that were taken from a learner's text are removed from
/// the job if a file does not fit them or if they would take too long.
pub(super) fn parse(job: &mut KernelJob, news: &mut CheckNews) -> Vec<Option<Vec<ParsedText>>> {
    let mut parsed: Vec<Option<Vec<Option<ParsedText>>>> = Vec::new();
    for (index, file) in job.files.iter().enumerate() {
        news.state.report.files.push(KernelResult {
            name: file.name.clone(),
            ..KernelResult::default()
        });
        news.report_compiling(index, "");
        let texts = match &file.unreadable {
            Some(error) => Err(error.clone()),
            None => job
                .shapes
                .iter()
                .map(|shape| parse_at(file, shape))
                .collect(),
        };
        parsed.push(match texts {
            Ok(texts) => Some(texts),
            Err(error) => {
                news.result(index).error = Some(error);
                None
            }
        });
    }
    let mut numbers = 0..;
    job.shapes.retain(|shape| {
        let number = numbers.next().unwrap_or_default();
        let fits = |texts: &Option<Vec<Option<ParsedText>>>| {
            texts.as_ref().is_some_and(|texts| texts[number].is_some())
        };
        let keeps = !shape.is_of_text() || parsed.iter().all(fits);
        if !keeps {
            // The text stays in its place as `None`, so that the numbers of the later shapes still fit.
            for texts in parsed.iter_mut().flatten() {
                texts[number] = None;
            }
        }
        keeps
    });
    parsed
        .into_iter()
        .enumerate()
        .map(|(index, texts)| {
            let remaining: Vec<ParsedText> = texts?.into_iter().flatten().collect();
            news.result(index).facts = Some(validate::facts(&remaining));
            Some(remaining)
        })
        .collect()
}

/// Parses a file at a shape. Returns `None` for a shape of the text that the file does not fit.
///
/// # Errors
/// Says what is wrong with the text.
fn parse_at(file: &KernelFile, shape: &KernelShape) -> Result<Option<ParsedText>, KernelError> {
    let parse = || ParsedText::parse(&file.text, &file.spec, shape);
    if !shape.is_of_text() {
        return parse().map(Some);
    }
    let is_quick =
        file.text.len() <= LARGEST_REPEATED && cost::flops(&file.spec, &shape.sizes) <= CPU_FLOPS;
    Ok(if is_quick { parse().ok() } else { None })
}
