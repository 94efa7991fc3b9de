//! Fits a quadratic polynomial to measured points by least squares, by solving the normal equations.

const FORMULA: &str = "a + b·x + c·x²";
/// The number of coefficients.
const COUNT: usize = 3;

/// The polynomial y = a + b·x + c·x².
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// The coefficients a, b and c.
    pub coefficients: [f64; COUNT],
    /// The largest difference between a measured and a fitted y.
    pub largest: f64,
}

/// Fits the polynomial to points (x, y). Three points always fit exactly, so at least four are needed for a meaningful largest
/// difference.
///
/// # Errors
/// Returns why there is no fit.
pub fn quadratic(points: &[(f64, f64)]) -> Result<Fit, String> {
    if points.len() <= COUNT {
        return Err(format!(
            "no fit: {FORMULA} needs at least {} points, and there are {}",
            COUNT + 1,
            points.len()
        ));
    }
    // Powers of a number up to 1 keep the columns comparable.
    let scale = points.iter().map(|(x, _)| x.abs()).fold(0.0, f64::max);
    if scale == 0.0 {
        return Err("no fit: every x is 0".to_owned());
    }
    // The normal equations: a row for each coefficient, the right side last.
    let mut rows = [[0.0; COUNT + 1]; COUNT];
    for (x, y) in points {
        let powers = [1.0, x / scale, (x / scale).powi(2)];
        for (row, power) in rows.iter_mut().zip(powers) {
            for (sum, term) in row.iter_mut().zip(powers.into_iter().chain([*y])) {
                *sum += power * term;
            }
        }
    }
    for k in 0..COUNT {
        let pivot = rows[k];
        if pivot[k] <= 1e-12 * points.len() as f64 {
            return Err(format!(
                "no fit: {FORMULA} needs at least {COUNT} different x"
            ));
        }
        for row in &mut rows[k + 1..] {
            let share = row[k] / pivot[k];
            for (term, above) in row.iter_mut().zip(pivot) {
                *term -= share * above;
            }
        }
    }
    let mut coefficients = [0.0; COUNT];
    for k in (0..COUNT).rev() {
        let known: f64 = (k + 1..COUNT).map(|m| coefficients[m] * rows[k][m]).sum();
        coefficients[k] = (rows[k][COUNT] - known) / rows[k][k];
    }
    for (k, c) in coefficients.iter_mut().enumerate() {
        *c /= scale.powi(k as i32);
    }
    let [a, b, c] = coefficients;
    let misses = points
        .iter()
        .map(|(x, y)| (y - (a + b * x + c * x * x)).abs());
    Ok(Fit {
        coefficients,
        largest: misses.fold(0.0, f64::max),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-6 * b.abs().max(1.0)
    }

    #[test]
    fn exact_points_give_their_polynomial() {
        let points: Vec<(f64, f64)> = [64.0, 128.0, 256.0, 512.0, 4096.0]
            .map(|x| (x, 5e6 + 300.0 * x + 7.0 * x * x))
            .to_vec();
        let fit = quadratic(&points).expect("five points");
        let [a, b, c] = fit.coefficients;
        assert!(near(a, 5e6) && near(b, 300.0) && near(c, 7.0), "{fit:?}");
        assert!(fit.largest < 1e-2, "{fit:?}");
    }

    #[test]
    fn the_largest_difference_is_reported() {
        let points = [(1.0, 1.0), (2.0, 2.0), (3.0, 2.0), (4.0, 3.0)];
        let fit = quadratic(&points).expect("four points");
        let [a, b, c] = fit.coefficients;
        assert!(near(a, 0.5) && near(b, 0.6) && near(c, 0.0));
        // The differences are -0.1, 0.3, -0.3 and 0.1.
        assert!(near(fit.largest, 0.3));
    }

    #[test]
    fn too_few_points_or_too_few_different_x_cannot_be_fitted() {
        let points = [(1.0, 1.0), (2.0, 2.0), (3.0, 3.0)];
        let message = "no fit: a + b·x + c·x² needs at least 4 points, and there are 3";
        assert_eq!(quadratic(&points), Err(message.to_owned()));
        let message = "no fit: a + b·x + c·x² needs at least 3 different x";
        assert_eq!(quadratic(&[(2.0, 1.0); 4]), Err(message.to_owned()));
    }
}
