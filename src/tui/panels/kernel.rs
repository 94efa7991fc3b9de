//! The card of a kernel shows the kernel of a row of the kernels panel. On a GPU it has the file, the workgroup and the text that the driver
//! compiles, on the CPU the function and its formula.
//!
//! ```text
//! ╭ swiglu mlp.activation fwd ───────────────── e large, esc closes ╮
//! │ swiglu  crates/tiny-llama/src/ops/swiglu.wgsl  workgroup 256    │
//! │    1 @group(0) @binding(0) var<storage> gate: array<f32>;       │
//! │    2 @group(0) @binding(1) var<storage> up: array<f32>;         │
//! ╰─────────────────────────────────────────────────────────────────╯
//! ```

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::content::Content;
use super::glossary::search_line;
use crate::app::kernel_rows::name;
use crate::app::{Action, App};
use crate::tui::keys;
use crate::tui::prose::ProseWriter;
use crate::tui::surface::close_hint;
use crate::tui::text::wrap;
use crate::tui::theme::Theme;
use protocol::stats::operations::formula;
use protocol::{CompiledKernel, KernelRow};

/// Returns the width that the card wants on a screen of `screen` columns, borders included.
pub(super) fn columns(app: &App, screen: u16) -> u16 {
    if app.view.card_expanded { screen } else { 110 }
}

pub(super) fn content<'a>(app: &'a App, theme: &'a Theme, area: Rect) -> Content<'a> {
    let row = &app.view.kernel_texts.row;
    let mut writer = ProseWriter::new(app, theme, area.width);
    let mut head = Vec::new();
    let slot = app.shown_run().profiled().map(|(slot, _)| slot);
    let on_cpu = slot.is_some_and(|slot| app.shown_run().slot(slot).description.on_cpu());
    match &app.view.kernel_texts.read {
        _ if on_cpu => write_cpu_function(row, &mut writer),
        _ if !app.mode.is_live() => writer.dim(
            "A recording contains no kernel texts. `perflings export --kernels DIR` writes the kernels of \
             a configuration.",
        ),
        None => writer.dim(
            "A second engine runs one step to read the texts. It compiles every kernel once more, so this \
             takes longer than the first step took here.",
        ),
        Some(Err(why)) => writer.dim(&format!("The texts cannot be read: {why}")),
        Some(Ok(texts)) => head.extend(write_gpu_texts(row, texts, &mut writer)),
    }
    let large = keys::label(Action::Expand, app);
    Content {
        aside: format!("{large} large, {}", close_hint(app)),
        head,
        ..Content::titled(name(row), writer.lines)
    }
}

/// Writes the function of a row on the CPU and the formula that it computes.
fn write_cpu_function(row: &KernelRow, w: &mut ProseWriter<'_>) {
    let theme = w.theme;
    w.item_in("function ", theme.dim, &row.kernel, theme.strong);
    w.item("formula  ", theme.dim, formula(&row.op));
    w.blank();
    let source = if row.kernel == "library" {
        "This kernel belongs to burn-flex, burn's CPU backend."
    } else {
        "Its source is in crates/tiny-llama/src/ops, one file for each operation."
    };
    let text = "A function of the CPU: compiled with the program, so there is no text to show.";
    w.dim(&format!("{text} {source}"));
}

/// Writes the texts of the kernels that a row launches. Where these are not known, writes all texts with the name of the row's kernel. Returns
/// the line of the search if one is open.
fn write_gpu_texts(
    row: &KernelRow,
    texts: &[CompiledKernel],
    w: &mut ProseWriter<'_>,
) -> Option<Line<'static>> {
    let theme = w.theme;
    let mut own: Vec<&CompiledKernel> = texts
        .iter()
        .filter(|text| text.kernel == row.kernel)
        .collect();
    let is_launched = |text: &&CompiledKernel| text.rows.contains(&name(row));
    if own.iter().any(is_launched) {
        own.retain(is_launched);
    }
    if own.is_empty() {
        w.dim("The engine compiled no kernel of this name.");
        return None;
    }
    let search = &w.app.view.search;
    let mut count = 0;
    for (number, kernel) in (1..).zip(&own) {
        let found: Vec<(usize, &str)> = (1..)
            .zip(kernel.text.lines())
            .filter(|(_, line)| search.text.is_empty() || search.finds(line))
            .collect();
        if found.is_empty() {
            continue;
        }
        count += found.len();
        let which = match own.len() {
            1 => String::new(),
            all => format!(" ({number} of {all})"),
        };
        let place = format!("  {}  workgroup {}", kernel.file, kernel.workgroup);
        w.lines.push(Line::from(vec![
            Span::styled(format!("{}{which}", kernel.kernel), theme.strong),
            Span::styled(place, theme.dim),
        ]));
        for (line_number, line) in found {
            w.lines
                .extend(wrapped_line(line_number, line, w.columns, theme));
        }
        w.blank();
    }
    search
        .is_open()
        .then(|| search_line(w.app, theme, &format!("{count} lines")))
}

/// Returns a line like [`numbered_line`], wrapped at `columns`: a comment repeats its `//` on the next line, code is indented.
fn wrapped_line(number: usize, line: &str, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let whole = numbered_line(number, line, theme);
    if whole.width() <= columns {
        return vec![whole];
    }
    let body = line.trim_start_matches([' ', '/']);
    let begin = &line[..line.len() - body.len()];
    let is_code = begin.trim().is_empty();
    let (style, indent) = if is_code {
        (theme.text, "    ")
    } else {
        (theme.dim, "")
    };
    let (code, comment) = body.split_at(body.find("//").unwrap_or(body.len()));
    let runs = [Span::styled(code, style), Span::styled(comment, theme.dim)];
    let first = Span::styled(format!("{number:>4} {begin}"), theme.dim);
    let others = Span::styled(format!("     {begin}{indent}"), theme.dim);
    wrap(&runs, columns, first, others)
}

/// Returns a line of WGSL after its number, with its comment dimmed.
pub(super) fn numbered_line(number: usize, line: &str, theme: &Theme) -> Line<'static> {
    let (code, comment) = line.split_at(line.find("//").unwrap_or(line.len()));
    Line::from(vec![
        Span::styled(format!("{number:>4} "), theme.dim),
        Span::styled(code.to_owned(), theme.text),
        Span::styled(comment.to_owned(), theme.dim),
    ])
}
