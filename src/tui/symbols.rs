//! The characters things are drawn with: braille, blocks or plain dots with line borders, or ASCII alone.
//! Whatever else a text holds is folded to ASCII at the end where the terminal shows nothing else.

use ratatui::buffer::Buffer;
use ratatui::symbols::border;

use crate::sanitize::harmful;

/// What curves are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CurveGlyphs {
    /// Two by four dots a cell.
    Braille,
    /// Two by two blocks, which stay visible on a projector.
    Quadrants,
    /// One point.
    Points,
}

/// One way of drawing.
#[derive(Clone, Copy, Debug)]
pub struct Symbols {
    pub ascii: bool,
    pub curves: CurveGlyphs,
    pub border: border::Set<'static>,
    /// Points of the curves of A and B.
    pub points: [&'static str; 2],
    pub good: &'static str,
    pub bad: &'static str,
    pub warning: &'static str,
    pub live: &'static str,
    pub circle: &'static str,
    pub pointer: &'static str,
    /// From one figure to another.
    pub to: &'static str,
    pub reference: &'static str,
    pub floor: &'static str,
    pub rule: &'static str,
    pub vertical: &'static str,
    /// Eighths of a bar, full last.
    pub bar: &'static [&'static str],
    /// Heights of a sparkline, lowest first.
    pub spark: &'static [&'static str],
    /// Fillings that tell parts of a bar apart: forward, backward, optimizer, unaccounted.
    pub fills: [&'static str; 4],
    pub scroll: [&'static str; 2],
}

const BARS: &[&str] = &["▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"];
const SPARKS: &[&str] = &["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];

pub const BRAILLE: Symbols = Symbols {
    ascii: false,
    curves: CurveGlyphs::Braille,
    border: border::ROUNDED,
    points: ["·", "◆"],
    good: "✓",
    bad: "✗",
    warning: "▲",
    live: "●",
    circle: "○",
    pointer: "▸",
    to: "→",
    reference: "╌",
    floor: "┈",
    rule: "─",
    vertical: "│",
    bar: BARS,
    spark: SPARKS,
    fills: ["█", "▓", "▒", "░"],
    scroll: ["↑", "↓"],
};

pub const DOTS: Symbols = Symbols {
    curves: CurveGlyphs::Points,
    points: ["·", "•"],
    border: border::PLAIN,
    ..BRAILLE
};

pub const BLOCKS: Symbols = Symbols {
    curves: CurveGlyphs::Quadrants,
    border: border::PLAIN,
    ..BRAILLE
};

/// What is not named here is folded at the end.
pub const ASCII: Symbols = Symbols {
    ascii: true,
    curves: CurveGlyphs::Points,
    points: [".", "x"],
    bad: "!",
    warning: "!",
    circle: "o",
    to: "->",
    floor: "_",
    bar: &["#"],
    spark: &["_", ".", "-", "=", "^"],
    fills: ["f", "b", "o", "r"],
    ..BRAILLE
};

impl Symbols {
    /// Columns and rows of dots in a cell.
    pub const fn dots(&self) -> (usize, usize) {
        match self.curves {
            CurveGlyphs::Braille => (2, 4),
            CurveGlyphs::Quadrants => (2, 2),
            CurveGlyphs::Points => (1, 1),
        }
    }

    /// The pointer in the line that is meant, a blank in the others.
    pub const fn pointer_at(&self, here: bool) -> &'static str {
        if here { self.pointer } else { " " }
    }

    /// The cell of these dots, where there is more than one to a cell: bits as braille numbers them.
    pub fn mosaic(&self, bits: u8) -> Option<char> {
        // By the bits of the upper left, lower left, upper right and lower right dot.
        const QUADRANTS: [char; 16] = [
            ' ', '▘', '▖', '▌', '▝', '▀', '▞', '▛', '▗', '▚', '▄', '▙', '▐', '▜', '▟', '█',
        ];
        match self.curves {
            CurveGlyphs::Braille => char::from_u32(0x2800 + u32::from(bits)),
            CurveGlyphs::Quadrants => Some(QUADRANTS[usize::from((bits & 3) | ((bits >> 1) & 12))]),
            CurveGlyphs::Points => None,
        }
    }

    /// A bar of `share` of `width` cells.
    pub fn bar(&self, share: f64, width: u16) -> String {
        let steps = self.bar.len() as f64;
        // What is not a number becomes 0.
        let eighths = (share.clamp(0.0, 1.0) * f64::from(width) * steps).round() as usize;
        let (full, rest) = (eighths / self.bar.len(), eighths % self.bar.len());
        let mut text = self.bar[self.bar.len() - 1].repeat(full);
        if rest > 0 {
            text.push_str(self.bar[rest - 1]);
        }
        text
    }

    /// So many rows of cells, from the top, in which each value has a column as high as it is among all of them.
    pub fn columns(&self, values: &[f64], rows: u16) -> Vec<Vec<&'static str>> {
        let most = values.iter().copied().filter(|it| it.is_finite());
        let most = most.fold(f64::MIN_POSITIVE, f64::max);
        let steps = self.spark.len();
        let full = self.bar.last().copied().unwrap_or("#");
        let cell = |value: f64, row: u16| {
            // What is not a number becomes 0.
            let all = (value / most * (usize::from(rows) * steps) as f64).ceil() as usize;
            match all.saturating_sub(usize::from(rows - 1 - row) * steps) {
                0 => " ",
                here if here >= steps => full,
                here => self.spark[here - 1],
            }
        };
        let row = |row| values.iter().map(|it| cell(*it, row)).collect();
        (0..rows).map(row).collect()
    }

    /// The last check before the terminal: no cell can move the cursor or change the direction of text, nor be anything but ASCII
    /// where the terminal shows nothing else.
    pub fn finish(&self, buffer: &mut Buffer) {
        sanitize(buffer);
        if self.ascii {
            fold_to_ascii(buffer);
        }
    }

    /// One character for a value between `low` and `high`.
    pub fn spark(&self, value: f64, low: f64, high: f64) -> &'static str {
        let share = if high > low {
            (value - low) / (high - low)
        } else {
            0.5
        };
        let at = (share * self.spark.len() as f64).clamp(0.0, self.spark.len() as f64 - 1.0);
        self.spark[at as usize]
    }
}

