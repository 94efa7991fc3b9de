//! `8 * 31465984 / 2^20 = 240.07`: checks that a calculation in a lesson is right, to the digits that it states.

/// Whether both sides agree, and whether the words that are traced say the right-hand one.
pub fn check(text: &str, says: &[String]) -> Result<(), String> {
    let (left, right) = text.rsplit_once('=').ok_or_else(|| {
        let text = text.trim();
        format!("`{text}` has no result; write a sum such as \"8 * 512 = 4096\"")
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
        let what = "does not stand in `says`; quote the words with it";
        return Err(format!("the result {stated} {what}"));
    }
    Ok(())
}

/// Whether this number stands in the words as a whole, and not as a part of a longer one.
fn states(words: &str, number: &str) -> bool {
    let digit = |c: char| c.is_ascii_digit();
    let point = |c: char| c == '.' || c == ',';
    words.match_indices(number).any(|(at, _)| {
        let before = words[..at].ends_with(|c| digit(c) || point(c));
        let after = &words[at + number.len()..];
        let goes_on = after
            .strip_prefix(point)
            .unwrap_or(after)
            .starts_with(digit);
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
    let read = reader.text.is_empty();
    read.then_some(value).ok_or_else(|| reader.wrong())
}

struct Reader<'a> {
    text: &'a str,
    whole: &'a str,
}

impl Reader<'_> {
    fn wrong(&self) -> String {
        format!("`{}` cannot be computed at `{}`", self.whole, self.text)
    }

    fn takes(&mut self, sign: &str) -> bool {
        let rest = self.text.strip_prefix(sign);
        self.text = rest.map_or(self.text, str::trim_start);
        rest.is_some()
    }

    fn sum(&mut self) -> Result<f64, String> {
        let mut value = self.product()?;
        loop {
            match () {
                () if self.takes("+") => value += self.product()?,
                () if self.takes("-") => value -= self.product()?,
                () => return Ok(value),
            }
        }
    }

    fn product(&mut self) -> Result<f64, String> {
        let mut value = self.power()?;
        loop {
            match () {
                () if self.takes("*") => value *= self.power()?,
                () if self.takes("/") => value /= self.power()?,
                () => return Ok(value),
            }
        }
    }

    fn power(&mut self) -> Result<f64, String> {
        let base = self.atom()?;
        Ok(if self.takes("^") {
            base.powf(self.atom()?)
        } else {
            base
        })
    }

    fn atom(&mut self) -> Result<f64, String> {
        if self.takes("(") {
            let value = self.sum()?;
            let closed = self.takes(")");
            return closed.then_some(value).ok_or_else(|| self.wrong());
        }
        for (name, function) in [
            ("ln", f64::ln as fn(f64) -> f64),
            ("exp", f64::exp),
            ("sqrt", f64::sqrt),
        ] {
            if self.takes(name) {
                return Ok(function(self.atom()?));
            }
        }
        let inside = |c: char| c.is_ascii_digit() || c == '.';
        let end = self.text.find(|c| !inside(c)).unwrap_or(self.text.len());
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
        assert_eq!(check("8 * 31465984 / 2^20 = 240.07", &says), Ok(()));
        assert_eq!(
            check("8 * 31465984 / 2^20 = 240.08", &says),
            Err("8 * 31465984 / 2^20 is 240.0664, not 240.08".to_owned())
        );
        assert!(check("2 * 3 = 6", &says).is_err());
        assert_eq!(value("ln(1000) - (1 + 2) * 2"), Ok(1000f64.ln() - 6.0));
        assert!(value("2 *").is_err() && value("2 % 3").is_err());
    }
}
