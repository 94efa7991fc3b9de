//! A theme has a style for each use, such as a title or a warning, and the symbols that draw the screen. No other file names a colour. A theme
//! without colours distinguishes uses only by bold, dim, underlined and reversed text.

use ratatui::style::{Color, Modifier, Style};

use super::symbols::{ASCII, BLOCKS, BRAILLE, CurveGlyphs, DOTS, Symbols};
use crate::app::{Markers, ThemeName};
use crate::judge::Outcome;
use protocol::Slot;

/// What the terminal can show, read once at the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TerminalAbilities {
    pub colours: Colours,
    /// The terminal's background. `None` if the terminal does not say.
    pub background: Option<Background>,
    /// True if the terminal shows only ASCII.
    pub ascii: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase", const_into_str)]
pub enum Colours {
    /// `NO_COLOR` is set, or the terminal has no colours.
    None,
    #[default]
    #[strum(serialize = "16")]
    Sixteen,
    #[strum(serialize = "256")]
    Indexed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Background {
    Dark,
    Light,
}

/// The styles of the screen, named by purpose.
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
    /// The style of a QR code: black on white in every theme with colours.
    pub scanned: Style,
    /// The style of panels behind a card. It is laid over the styles that are there.
    pub behind: Style,
}

/// The colours of a theme, as numbers of the 256 colours; those below 16 are the terminal's named colours. In order: text and background;
/// dim text, border, accent; A and B; good, warning, bad; reference, floor, code; the phases of a step.
#[derive(Clone, Copy)]
struct Palette([u8; 2], [u8; 3], [u8; 2], [u8; 3], [u8; 3], [u8; 4]);

/// The number that means the terminal's own colour. No palette uses the colour that has this number in a terminal.
const OWN: u8 = 255;

// COLOUR_BLIND has orange against blue, which people with any common form of colour blindness can distinguish; red and green carry no
// meaning. Light themes paint their own background. PROJECTOR has black on white and strong colours, because a
// projector shows no others. BETWEEN has half-bright colours for terminals that report neither a dark nor a light background. SIXTEEN has
// the named colours, which follow the terminal's own scheme.
#[rustfmt::skip] // A table reads best with one line for each palette.
impl Palette {
    //                                      text, background  dim, border, accent  a, b   good, warning, bad   reference, floor, code  phases
    const DARK: Self          = Self([OWN, OWN], [246, 240, 111], [215, 80], [114, 221, 203], [250, 108, 180], [75, 140, 108, 203]);
    const LIGHT: Self         = Self([16, 231],  [242, 248, 25],  [166, 30], [28, 130, 160],  [240, 65, 94],   [32, 97, 65, 160]);
    const HIGH_CONTRAST: Self = Self([15, 0],    [15, 15, 11],    [11, 14],  [10, 11, 9],     [15, 15, 11],    [14, 13, 10, 9]);
    const COLOUR_BLIND: Self  = Self([OWN, OWN], [246, 241, 75],  [208, 33], [33, 221, 208],  [250, 246, 180], [33, 221, 250, 208]);
    const PROJECTOR: Self     = Self([16, 231],  [238, 242, 18],  [160, 19], [22, 94, 160],   [16, 22, 52],    [19, 54, 22, 160]);
    const BETWEEN: Self       = Self([OWN, OWN], [244, 244, 33],  [172, 37], [71, 136, 167],  [244, 71, 137],  [68, 133, 71, 167]);
    const LIGHT_SIXTEEN: Self = Self([0, 7],     [0, 0, 4],       [1, 4],    [0, 5, 1],       [0, 4, 5],       [4, 5, 0, 1]);
    const SIXTEEN: Self       = Self([OWN, OWN], [OWN, OWN, 12],  [5, 6],    [2, 5, 1],       [OWN, 2, 6],     [4, 5, 2, 1]);
}

