//! Every colour, named for its use, and the symbols that go with a way of drawing. Nothing else names a colour.
//! A theme without colour tells things apart by bold, dim, underline and reverse only.

use ratatui::style::{Color, Modifier, Style};

use super::symbols::{ASCII, BRAILLE, DOTS, Symbols};
use crate::app::{Markers, ThemeName};
use crate::judge::Outcome;
use crate::protocol::Slot;

/// What the terminal can do, asked once at the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terminal {
    pub colours: Colours,
    /// Light or dark, where the terminal says.
    pub background: Option<Background>,
    /// Cannot draw anything beyond ASCII.
    pub ascii: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Colours {
    /// `NO_COLOR`, or a terminal without.
    None,
    #[default]
    Sixteen,
    Indexed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Background {
    Dark,
    Light,
}

/// Styles by purpose.
#[derive(Clone, Debug)]
pub struct Theme {
    pub symbols: Symbols,
    pub text: Style,
    pub dim: Style,
    pub strong: Style,
    pub title: Style,
    pub title_focused: Style,
    pub border: Style,
    pub border_focused: Style,
    pub a: Style,
    pub b: Style,
    pub good: Style,
    pub warning: Style,
    pub bad: Style,
    pub badge: Style,
    pub key: Style,
    pub reference: Style,
    pub floor: Style,
    pub phases: [Style; 4],
    pub selected: Style,
    pub heading: Style,
    pub emphasis: Style,
    pub code: Style,
    pub quote: Style,
    pub link: Style,
    pub figure: Style,
    /// What lies behind it, laid over the styles that are there.
    pub behind: Style,
}

/// Colours by purpose, as numbers of the 256: those below 16 are the terminal's own names.
#[derive(Clone, Copy)]
struct Palette {
    text: u8,
    dim: u8,
    border: u8,
    accent: u8,
    a: u8,
    b: u8,
    good: u8,
    warning: u8,
    bad: u8,
    reference: u8,
    floor: u8,
    code: u8,
    phases: [u8; 4],
    background: u8,
}

/// Keeps the terminal's own colour; no palette uses the colour of this number.
const OWN: u8 = 255;

#[rustfmt::skip] // The arguments stand as the table below has them.
const fn palette(
    [text, background]: [u8; 2], [dim, border, accent]: [u8; 3], [a, b]: [u8; 2], [good, warning, bad]: [u8; 3],
    [reference, floor, code]: [u8; 3], phases: [u8; 4],
) -> Palette {
    Palette { text, dim, border, accent, a, b, good, warning, bad, reference, floor, code, phases, background }
}

// Colour-blind has orange against blue, which all common forms of colour blindness keep apart, and no meaning rests on
// red and green. Projector has black on white and strong colours, because a projector shows no others. Between has
// half-bright colours for terminals that do not say whether they are dark or light. Sixteen has the names, which follow
// the terminal's own scheme.
#[rustfmt::skip] // A table reads best with one line for each palette.
mod palettes {
    use super::{OWN, Palette, palette};

    //                                          text, background  dim, border, accent  a, b   good, warning, bad   reference, floor, code  phases
    pub const DARK: Palette          = palette([OWN, OWN], [246, 240, 111], [215, 80], [114, 221, 203], [250, 108, 180], [75, 140, 108, 203]);
    pub const LIGHT: Palette         = palette([OWN, OWN], [242, 248, 25],  [166, 30], [28, 130, 160],  [240, 65, 94],   [32, 97, 65, 160]);
    pub const HIGH_CONTRAST: Palette = palette([15, 0],    [15, 15, 11],    [11, 14],  [10, 11, 9],     [15, 15, 11],    [14, 13, 10, 9]);
    pub const COLOUR_BLIND: Palette  = palette([OWN, OWN], [246, 241, 75],  [208, 33], [33, 221, 208],  [250, 246, 180], [33, 221, 250, 208]);
    pub const PROJECTOR: Palette     = palette([16, 231],  [238, 242, 18],  [160, 19], [22, 94, 160],   [16, 22, 52],    [19, 54, 22, 160]);
    pub const BETWEEN: Palette       = palette([OWN, OWN], [244, 244, 33],  [172, 37], [71, 136, 167],  [244, 71, 137],  [68, 133, 71, 167]);
    pub const SIXTEEN: Palette       = palette([OWN, OWN], [OWN, OWN, 12],  [5, 6],    [2, 5, 1],       [OWN, 2, 6],     [4, 5, 2, 1]);
}

/// A colour by its number; none where the terminal's own stays.
const fn colour(number: u8) -> Option<Color> {
    Some(match number {
        OWN => return None,
        0 => Color::Black,
        1 => Color::Red,
        2 => Color::Green,
        4 => Color::Blue,
        5 => Color::Magenta,
        6 => Color::Cyan,
        9 => Color::LightRed,
        10 => Color::LightGreen,
        11 => Color::LightYellow,
        12 => Color::LightBlue,
        13 => Color::LightMagenta,
        14 => Color::LightCyan,
        15 => Color::White,
        indexed => Color::Indexed(indexed),
    })
}

/// What makes text stand out.
const LOUD: Modifier = Modifier::BOLD
    .union(Modifier::REVERSED)
    .union(Modifier::UNDERLINED)
    .union(Modifier::ITALIC);

impl Theme {
    /// The theme to draw with: the learner's choice, as far as the terminal can follow.
    pub fn new(name: ThemeName, markers: Markers, terminal: Terminal) -> Self {
        let palette = match (terminal.colours, name) {
            (Colours::None, _) | (_, ThemeName::Mono) => None,
            (_, ThemeName::HighContrast) => Some(palettes::HIGH_CONTRAST),
            (Colours::Sixteen, _) => Some(palettes::SIXTEEN),
            (_, ThemeName::Dark) => Some(palettes::DARK),
            (_, ThemeName::Light) => Some(palettes::LIGHT),
            (_, ThemeName::ColourBlind) => Some(palettes::COLOUR_BLIND),
            (_, ThemeName::Projector) => Some(palettes::PROJECTOR),
            (Colours::Indexed, ThemeName::Auto) => Some(match terminal.background {
                Some(Background::Dark) => palettes::DARK,
                Some(Background::Light) => palettes::LIGHT,
                None => palettes::BETWEEN,
            }),
        };
        let symbols = match (name, markers) {
            _ if terminal.ascii => ASCII,
            (_, Markers::Ascii) => ASCII,
            // A projector swallows braille.
            (ThemeName::Projector, _) | (_, Markers::Dots) => DOTS,
            (_, Markers::Braille) => BRAILLE,
        };
        Self::styled(palette, symbols)
    }

    /// Each use has a colour with modifiers, or in a theme without colour modifiers alone: a colour beside them would be
    /// reset by some terminals, and them with it.
    fn styled(palette: Option<Palette>, symbols: Symbols) -> Self {
        const NONE: Modifier = Modifier::empty();
        const BOLD: Modifier = Modifier::BOLD;
        const DIM: Modifier = Modifier::DIM;
        const ITALIC: Modifier = Modifier::ITALIC;
        const REVERSED: Modifier = Modifier::REVERSED;
        const UNDERLINED: Modifier = Modifier::UNDERLINED;
        let it = palette.unwrap_or(palettes::SIXTEEN);
        let base = Style {
            bg: colour(it.background),
            ..Style::new()
        };
        let style = |number: u8, coloured, plain| match palette {
            None => Style::new().add_modifier(plain),
            // The terminal's own colour is named too, so that it does not shine through from what lies below.
            Some(_) => base
                .fg(colour(number).or(colour(it.text)).unwrap_or_default())
                .add_modifier(coloured),
        };
        let own = |coloured, plain| style(OWN, coloured, plain);
        let accent = |coloured, plain| style(it.accent, coloured, plain);
        let dimmed = |number: u8| style(number, if number == OWN { DIM } else { NONE }, DIM);
        let dim = dimmed(it.dim);
        let mut phases = it.phases.map(|it| style(it, NONE, NONE));
        phases[3] = style(it.phases[3], NONE, BOLD);
        Self {
            symbols,
            text: own(NONE, NONE),
            dim,
            strong: own(BOLD, BOLD),
            title: own(NONE, NONE).remove_modifier(DIM),
            title_focused: accent(BOLD, BOLD | REVERSED).remove_modifier(DIM),
            border: dimmed(it.border),
            border_focused: accent(NONE, BOLD),
            a: style(it.a, NONE, NONE),
            b: style(it.b, NONE, BOLD),
            good: style(it.good, NONE, NONE),
            warning: style(it.warning, BOLD, BOLD),
            bad: style(it.bad, BOLD, BOLD | REVERSED),
            badge: style(it.warning, REVERSED, REVERSED),
            key: accent(BOLD, BOLD | UNDERLINED),
            reference: style(it.reference, NONE, DIM),
            floor: style(it.floor, NONE, DIM),
            phases,
            selected: own(REVERSED, REVERSED),
            heading: accent(BOLD, BOLD),
            emphasis: own(ITALIC, ITALIC),
            code: style(it.code, NONE, NONE),
            quote: dim.add_modifier(if palette.is_some() { ITALIC } else { DIM }),
            link: accent(UNDERLINED, UNDERLINED),
            figure: style(it.b, BOLD, BOLD),
            behind: dim.remove_modifier(LOUD),
        }
    }

    /// The style of a slot.
    pub fn slot(&self, slot: Slot) -> Style {
        if slot == Slot::A { self.a } else { self.b }
    }

    /// The mark of what is right or wrong, in its style.
    pub fn mark(&self, good: bool) -> (&'static str, Style) {
        match good {
            true => (self.symbols.good, self.good),
            false => (self.symbols.bad, self.bad),
        }
    }

    /// The mark of a check.
    pub fn outcome(&self, outcome: Outcome) -> (&'static str, Style) {
        match outcome {
            Outcome::NotMeasured => (self.symbols.ghost, self.dim),
            outcome => self.mark(outcome == Outcome::Passed),
        }
    }
}