/// The cell of two dots, one above the other.
pub const fn half_blocks(upper: bool, lower: bool) -> char {
    match (upper, lower) {
        (true, true) => '█',
        (true, false) => '▀',
        (false, true) => '▄',
        (false, false) => ' ',
    }
}

fn sanitize(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        if cell.symbol().contains(harmful) {
            // The first part alone is as wide as the whole was.
            let part = cell.symbol().split(harmful).find(|part| !part.is_empty());
            let part = part.unwrap_or(" ").to_owned();
            cell.set_symbol(&part);
        }
    }
}

/// Replaces everything that is not ASCII by its nearest relative of the same width.
pub fn fold_to_ascii(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        if !cell.symbol().is_ascii() {
            cell.set_char(cell.symbol().chars().next().map_or(' ', fold));
        }
    }
}

/// Characters that are not ASCII, in words behind what stands for them.
const FOLDS: &str = "\
    -─━╌┈–—−‐‑╶╴·∙⋅⁻ |│┃┊╎ +╭╮╰╯┌┐└┘├┤┬┴┼✓ #█▓▒░▉▊▋▌▍▎▏▐■▅▆▇▘▝▖▗▞▚▛▜▙▟▪ _▁▂▃▄ *•◆●○⊙ \
    ~±≈≃ x×✗╳ ^▲↑△ v↓▼√ >→▸▶›»≥ <←◂◀‹«≤ \"“”„▀ '‘’′ .… =▬ /╱ :⋮ \
    0₀⁰ 1₁¹ 2₂² 3₃³ 4₄⁴ 5₅⁵ Tᵀ I∞ sσΣß uμµüúùû eεéèêë bβ aαäáàâ tθ pπ oöóòô iïí AÄ OÖ UÜ nñ cç";

fn fold(c: char) -> char {
    match c {
        '\u{2800}'..='\u{28ff}' => '.',
        '\u{2000}'..='\u{200a}' | '\u{a0}' => ' ',
        _ => {
            let found = FOLDS.split(' ').find(|word| word.contains(c));
            found.and_then(|word| word.chars().next()).unwrap_or('?')
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::course::Course;

    #[test]
    fn every_sign_of_the_course_has_a_form_in_ascii() {
        let course = format!("{:?}", Course::builtin());
        let other = |c: &char| !c.is_ascii() && !('\u{300}'..'\u{370}').contains(c);
        for c in course.chars().filter(other) {
            assert_ne!(fold(c), '?', "{c}");
        }
    }
}
