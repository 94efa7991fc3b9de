//! The kernel behind a row of the kernels panel: where it is written, its workgroup, and the text that the driver gets. On the
//! CPU its function and formula.

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::content::Content;
use super::glossary::search_line;
use crate::app::kernel_rows::name;
use crate::app::{Action, App};
use crate::tui::keys;
use crate::tui::prose::ProseWriter;
use crate::tui::surface::closes;
use crate::tui::text::wrap;
use crate::tui::theme::Theme;
use protocol::stats::operations::formula;
use protocol::{CompiledKernel, KernelRow};

/// Columns that the card wants in so many.
pub(super) fn columns(app: &App, most: u16) -> u16 {
    if app.view.card_expanded { most } else { 110 }
}

pub(super) fn content<'a>(app: &'a App, theme: &'a Theme, area: Rect) -> Content<'a> {
    let row = &app.view.kernel_texts.row;
    let mut w = ProseWriter::new(app, theme, area.width);
    let mut head = Vec::new();
    let slot = app.shown_run().profiled().map(|(slot, _)| slot);
    let on_cpu = slot.is_some_and(|slot| app.shown_run().slot(slot).description.on_cpu());
    match &app.view.kernel_texts.read {
        _ if on_cpu => of_cpu(row, &mut w),
        _ if !app.mode.is_live() => w.dim(
            "A recording contains no kernel texts. `perflings export --kernels DIR` writes the kernels of a \
             configuration.",
        ),
        None => w.dim(
            "A second engine runs one step to read the texts. It compiles every kernel once more, so this takes \
             longer than the first step took here.",
        ),
        Some(Err(why)) => w.dim(&format!("The texts cannot be read: {why}")),
        Some(Ok(texts)) => head.extend(of_gpu(row, texts, &mut w)),
    }
    let large = keys::label(Action::Expand, app);
    Content {
        aside: format!("{large} large, {}", closes(app)),
        head,
        ..Content::titled(name(row), w.lines)
    }
}

/// The function and what it computes.
fn of_cpu(row: &KernelRow, w: &mut ProseWriter<'_>) {
    let theme = w.theme;
    w.item_in("function ", theme.dim, &row.kernel, theme.strong);
    w.item("formula  ", theme.dim, formula(&row.op));
    w.blank();
    let source = match row.kernel.as_str() {
        "library" => "It is of burn-flex, the library's CPU backend.",
        _ => "Its source is in crates/tiny-llama/src/ops, one file for each operation.",
    };
    let plain = "A function of the CPU: compiled with the program, so there is no text to show.";
    w.dim(&format!("{plain} {source}"));
}

/// The texts that the row launches, one after the other; all of its kernel's name where that is not known. The result is the line of
/// the search, where one is open.
fn of_gpu(
    row: &KernelRow,
    texts: &[CompiledKernel],
    w: &mut ProseWriter<'_>,
) -> Option<Line<'static>> {
    let (app, theme) = (w.app, w.theme);
    let named: Vec<&CompiledKernel> = texts.iter().filter(|it| it.kernel == row.kernel).collect();
    let launched = named.iter().filter(|it| it.rows.contains(&name(row)));
    let launched: Vec<&CompiledKernel> = launched.copied().collect();
    let own = if launched.is_empty() {
        &named
    } else {
        &launched
    };
    if own.is_empty() {
        w.dim("The engine compiled no kernel of this name.");
        return None;
    }
    let search = &app.view.search;
    let mut count = 0;
    for (at, it) in own.iter().enumerate() {
        let numbered = it.text.lines().enumerate();
        let found = numbered.filter(|(_, line)| search.text.is_empty() || search.finds(line));
        let found: Vec<(usize, &str)> = found.collect();
        if found.is_empty() {
            continue;
        }
        count += found.len();
        let which = match own.len() {
            1 => String::new(),
            all => format!(" ({} of {all})", at + 1),
        };
        let place = format!("  {}  workgroup {}", it.file, it.workgroup);
        w.lines.push(Line::from(vec![
            Span::styled(format!("{}{which}", it.kernel), theme.strong),
            Span::styled(place, theme.dim),
        ]));
        let columns = w.columns;
        let wrapped = found.iter();
        let wrapped = wrapped.flat_map(|(at, line)| wrapped_line(at + 1, line, columns, theme));
        w.lines.extend(wrapped);
        w.blank();
    }
    let line = || search_line(app, theme, &format!("{count} lines"));
    search.is_open().then(line)
}

/// As [`numbered_line`], but what is too long continues on the next line: a comment repeats its `//`, code is indented.
fn wrapped_line(number: usize, line: &str, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let whole = numbered_line(number, line, theme);
    if whole.width() <= columns {
        return vec![whole];
    }
    let rest = line.trim_start_matches([' ', '/']);
    let begin = &line[..line.len() - rest.len()];
    let (style, further) = match begin.trim() {
        "" => (theme.text, "    "),
        _ => (theme.dim, ""),
    };
    let (code, comment) = rest.split_at(rest.find("//").unwrap_or(rest.len()));
    let runs = [Span::styled(code, style), Span::styled(comment, theme.dim)];
    let first = Span::styled(format!("{number:>4} {begin}"), theme.dim);
    let others = Span::styled(format!("     {begin}{further}"), theme.dim);
    wrap(&runs, columns, first, others)
}

/// A line of WGSL behind its number; comments are dimmed.
pub(super) fn numbered_line(number: usize, line: &str, theme: &Theme) -> Line<'static> {
    let (code, comment) = line.split_at(line.find("//").unwrap_or(line.len()));
    Line::from(vec![
        Span::styled(format!("{number:>4} "), theme.dim),
        Span::styled(code.to_owned(), theme.text),
        Span::styled(comment.to_owned(), theme.dim),
    ])
}
