//! Every colour, named for its use, and the symbols that go with a way of drawing. Nothing else names a colour.
//! A theme without colour tells things apart by bold, dim, underline and reverse only.

use ratatui::style::{Color, Modifier, Style};

use super::symbols::{ASCII, BRAILLE, DOTS, Symbols};
use crate::app::{Markers, ThemeName};
use crate::course::check::Outcome;
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
    /// Background of what lies on top.
    pub card: Style,
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

/// In this order: dark, light, high contrast, colour-blind, projector, between, sixteen. Colour-blind has orange against
/// blue, which all common forms of colour blindness keep apart, and no meaning rests on red and green. Projector has
/// black on white and strong colours, because a projector shows no others. Between has half-bright colours for terminals
/// that do not say whether they are dark or light. Sixteen has the names, which follow the terminal's own scheme.
#[rustfmt::skip] // A table reads best with one line for each palette.
const PALETTES: [Palette; 7] = [
    //      text, background  dim, border, accent  a, b   good, warning, bad   reference, floor, code  phases
    palette([OWN, OWN], [246, 240, 111], [215, 80], [114, 221, 203], [250, 108, 180], [75, 140, 108, 203]),
    palette([OWN, OWN], [242, 248, 25],  [166, 30], [28, 130, 160],  [240, 65, 94],   [32, 97, 65, 160]),
    palette([15, 0],    [15, 15, 11],    [11, 14],  [10, 11, 9],     [15, 15, 11],    [14, 13, 10, 9]),
    palette([OWN, OWN], [246, 241, 75],  [208, 33], [33, 221, 208],  [250, 246, 180], [33, 221, 250, 208]),
    palette([16, 231],  [238, 242, 18],  [160, 19], [22, 94, 160],   [16, 22, 52],    [19, 54, 22, 160]),
    palette([OWN, OWN], [244, 244, 33],  [172, 37], [71, 136, 167],  [244, 71, 137],  [68, 133, 71, 167]),
    palette([OWN, OWN], [OWN, OWN, 12],  [5, 6],    [2, 5, 1],       [OWN, 2, 6],     [4, 5, 2, 1]),
];

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
        let [
            dark,
            light,
            high_contrast,
            colour_blind,
            projector,
            between,
            sixteen,
        ] = PALETTES;
        let palette = match (terminal.colours, name) {
            (Colours::None, _) | (_, ThemeName::Mono) => None,
            (_, ThemeName::HighContrast) => Some(high_contrast),
            (Colours::Sixteen, _) => Some(sixteen),
            (_, ThemeName::Dark) => Some(dark),
            (_, ThemeName::Light) => Some(light),
            (_, ThemeName::ColourBlind) => Some(colour_blind),
            (_, ThemeName::Projector) => Some(projector),
            (Colours::Indexed, ThemeName::Auto) => Some(match terminal.background {
                Some(Background::Dark) => dark,
                Some(Background::Light) => light,
                None => between,
            }),
        };
        let markers = match (terminal.ascii, name, markers) {
            (true, ..) => Markers::Ascii,
            // A projector swallows braille.
            (false, ThemeName::Projector, Markers::Braille) => Markers::Dots,
            (false, _, markers) => markers,
        };
        let symbols = match markers {
            Markers::Braille => BRAILLE,
            Markers::Dots => DOTS,
            Markers::Ascii => ASCII,
        };
        palette.map_or_else(
            || Self::without_colour(symbols),
            |palette| Self::with_palette(&palette, symbols),
        )
    }

    fn with_palette(palette: &Palette, symbols: Symbols) -> Self {
        let base = Style {
            bg: colour(palette.background),
            ..Style::new()
        };
        // The terminal's own colour is named too, so that it does not shine through from what lies below.
        let coloured = |number: u8| Style {
            fg: colour(number)
                .or(colour(palette.text))
                .or(Some(Color::Reset)),
            ..base
        };
        let dim = match palette.dim {
            OWN => coloured(OWN).add_modifier(Modifier::DIM),
            some => coloured(some),
        };
        let accent = coloured(palette.accent);
        Self {
            symbols,
            text: coloured(OWN),
            dim,
            strong: coloured(OWN).add_modifier(Modifier::BOLD),
            title: coloured(OWN).remove_modifier(Modifier::DIM),
            title_focused: accent.add_modifier(Modifier::BOLD),
            border: match palette.border {
                OWN => dim,
                some => coloured(some),
            },
            border_focused: accent,
            a: coloured(palette.a),
            b: coloured(palette.b),
            good: coloured(palette.good),
            warning: coloured(palette.warning).add_modifier(Modifier::BOLD),
            bad: coloured(palette.bad).add_modifier(Modifier::BOLD),
            badge: coloured(palette.warning).add_modifier(Modifier::REVERSED),
            key: accent.add_modifier(Modifier::BOLD),
            reference: coloured(palette.reference),
            floor: coloured(palette.floor),
            phases: palette.phases.map(coloured),
            selected: coloured(OWN).add_modifier(Modifier::REVERSED),
            heading: accent.add_modifier(Modifier::BOLD),
            emphasis: coloured(OWN).add_modifier(Modifier::ITALIC),
            code: coloured(palette.code),
            quote: dim.add_modifier(Modifier::ITALIC),
            link: accent.add_modifier(Modifier::UNDERLINED),
            figure: coloured(palette.b).add_modifier(Modifier::BOLD),
            card: coloured(OWN),
            behind: dim.remove_modifier(LOUD),
        }
    }

    /// Modifiers only: a colour beside them would be reset by some terminals, and them with it.
    fn without_colour(symbols: Symbols) -> Self {
        let plain = Style::new();
        let with = |modifier| plain.add_modifier(modifier);
        Self {
            symbols,
            text: plain,
            dim: with(Modifier::DIM),
            strong: with(Modifier::BOLD),
            title: plain.remove_modifier(Modifier::DIM),
            title_focused: with(Modifier::BOLD | Modifier::REVERSED).remove_modifier(Modifier::DIM),
            border: with(Modifier::DIM),
            border_focused: with(Modifier::BOLD),
            a: plain,
            b: with(Modifier::BOLD),
            good: plain,
            warning: with(Modifier::BOLD),
            bad: with(Modifier::BOLD | Modifier::REVERSED),
            badge: with(Modifier::REVERSED),
            key: with(Modifier::BOLD | Modifier::UNDERLINED),
            reference: with(Modifier::DIM),
            floor: with(Modifier::DIM),
            phases: [plain, plain, plain, with(Modifier::BOLD)],
            selected: with(Modifier::REVERSED),
            heading: with(Modifier::BOLD),
            emphasis: with(Modifier::ITALIC),
            code: plain,
            quote: with(Modifier::DIM),
            link: with(Modifier::UNDERLINED),
            figure: with(Modifier::BOLD),
            card: plain,
            behind: with(Modifier::DIM).remove_modifier(LOUD),
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
