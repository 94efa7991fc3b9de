//! The characters of the screen: braille, blocks or plain dots with line borders, or ASCII alone. On a terminal that shows only ASCII,
//! all other characters are folded to ASCII at the end.

use ratatui::buffer::Buffer;
use ratatui::symbols::border;

use crate::sanitize::harmful;

/// The glyphs that draw curves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CurveGlyphs {
    /// Two by four dots in each cell.
    Braille,
    /// Two by two blocks in each cell, which stay visible on a projector.
    Quadrants,
    /// One point in each cell.
    Points,
}

/// One set of characters for everything that is drawn.
#[derive(Clone, Copy, Debug)]
pub struct Symbols {
    pub ascii: bool,
    pub curves: CurveGlyphs,
    pub border: border::Set<'static>,
    /// The points of the curves of A and B.
    pub points: [&'static str; 2],
    pub good: &'static str,
    pub bad: &'static str,
    pub warning: &'static str,
    pub live: &'static str,
    pub circle: &'static str,
    pub pointer: &'static str,
    /// The sign between an old and a new figure.
    pub to: &'static str,
    pub reference: &'static str,
    pub floor: &'static str,
    pub rule: &'static str,
    pub vertical: &'static str,
    /// The parts of a cell of a bar, the full cell last.
    pub bar: &'static [&'static str],
    /// The heights of a sparkline, the lowest first.
    pub spark: &'static [&'static str],
    /// The fillings of the parts of a bar: forward, backward, optimizer, unaccounted.
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

/// Characters that are not named here are folded to ASCII at the end.
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
    /// Returns the columns and rows of dots in a cell.
    pub const fn dots(&self) -> (usize, usize) {
        match self.curves {
            CurveGlyphs::Braille => (2, 4),
            CurveGlyphs::Quadrants => (2, 2),
            CurveGlyphs::Points => (1, 1),
        }
    }

    /// Returns the pointer for a marked line, or a blank for another line.
    pub const fn pointer_at(&self, is_marked: bool) -> &'static str {
        if is_marked { self.pointer } else { " " }
    }

    /// Returns the character that shows these dots, with bits as braille numbers them. `None` where a cell has one point only.
    pub fn mosaic(&self, bits: u8) -> Option<char> {
        // The index has the bits of the upper left, lower left, upper right and lower right dot.
        const QUADRANTS: [char; 16] = [
            ' ', '▘', '▖', '▌', '▝', '▀', '▞', '▛', '▗', '▚', '▄', '▙', '▐', '▜', '▟', '█',
        ];
        match self.curves {
            CurveGlyphs::Braille => char::from_u32(0x2800 + u32::from(bits)),
            CurveGlyphs::Quadrants => Some(QUADRANTS[usize::from((bits & 3) | ((bits >> 1) & 12))]),
            CurveGlyphs::Points => None,
        }
    }

    /// Returns a bar that fills `share` (0 to 1) of `width` cells.
    pub fn bar(&self, share: f64, width: u16) -> String {
        let steps = self.bar.len();
        // A NaN becomes 0.
        let filled = (share.clamp(0.0, 1.0) * f64::from(width) * steps as f64).round() as usize;
        let mut text = self.bar[steps - 1].repeat(filled / steps);
        if let last @ 1.. = filled % steps {
            text.push_str(self.bar[last - 1]);
        }
        text
    }

    /// Returns a column chart with a column for each value, as `rows` rows of cells from the top. The largest value fills its column.
    pub fn columns(&self, values: &[f64], rows: u16) -> Vec<Vec<&'static str>> {
        let largest = values
            .iter()
            .copied()
            .filter(|value| value.is_finite())
            .fold(f64::MIN_POSITIVE, f64::max);
        let steps = self.spark.len();
        let full = self.bar.last().copied().unwrap_or("#");
        let cell = |value: f64, row: u16| {
            // A NaN becomes 0.
            let height = (value / largest * (usize::from(rows) * steps) as f64).ceil() as usize;
            match height.saturating_sub(usize::from(rows - 1 - row) * steps) {
                0 => " ",
                in_row if in_row >= steps => full,
                in_row => self.spark[in_row - 1],
            }
        };
        (0..rows)
            .map(|row| values.iter().map(|value| cell(*value, row)).collect())
            .collect()
    }

    /// Checks the buffer before it goes to the terminal: afterwards no cell can move the cursor or change the direction of text, and on a
    /// terminal that shows only ASCII all cells are ASCII.
    pub fn finish(&self, buffer: &mut Buffer) {
        sanitize(buffer);
        if self.ascii {
            fold_to_ascii(buffer);
        }
    }

    /// Returns the character of a sparkline for a value between `low` and `high`.
    pub fn spark(&self, value: f64, low: f64, high: f64) -> &'static str {
        let share = if high > low {
            (value - low) / (high - low)
        } else {
            0.5
        };
        let heights = self.spark.len() as f64;
        let index = (share * heights).clamp(0.0, heights - 1.0);
        self.spark[index as usize]
    }
}

/// Returns the character that shows two dots, one above the other.
pub const fn half_blocks(upper: bool, lower: bool) -> char {
    [' ', '▄', '▀', '█'][2 * upper as usize + lower as usize]
}

fn sanitize(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        if cell.symbol().contains(harmful) {
            // The first harmless part is as wide as the whole symbol was.
            let part = cell
                .symbol()
                .split(harmful)
                .find(|part| !part.is_empty())
                .unwrap_or(" ")
                .to_owned();
            cell.set_symbol(&part);
        }
    }
}

/// Replaces every character that is not ASCII by a similar ASCII character of equal width.
pub fn fold_to_ascii(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        if !cell.symbol().is_ascii() {
            cell.set_char(cell.symbol().chars().next().map_or(' ', fold));
        }
    }
}

/// Words that begin with an ASCII character; the other characters of the word are replaced by it.
const FOLDS: &str = "\
    -─━╌┈–—−‐‑╶╴·∙⋅⁻ |│┃┊╎ +╭╮╰╯┌┐└┘├┤┬┴┼✓ #█▓▒░▉▊▋▌▍▎▏▐■▅▆▇▘▝▖▗▞▚▛▜▙▟▪ _▁▂▃▄ *•◆●○⊙ \
    ~±≈≃ x×✗╳ ^▲↑△ v↓▼√ >→▸▶›»≥ <←◂◀‹«≤ \"“”„▀ '‘’′ .… =▬ /╱ :⋮ \
    0₀⁰ 1₁¹ 2₂² 3₃³ 4₄⁴ 5₅⁵ Tᵀ I∞ sσΣß uμµüúùû eεéèêë bβ aαäáàâ tθ pπ oöóòô iïí AÄ OÖ UÜ nñ cç";

fn fold(c: char) -> char {
    match c {
        '\u{2800}'..='\u{28ff}' => '.',
        '\u{2000}'..='\u{200a}' | '\u{a0}' => ' ',
        _ => FOLDS
            .split(' ')
            .find(|word| word.contains(c))
            .and_then(|word| word.chars().next())
            .unwrap_or('?'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::course::Course;

    #[test]
    fn every_character_of_the_course_has_a_form_in_ascii() {
        let course = format!("{:?}", Course::builtin());
        let is_combining = |c: char| ('\u{300}'..'\u{370}').contains(&c);
        let needs_form = |c: &char| !c.is_ascii() && !is_combining(*c);
        for c in course.chars().filter(needs_form) {
            assert_ne!(fold(c), '?', "{c}");
        }
    }
}
