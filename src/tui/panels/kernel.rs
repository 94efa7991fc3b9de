//! The kernel behind a row of the kernels panel: where it is written, its workgroup, and the text that the driver gets. On the
//! CPU its function and formula.

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::glossary::draw_search;
use crate::app::kernel_rows::name;
use crate::app::{Action, App};
use crate::tui::keys;
use crate::tui::surface::{Surface, closes};
use crate::tui::text::wrap;
use crate::tui::theme::Theme;
use protocol::stats::operations::formula;
use protocol::{CompiledKernel, KernelRow};

/// Columns and rows that the card wants.
pub(super) fn size(app: &App, area: Rect) -> (u16, u16) {
    match app.view.card_expanded {
        true => (area.width, area.height),
        false => (110, area.height),
    }
}

pub(super) fn draw(s: &mut Surface<'_, '_>) -> u16 {
    let (app, theme) = (s.app, s.theme);
    let row = &app.view.kernel_texts.row;
    let large = keys::label(Action::Expand, app);
    let aside = format!("{large} large, {}", closes(app));
    s.card(&name(row), &aside, theme.border_focused);
    let slot = app.profiled().map(|(slot, _)| slot);
    if slot.is_some_and(|slot| app.shown_run().slot(slot).description.on_cpu()) {
        return of_cpu(s, row);
    }
    if !app.mode.is_live() {
        return say(
            s,
            "A recording contains no kernel texts. `perflings export --kernels DIR` writes the kernels of a configuration.",
        );
    }
    match &app.view.kernel_texts.read {
        None => say(
            s,
            "A second engine runs one step to read the texts. It compiles every kernel once more, so this takes longer than the first step took here.",
        ),
        Some(Err(why)) => say(s, &format!("The texts cannot be read: {why}")),
        Some(Ok(texts)) => of_gpu(s, row, texts),
    }
}

/// A sentence where there is no text.
fn say(s: &mut Surface<'_, '_>, sentence: &str) -> u16 {
    let dim = s.theme.dim;
    let mut w = s.writer();
    w.plain(sentence, dim);
    s.show_card(w.lines)
}

/// The function and what it computes.
fn of_cpu(s: &mut Surface<'_, '_>, row: &KernelRow) -> u16 {
    let theme = s.theme;
    let mut w = s.writer();
    w.item("function ", theme.dim, &row.kernel, theme.strong);
    w.item("formula  ", theme.dim, formula(&row.op), theme.text);
    w.blank();
    let source = match row.kernel.as_str() {
        "library" => "It is of burn-flex, the library's CPU backend.",
        _ => "Its source is in crates/tiny-llama/src/ops, one file for each operation.",
    };
    let plain = "A function of the CPU: compiled with the program, so there is no text to show.";
    w.plain(&format!("{plain} {source}"), theme.dim);
    s.show_card(w.lines)
}

/// The texts that the row launches, one after the other; all of its kernel's name where that is not known.
fn of_gpu(s: &mut Surface<'_, '_>, row: &KernelRow, texts: &[CompiledKernel]) -> u16 {
    let (app, theme) = (s.app, s.theme);
    let named: Vec<&CompiledKernel> = texts.iter().filter(|it| it.kernel == row.kernel).collect();
    let launched = named.iter().filter(|it| it.rows.contains(&name(row)));
    let launched: Vec<&CompiledKernel> = launched.copied().collect();
    let own = if launched.is_empty() {
        &named
    } else {
        &launched
    };
    let search = &app.view.search;
    let mut lines = Vec::new();
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
        lines.push(Line::from(vec![
            Span::styled(format!("{}{which}", it.kernel), theme.strong),
            Span::styled(
                format!("  {}  workgroup {}", it.file, it.workgroup),
                theme.dim,
            ),
        ]));
        let columns = usize::from(s.area.width);
        let wrapped = found.iter();
        lines.extend(wrapped.flat_map(|(at, line)| wrapped_line(at + 1, line, columns, theme)));
        lines.push(Line::default());
    }
    if own.is_empty() {
        return say(s, "The engine compiled no kernel of this name.");
    }
    if search.is_open() {
        draw_search(s, &format!("{count} lines"));
    }
    s.show_card(lines)
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
