//! Matrices on the host in double precision. Inputs have only values that an `f32` holds.

use burn::tensor::{Device, Tensor, TensorData};

/// A matrix `[rows, columns]`, row-major.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Matrix {
    pub rows: usize,
    pub columns: usize,
    pub values: Vec<f64>,
}

impl Matrix {
    /// Makes a matrix from a value for each row and column, rounded to `f32`.
    pub(crate) fn from_function(
        rows: usize,
        columns: usize,
        value: impl Fn(usize, usize) -> f64,
    ) -> Self {
        let values = (0..rows * columns)
            .map(|i| f64::from(value(i / columns, i % columns) as f32))
            .collect();
        Self {
            rows,
            columns,
            values,
        }
    }

    /// Makes a matrix of numbers between -scale and scale. Equal seeds give equal numbers.
    pub(crate) fn random(seed: u64, rows: usize, columns: usize, scale: f64) -> Self {
        Self::from_function(rows, columns, |row, column| {
            // SplitMix64.
            let mut z = seed
                .wrapping_mul(0x9E37_79B9_7F4A_7C15)
                .wrapping_add((row * columns + column) as u64)
                .wrapping_add(1)
                .wrapping_mul(0x9E37_79B9_7F4A_7C15);
            z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            let unit = ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64;
            scale * (2.0 * unit - 1.0)
        })
    }

    pub(crate) fn at(&self, row: usize, column: usize) -> f64 {
        self.values[row * self.columns + column]
    }

    pub(crate) fn row(&self, row: usize) -> &[f64] {
        &self.values[row * self.columns..][..self.columns]
    }

    /// Returns the columns in this range.
    pub(crate) fn columns(&self, range: std::ops::Range<usize>) -> Self {
        Self::from_function(self.rows, range.len(), |r, c| self.at(r, range.start + c))
    }

    /// Returns the parts side by side.
    pub(crate) fn beside(parts: &[&Self]) -> Self {
        let rows = parts[0].rows;
        let values = (0..rows)
            .flat_map(|row| parts.iter().flat_map(move |part| part.row(row).to_vec()))
            .collect();
        let columns = parts.iter().map(|part| part.columns).sum();
        Self {
            rows,
            columns,
            values,
        }
    }

    /// Copies the matrix to a device, with autodiff if the device has it.
    pub(crate) fn on(&self, device: &Device) -> Tensor<2> {
        let values: Vec<f32> = self.values.iter().map(|x| *x as f32).collect();
        Tensor::from_data(TensorData::new(values, [self.rows, self.columns]), device)
    }

    /// Reads a tensor back to the host.
    pub(crate) fn read(tensor: Tensor<2>) -> Self {
        let [rows, columns] = tensor.dims();
        let values = tensor.into_data().iter::<f32>().map(f64::from).collect();
        Self {
            rows,
            columns,
            values,
        }
    }

    /// Returns Σ a·b.
    pub(crate) fn dot(&self, other: &Self) -> f64 {
        self.values
            .iter()
            .zip(&other.values)
            .map(|(a, b)| a * b)
            .sum()
    }

    /// Returns max|x|.
    pub(crate) fn largest(&self) -> f64 {
        self.values.iter().fold(0.0, |m: f64, x| m.max(x.abs()))
    }

    /// Returns the size to which differences are relative. It is at least a small number, because values that cancel keep the rounding error of
    /// their terms.
    pub(crate) fn scale(&self) -> f64 {
        self.largest().max(0.02)
    }

    /// Fails unless max|difference| ≤ allowed · max|reference|, and all values are finite.
    #[track_caller]
    pub(crate) fn assert_near(&self, reference: &Self, allowed: f64, name: &str) {
        assert_eq!(
            (self.rows, self.columns),
            (reference.rows, reference.columns),
            "{name}: shape"
        );
        let limit = allowed * reference.scale();
        for (i, (got, want)) in self.values.iter().zip(&reference.values).enumerate() {
            assert!(
                (got - want).abs() <= limit,
                "{name}: at ({}, {}) of [{}, {}] {got:e} instead of {want:e}, allowed is {limit:e}",
                i / self.columns,
                i % self.columns,
                self.rows,
                self.columns
            );
        }
    }
}
