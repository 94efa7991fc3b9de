//! Runs of one product with each tile of the planner's table, which `benches/tiles.rs` measures.

use super::{by_plans, planner};
use crate::ops::format::Format;
use crate::ops::gpu::format::converted;
use crate::ops::linear::fused_gpu::epilogue::Epilogue;
use crate::ops::linear::planner::Problem;
use crate::ops::primitive;
use burn::backend::Cube;
use burn::tensor::{DType, Device, Tensor, TensorData};

/// A run of one product with one tile.
pub struct TileRun {
    /// The sizes of the tile, the number of slices of a step, and the number of parts of the inner dimension.
    pub name: String,
    /// True if the planner chooses this tile.
    pub planned: bool,
    launch: Box<dyn Fn()>,
}

impl TileRun {
    /// Launches the product, and then the sum of its parts.
    pub fn launch(&self) {
        (self.launch)();
    }
}

/// Returns runs of a product of these sizes (rows, columns, inner dimension) for every tile that the device allows, each in several numbers of
/// parts. A and B may be stored transposed.
pub fn tile_runs(
    device: &Device,
    format: Format,
    sizes: [usize; 3],
    [a_transposed, b_transposed]: [bool; 2],
) -> Vec<TileRun> {
    let [rows, columns, inner] = sizes;
    let problem = Problem::new(sizes, a_transposed, b_transposed);
    let [a, b] = [rows * inner, inner * columns].map(|count| {
        let values: Vec<f32> = (0..count).map(|i| (i % 61) as f32 / 61.0 - 0.5).collect();
        let data = TensorData::new(values, [1, count]);
        let tensor = primitive::<Cube>(Tensor::<2>::from_data(data, device)); // [1, count]
        match format {
            Format::Native => converted(tensor, DType::F16),
            Format::Full | Format::Split | Format::Emulated(_) => tensor,
        }
    });
    let planner = planner(&[problem], format, &a);
    let planned = planner.planned(&problem);
    planner
        .candidates(&problem)
        .into_iter()
        .map(|plan| {
            let a = a.clone();
            let b = b.clone();
            TileRun {
                name: format!(
                    "{:?}, step {}, {} slices, {} parts",
                    plan.tile, plan.step, plan.slices, plan.splits
                ),
                planned: plan == planned,
                launch: Box::new(move || {
                    let then = [Epilogue::Plain];
                    drop(by_plans(planner, [plan], [[&a, &b]], then, [problem]));
                }),
            }
        })
        .collect()
}