/// Returns the colour of a number, or `None` where the terminal's own colour stays.
const fn colour(number: u8) -> Option<Color> {
    Some(match number {
        OWN => return None,
        0 => Color::Black,
        1 => Color::Red,
        2 => Color::Green,
        4 => Color::Blue,
        5 => Color::Magenta,
        6 => Color::Cyan,
        7 => Color::Gray,
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

/// The modifiers that make text stand out.
const LOUD: Modifier = Modifier::BOLD
    .union(Modifier::REVERSED)
    .union(Modifier::UNDERLINED)
    .union(Modifier::ITALIC);

impl Theme {
    /// Returns the theme that the learner chose, as far as the terminal can show it.
    pub fn new(name: ThemeName, markers: Markers, terminal: TerminalAbilities) -> Self {
        let palette = match (terminal.colours, name) {
            (Colours::None, _) | (_, ThemeName::Mono) => None,
            (_, ThemeName::HighContrast) => Some(Palette::HIGH_CONTRAST),
            (Colours::Sixteen, ThemeName::Light | ThemeName::Projector) => {
                Some(Palette::LIGHT_SIXTEEN)
            }
            (Colours::Sixteen, _) => Some(Palette::SIXTEEN),
            (_, ThemeName::Dark) => Some(Palette::DARK),
            (_, ThemeName::Light) => Some(Palette::LIGHT),
            (_, ThemeName::ColourBlind) => Some(Palette::COLOUR_BLIND),
            (_, ThemeName::Projector) => Some(Palette::PROJECTOR),
            (Colours::Indexed, ThemeName::Auto) => Some(match terminal.background {
                Some(Background::Dark) => Palette::DARK,
                Some(Background::Light) => Palette::LIGHT,
                None => Palette::BETWEEN,
            }),
        };
        let symbols = match (name, markers) {
            _ if terminal.ascii => ASCII,
            (_, Markers::Ascii) => ASCII,
            (_, Markers::Dots) => DOTS,
            // Braille is too faint on a projector.
            (ThemeName::Projector, _) => BLOCKS,
            (_, Markers::Braille) => BRAILLE,
        };
        Self::styled(palette, symbols)
    }

    /// Returns a theme without colours. It serves to find the size of a text, which does not depend on the theme.
    pub fn plain(markers: Markers) -> Self {
        Self::new(ThemeName::Mono, markers, TerminalAbilities::default())
    }

    /// Builds the styles. Each use has a colour with modifiers, or modifiers alone in a theme without colours: some terminals reset the
    /// modifiers when a colour is set.
    fn styled(palette: Option<Palette>, symbols: Symbols) -> Self {
        const NONE: Modifier = Modifier::empty();
        const BOLD: Modifier = Modifier::BOLD;
        const DIM: Modifier = Modifier::DIM;
        const ITALIC: Modifier = Modifier::ITALIC;
        const REVERSED: Modifier = Modifier::REVERSED;
        const UNDERLINED: Modifier = Modifier::UNDERLINED;
        let Palette(
            [text, background],
            [dim, border, accent],
            [a, b],
            [good, warning, bad],
            [reference, floor, code],
            phases,
        ) = palette.unwrap_or(Palette::SIXTEEN);
        let base = Style {
            bg: colour(background),
            ..Style::new()
        };
        let style = |number: u8, coloured, plain| match palette {
            None => Style::new().add_modifier(plain),
            // The terminal's own colour is set, too, so that it replaces the colour that the cell had before.
            Some(_) => base
                .fg(colour(number).or(colour(text)).unwrap_or_default())
                .add_modifier(coloured),
        };
        let own = |coloured, plain| style(OWN, coloured, plain);
        let accented = |coloured, plain| style(accent, coloured, plain);
        let dimmed = |number: u8| style(number, if number == OWN { DIM } else { NONE }, DIM);
        let dim = dimmed(dim);
        let [forward, backward, optimizer, unaccounted] = phases;
        let phases = [
            style(forward, NONE, NONE),
            style(backward, NONE, NONE),
            style(optimizer, NONE, NONE),
            style(unaccounted, NONE, BOLD),
        ];
        Self {
            symbols,
            text: own(NONE, NONE),
            dim,
            strong: own(BOLD, BOLD),
            title: own(NONE, NONE).remove_modifier(DIM),
            title_focused: accented(BOLD, BOLD | REVERSED).remove_modifier(DIM),
            border: dimmed(border),
            border_focused: accented(NONE, BOLD),
            a: style(a, NONE, NONE),
            b: style(b, NONE, BOLD),
            good: style(good, NONE, NONE),
            warning: style(warning, BOLD, BOLD),
            bad: style(bad, BOLD, BOLD | REVERSED),
            badge: style(warning, REVERSED, REVERSED),
            key: accented(BOLD, BOLD | UNDERLINED),
            reference: style(reference, NONE, DIM),
            floor: style(floor, NONE, DIM),
            phases,
            selected: own(REVERSED, REVERSED),
            heading: accented(BOLD, BOLD),
            emphasis: own(ITALIC, ITALIC),
            code: style(code, NONE, NONE),
            quote: dim.add_modifier(if palette.is_some() { ITALIC } else { DIM }),
            link: accented(UNDERLINED, UNDERLINED),
            figure: style(b, BOLD, BOLD),
            scanned: match palette {
                Some(_) => Style::new().fg(Color::Black).bg(Color::White),
                None => Style::new().add_modifier(REVERSED),
            },
            behind: dim.remove_modifier(LOUD),
        }
    }

    /// Returns the theme for a presentation: curves are drawn in blocks, which are thicker than braille and visible from the back row.
    pub fn on_stage(&self) -> Self {
        let mut theme = self.clone();
        if theme.symbols.curves == CurveGlyphs::Braille {
            theme.symbols = BLOCKS;
        }
        theme
    }

    /// Returns the style of a slot.
    pub fn slot(&self, slot: Slot) -> Style {
        if slot == Slot::A { self.a } else { self.b }
    }

    /// Returns the style of an entry of a list: the style of the selected entry, or `otherwise`.
    pub fn among(&self, selected: bool, otherwise: Style) -> Style {
        if selected { self.selected } else { otherwise }
    }

    /// Returns the mark for right (`good`) or wrong, with its style.
    pub fn mark(&self, good: bool) -> (&'static str, Style) {
        if good {
            (self.symbols.good, self.good)
        } else {
            (self.symbols.bad, self.bad)
        }
    }

    /// Returns the mark for an open question, with its style.
    pub fn waiting(&self) -> (&'static str, Style) {
        (self.symbols.circle, self.warning)
    }

    /// Returns the mark for the outcome of a check, with its style.
    pub fn outcome(&self, outcome: Outcome) -> (&'static str, Style) {
        match outcome {
            Outcome::NotMeasured => (self.symbols.circle, self.dim),
            outcome => self.mark(outcome == Outcome::Passed),
        }
    }
}
