//! What went wrong in a trial, in words.

use super::reference::Difference;
use super::trial::Trial;
use crate::protocol::{KernelFault, KernelFaultKind as Kind};

impl Trial<'_> {
    /// An output with a number that is too far off.
    pub(super) fn wrong(
        &self,
        name: &str,
        expected: &[f32],
        found: &[f32],
        most: &Difference,
        tolerance: f64,
    ) -> KernelFault {
        let scale = expected
            .iter()
            .fold(0.0_f64, |most, x| most.max(f64::from(x.abs())))
            .max(f64::MIN_POSITIVE);
        let off = |(e, f): (&f32, &f32)| {
            let error = (f64::from(*e) - f64::from(*f)).abs();
            error.is_nan() || error > tolerance * scale
        };
        let (count, of) = (
            expected.iter().zip(found).filter(|pair| off(*pair)).count(),
            expected.len(),
        );
        let mut text = format!(
            "`{name}[{}]` is {} and should be {}; ",
            most.at,
            number(most.found),
            number(most.expected)
        );
        text += &if of == 1 {
            "it is the only element".to_owned()
        } else {
            format!("{count} of {of} elements are wrong")
        };
        if most.error.is_finite() {
            let allowed = if tolerance == 0.0 {
                "none".to_owned()
            } else {
                format!("{tolerance:.0e}")
            };
            text += &format!(
                ", the largest error is {:.1e} of the largest value and {allowed} is allowed",
                most.error
            );
        }
        KernelFault {
            expected: Some(f64::from(most.expected).into()),
            found: Some(f64::from(most.found).into()),
            error: Some(most.error.into()),
            ..self.fault(Kind::Wrong, name, Some(most.at), text)
        }
    }

    /// A kernel that was right once, and differs when its buffers are longer, or when it runs again.
    pub(super) fn unsteady(
        &self,
        one: &[Vec<f32>],
        again: &[Vec<f32>],
        (binding, at): (usize, usize),
    ) -> KernelFault {
        let name = &self.file.spec.bindings[binding].name;
        if self.first_difference(one, again).is_some() {
            let text = format!(
                "two runs on the same numbers differ, first in `{name}[{at}]`: invocations race. Is a workgroupBarrier() missing, or do two write \
                 the same element?"
            );
            return self.fault(Kind::Races, name, Some(at), text);
        }
        let text = format!(
            "reads past the end of a buffer: with other numbers behind it, `{name}[{at}]` comes out different; compare the index with the size before \
             reading"
        );
        self.fault(Kind::ReadsPastEnd, name, Some(at), text)
    }

    pub(super) fn fault(
        &self,
        kind: Kind,
        buffer: &str,
        at: Option<usize>,
        text: String,
    ) -> KernelFault {
        KernelFault {
            kind,
            shape: self.shape.label.clone(),
            buffer: buffer.to_owned(),
            at: at.map(|at| at as u64),
            text,
            ..KernelFault::default()
        }
    }
}

/// Six digits, without idle zeros.
fn number(x: f32) -> String {
    let size = x.abs();
    if !x.is_finite() {
        return if x.is_nan() {
            "NaN".to_owned()
        } else {
            x.to_string()
        };
    }
    if x != 0.0 && !(1e-3..1e6).contains(&size) {
        return format!("{x:.4e}");
    }
    let decimals = 5_usize.saturating_sub(size.max(1.0).log10() as usize);
    let text = format!("{x:.decimals$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}
