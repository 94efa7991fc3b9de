//! `8 * 31465984 / 2^20 = 240.07`: checks that a calculation in a lesson is right, to the digits that it states.

/// Whether both sides agree, and whether the words that are traced say the right-hand one.
pub fn holds(text: &str, says: &[String]) -> Result<(), String> {
    let (left, right) = text.rsplit_once('=').ok_or_else(|| {
        format!(
            "`{}` has no result; write a sum such as \"8 * 512 = 4096\"",
            text.trim()
        )
    })?;
    let stated = right.trim();
    let value = value(left)?;
    let plain: String = stated.chars().filter(|c| *c != ',').collect();
    let number: f64 = plain
        .parse()
        .map_err(|_| format!("`{stated}` is not a number"))?;
    let decimals = plain.split_once('.').map_or(0, |(_, after)| after.len());
    // A trailing zero of a whole number may be a rounded digit: 190 for 190.2.
    let half = 0.5 * 10f64.powi(-i32::try_from(decimals).unwrap_or(0));
    if (value - number).abs() > half * (1.0 + 1e-9) {
        return Err(format!("{} is {value:.4}, not {stated}", left.trim()));
    }
    if !says.iter().any(|words| states(words, stated)) {
        return Err(format!(
            "the result {stated} does not stand in `says`; quote the words that hold it"
        ));
    }
    Ok(())
}

/// Whether the words hold this number as a whole, and not as a part of a longer one.
fn states(words: &str, number: &str) -> bool {
    let inside = |c: char| c.is_ascii_digit() || c == '.' || c == ',';
    words.match_indices(number).any(|(at, _)| {
        let before = words[..at].ends_with(inside);
        let mut after = words[at + number.len()..].chars();
        let goes_on = match after.next() {
            Some(c) if c.is_ascii_digit() => true,
            Some('.' | ',') => after.next().is_some_and(|c| c.is_ascii_digit()),
            _ => false,
        };
        !before && !goes_on
    })
}

/// The value of a sum of numbers with + - * / ^, parentheses, ln, exp and sqrt.
pub fn value(text: &str) -> Result<f64, String> {
    let mut reader = Reader {
        text: text.trim(),
        whole: text.trim(),
    };
    let value = reader.sum()?;
    if reader.text.is_empty() {
        Ok(value)
    } else {
        Err(reader.wrong())
    }
}

struct Reader<'a> {
    text: &'a str,
    whole: &'a str,
}

impl Reader<'_> {
    fn wrong(&self) -> String {
        format!("`{}` cannot be computed at `{}`", self.whole, self.text)
    }

    fn takes(&mut self, sign: char) -> bool {
        match self.text.strip_prefix(sign) {
            Some(rest) => {
                self.text = rest.trim_start();
                true
            }
            None => false,
        }
    }

    fn sum(&mut self) -> Result<f64, String> {
        let mut value = self.product()?;
        loop {
            if self.takes('+') {
                value += self.product()?;
            } else if self.takes('-') {
                value -= self.product()?;
            } else {
                return Ok(value);
            }
        }
    }

    fn product(&mut self) -> Result<f64, String> {
        let mut value = self.power()?;
        loop {
            if self.takes('*') {
                value *= self.power()?;
            } else if self.takes('/') {
                value /= self.power()?;
            } else {
                return Ok(value);
            }
        }
    }

    fn power(&mut self) -> Result<f64, String> {
        let base = self.atom()?;
        Ok(if self.takes('^') {
            base.powf(self.atom()?)
        } else {
            base
        })
    }

    fn atom(&mut self) -> Result<f64, String> {
        if self.takes('(') {
            let value = self.sum()?;
            return if self.takes(')') {
                Ok(value)
            } else {
                Err(self.wrong())
            };
        }
        for (name, function) in [
            ("ln", f64::ln as fn(f64) -> f64),
            ("exp", f64::exp),
            ("sqrt", f64::sqrt),
        ] {
            if let Some(rest) = self.text.strip_prefix(name) {
                self.text = rest.trim_start();
                return Ok(function(self.atom()?));
            }
        }
        let end = self
            .text
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(self.text.len());
        let number = self.text[..end].parse().map_err(|_| self.wrong())?;
        self.text = self.text[end..].trim_start();
        Ok(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_computed_to_the_digits_they_state() {
        let says = ["8 B × 31,465,984 = 240.07 MiB".to_owned()];
        assert_eq!(holds("8 * 31465984 / 2^20 = 240.07", &says), Ok(()));
        assert_eq!(
            holds("8 * 31465984 / 2^20 = 240.08", &says),
            Err("8 * 31465984 / 2^20 is 240.0664, not 240.08".to_owned())
        );
        assert!(holds("2 * 3 = 6", &says).is_err());
        assert_eq!(value("ln(1000) - (1 + 2) * 2"), Ok(1000f64.ln() - 6.0));
        assert!(value("2 *").is_err() && value("2 % 3").is_err());
    }
}
