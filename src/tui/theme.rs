//! Every colour, named for its use, and the symbols that go with a way of drawing. Nothing else names a colour.
//! A theme without colour tells things apart by bold, dim, underline and reverse only.

use ratatui::style::{Color, Modifier, Style};

use super::symbols::{ASCII, BRAILLE, DOTS, Symbols};
use crate::app::{Markers, ThemeName};
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

/// Colours by purpose; `None` keeps the terminal's own.
#[derive(Clone, Copy, Default)]
struct Palette {
    text: Option<Color>,
    dim: Option<Color>,
    border: Option<Color>,
    accent: Option<Color>,
    a: Option<Color>,
    b: Option<Color>,
    good: Option<Color>,
    warning: Option<Color>,
    bad: Option<Color>,
    reference: Option<Color>,
    floor: Option<Color>,
    code: Option<Color>,
    phases: [Option<Color>; 4],
    background: Option<Color>,
}

const fn i(index: u8) -> Option<Color> {
    Some(Color::Indexed(index))
}

const DARK: Palette = Palette {
    text: None,
    dim: i(246),
    border: i(240),
    accent: i(111),
    a: i(215),
    b: i(80),
    good: i(114),
    warning: i(221),
    bad: i(203),
    reference: i(250),
    floor: i(108),
    code: i(180),
    phases: [i(75), i(140), i(108), i(203)],
    background: None,
};

const LIGHT: Palette = Palette {
    text: None,
    dim: i(242),
    border: i(248),
    accent: i(25),
    a: i(166),
    b: i(30),
    good: i(28),
    warning: i(130),
    bad: i(160),
    reference: i(240),
    floor: i(65),
    code: i(94),
    phases: [i(32), i(97), i(65), i(160)],
    background: None,
};

const HIGH_CONTRAST: Palette = Palette {
    text: Some(Color::White),
    dim: Some(Color::White),
    border: Some(Color::White),
    accent: Some(Color::LightYellow),
    a: Some(Color::LightYellow),
    b: Some(Color::LightCyan),
    good: Some(Color::LightGreen),
    warning: Some(Color::LightYellow),
    bad: Some(Color::LightRed),
    reference: Some(Color::White),
    floor: Some(Color::White),
    code: Some(Color::LightYellow),
    phases: [
        Some(Color::LightCyan),
        Some(Color::LightMagenta),
        Some(Color::LightGreen),
        Some(Color::LightRed),
    ],
    background: Some(Color::Black),
};

/// Orange against blue, which all common forms of colour blindness keep apart; no meaning rests on red and green.
const COLOUR_BLIND: Palette = Palette {
    text: None,
    dim: i(246),
    border: i(241),
    accent: i(75),
    a: i(208),
    b: i(33),
    good: i(33),
    warning: i(221),
    bad: i(208),
    reference: i(250),
    floor: i(246),
    code: i(180),
    phases: [i(33), i(221), i(250), i(208)],
    background: None,
};

/// Black on white, strong tints: what a projector leaves of a picture.
const PROJECTOR: Palette = Palette {
    text: i(16),
    dim: i(238),
    border: i(242),
    accent: i(18),
    a: i(160),
    b: i(19),
    good: i(22),
    warning: i(94),
    bad: i(160),
    reference: i(16),
    floor: i(22),
    code: i(52),
    phases: [i(19), i(54), i(22), i(160)],
    background: i(231),
};

/// Half-bright tints that read on dark and on light, for terminals that do not say which they are.
const BETWEEN: Palette = Palette {
    text: None,
    dim: i(244),
    border: i(244),
    accent: i(33),
    a: i(172),
    b: i(37),
    good: i(71),
    warning: i(136),
    bad: i(167),
    reference: i(244),
    floor: i(71),
    code: i(137),
    phases: [i(68), i(133), i(71), i(167)],
    background: None,
};

/// The sixteen names, which follow the terminal's own scheme; safe on dark and on light.
const SIXTEEN: Palette = Palette {
    text: None,
    dim: None,
    border: None,
    accent: Some(Color::LightBlue),
    a: Some(Color::Magenta),
    b: Some(Color::Cyan),
    good: Some(Color::Green),
    warning: Some(Color::Magenta),
    bad: Some(Color::Red),
    reference: None,
    floor: Some(Color::Green),
    code: Some(Color::Cyan),
    phases: [
        Some(Color::Blue),
        Some(Color::Magenta),
        Some(Color::Green),
        Some(Color::Red),
    ],
    background: None,
};

/// What draws the eye.
const LOUD: Modifier = Modifier::BOLD
    .union(Modifier::REVERSED)
    .union(Modifier::UNDERLINED)
    .union(Modifier::ITALIC);

impl Theme {
    /// The theme to draw with: the learner's choice, as far as the terminal can follow.
    pub fn new(name: ThemeName, markers: Markers, terminal: Terminal) -> Self {
        let palette = match (terminal.colours, name) {
            (Colours::None, _) | (_, ThemeName::Mono) => None,
            (_, ThemeName::HighContrast) => Some(HIGH_CONTRAST),
            (Colours::Sixteen, _) => Some(SIXTEEN),
            (_, ThemeName::Dark) => Some(DARK),
            (_, ThemeName::Light) => Some(LIGHT),
            (_, ThemeName::ColourBlind) => Some(COLOUR_BLIND),
            (_, ThemeName::Projector) => Some(PROJECTOR),
            (Colours::Indexed, ThemeName::Auto) => Some(match terminal.background {
                Some(Background::Dark) => DARK,
                Some(Background::Light) => LIGHT,
                None => BETWEEN,
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
            bg: palette.background,
            ..Style::new()
        };
        // The terminal's own colour is named too, so that it does not shine through from what lies below.
        let coloured = |colour: Option<Color>| Style {
            fg: colour.or(palette.text).or(Some(Color::Reset)),
            ..base
        };
        let dim = match palette.dim {
            None => coloured(None).add_modifier(Modifier::DIM),
            some => coloured(some),
        };
        let accent = coloured(palette.accent);
        Self {
            symbols,
            text: coloured(None),
            dim,
            strong: coloured(None).add_modifier(Modifier::BOLD),
            title: coloured(None).remove_modifier(Modifier::DIM),
            title_focused: accent.add_modifier(Modifier::BOLD),
            border: if palette.border.is_none() {
                dim
            } else {
                coloured(palette.border)
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
            selected: coloured(None).add_modifier(Modifier::REVERSED),
            heading: accent.add_modifier(Modifier::BOLD),
            emphasis: coloured(None).add_modifier(Modifier::ITALIC),
            code: coloured(palette.code),
            quote: dim.add_modifier(Modifier::ITALIC),
            link: accent.add_modifier(Modifier::UNDERLINED),
            figure: coloured(palette.b).add_modifier(Modifier::BOLD),
            card: coloured(None),
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
}
