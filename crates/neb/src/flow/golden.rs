//! Flows against the outputs of the authors' PyTorch code (`tests/golden`, evaluated there in float64).
//!
//! Deviations are relative to an array's norm; `--nocapture` prints them.

mod coupling;
mod umnn;

use std::collections::BTreeMap;

use neb_data::Dataset;

use crate::Matrix;
use crate::density::ConditionalDensity;
use crate::flow::stack::Flow;
use crate::kernel::{LANES, Lane, tile};

/// float32 here against float64 there, through some ten layers of networks.
const TOLERANCE: f64 = 1e-5;

/// One golden file, and how far we are from it.
struct Golden {
    dataset: Dataset,
    deviations: BTreeMap<String, f64>,
}

impl Golden {
    fn open(name: &str) -> Self {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");
        Self {
            dataset: Dataset::open(format!("{folder}/{name}.npz")).expect("golden file"),
            deviations: BTreeMap::new(),
        }
    }

    fn has(&self, name: &str) -> bool {
        self.dataset.names().contains(&name)
    }

    fn values(&self, name: &str) -> Vec<f32> {
        self.dataset.array(name).expect("golden array").values
    }

    fn matrix(&self, name: &str) -> Matrix {
        let array = self.dataset.array(name).expect("golden array");
        let [_, cols] = array.shape[..] else {
            panic!("`{name}` is no matrix");
        };
        Matrix::from_vec(array.values, cols)
    }

    /// Sets the parameters of `flow` to the arrays `group/tensor`.
    fn load(&self, flow: &mut Flow, group: &str) {
        for tensor in flow.layout().tensors().to_vec() {
            let values = self.values(&format!("{group}/{}", tensor.name));
            flow.parameters_mut()[tensor.range()].copy_from_slice(&values);
        }
        flow.refresh();
    }

    /// Compares with an array.
    fn compare(&mut self, name: &str, found: &[f32]) {
        let wanted = self.values(name);
        self.compare_values(name, found, &wanted);
    }

    fn compare_values(&mut self, name: &str, found: &[f32], wanted: &[f32]) {
        assert_eq!(found.len(), wanted.len(), "{name}");
        let norm = |values: &mut dyn Iterator<Item = f64>| values.map(|v| v * v).sum::<f64>();
        let differences = found.iter().zip(wanted);
        let error = norm(&mut differences.map(|(&f, &w)| f64::from(f) - f64::from(w)));
        let size = norm(&mut wanted.iter().map(|&w| f64::from(w)));
        assert!(size > 0.0, "{name} is zero");
        let deviation = (error / size).sqrt();
        self.deviations.insert(name.to_owned(), deviation);
    }

    /// Compares the tensors of a flat gradient, times `sign`, with the arrays `group/tensor`.
    fn compare_gradient(&mut self, group: &str, flow: &Flow, gradient: &[f32], sign: f32) {
        for tensor in flow.layout().tensors() {
            let found: Vec<f32> = gradient[tensor.range()].iter().map(|g| g * sign).collect();
            self.compare(&format!("{group}/{}", tensor.name), &found);
        }
    }

    /// Prints the worst deviation of each group of arrays and asserts that all are within their tolerance.
    fn settle(self, tolerance: impl Fn(&str) -> f64) {
        let mut worst: BTreeMap<&str, (f64, &str)> = BTreeMap::new();
        for (name, &deviation) in &self.deviations {
            let group = name.split('/').next().unwrap_or(name);
            let entry = worst.entry(group).or_insert((0.0, name));
            if deviation >= entry.0 {
                *entry = (deviation, name);
            }
        }
        println!(
            "{}",
            self.dataset
                .path()
                .file_name()
                .unwrap_or_default()
                .display()
        );
        for (deviation, name) in worst.values() {
            println!("  {deviation:.1e} {name}");
        }
        for (name, &deviation) in &self.deviations {
            assert!(
                deviation < tolerance(name),
                "{name}: off by {deviation:.1e} of its norm"
            );
        }
    }
}

/// Runs `pass` on tile after tile of both tables; what it leaves in the first tile goes to the rows of the result.
fn by_tiles(
    v: &Matrix,
    context: Option<&Matrix>,
    mut pass: impl FnMut(&mut [Lane], &mut [Lane], usize),
) -> Matrix {
    let mut out = v.clone();
    let mut lanes = vec![Lane::ZERO; v.cols()];
    let mut context_lanes = vec![Lane::ZERO; context.map_or(0, Matrix::cols)];
    for first in (0..v.rows()).step_by(LANES) {
        tile::load(v.view(), first, &mut lanes);
        if let Some(context) = context {
            tile::load(context.view(), first, &mut context_lanes);
        }
        pass(&mut lanes, &mut context_lanes, first);
        for lane in 0..LANES.min(v.rows() - first) {
            for (value, unit) in out.row_mut(first + lane).iter_mut().zip(&lanes) {
                *value = unit.0[lane];
            }
        }
    }
    out
}
