use neb::{Noise, Purpose};

use super::*;

fn normal_columns(rows: usize, seed: u64) -> [Column; 2] {
    let sample = Noise::new(seed, Purpose::DrawX, 0).normal(rows, 2);
    [0, 1].map(|number| Column::of(sample.view().into(), number))
}

/// Area inside closed lines (shoelace).
fn area(lines: &[Vec<[f64; 2]>]) -> f64 {
    let signed = lines.iter().map(|line| {
        let pairs = line.iter().zip(line.iter().cycle().skip(1));
        0.5 * pairs.map(|(a, b)| a[0] * b[1] - b[0] * a[1]).sum::<f64>()
    });
    signed.sum::<f64>().abs()
}

/// For N(0, diag(1, 0.25)) the region of mass p is the ellipse of squared radius −2 ln(1 − p), of area 0.5 · 2π times that
/// over 2; checked on the exact density.
#[test]
fn contours_of_an_exact_normal_density_enclose_the_stated_mass() {
    let (x, y) = (Grid::new(-5.0, 5.0), Grid::new(-2.5, 2.5));
    let density = Density2 {
        x,
        y,
        values: (0..y.cells)
            .flat_map(|j| (0..x.cells).map(move |i| (i, j)))
            .map(|(i, j)| {
                let (u, v) = (x.middle(i), y.middle(j) / 0.5);
                (-0.5 * (u * u + v * v)).exp() / std::f64::consts::PI
            })
            .collect(),
    };
    for (mass, level) in MASSES.into_iter().zip(levels(&density.values, MASSES)) {
        let lines = density.contour(level);
        assert_eq!(lines.len(), 1);
        let squared = -2.0 * (1.0f64 - mass).ln();
        let exact = 0.5 * std::f64::consts::PI * squared;
        assert!(
            (area(&lines) / exact - 1.0).abs() < 0.01,
            "{mass}: {} against {exact}",
            area(&lines)
        );
        for [u, v] in &lines[0] {
            let radius = (u * u + 4.0 * v * v).sqrt();
            assert!(
                (radius - squared.sqrt()).abs() < 0.02,
                "{mass}: radius {radius}"
            );
        }
    }
}

/// The same from 100 000 draws. The kernel widens both variances by h², which is known and divided out; what is left is
/// noise of the contour, about 1 % of its area.
#[test]
fn contours_of_normal_draws_enclose_the_stated_mass() {
    let [first, second] = normal_columns(100_000, 1);
    let grids = [Grid::new(-6.0, 6.0); 2];
    let widths = Density2::widths([&first, &second], grids);
    let density = Density2::estimate([&first, &second], grids, widths);
    let widened = ((1.0 + widths[0].powi(2)) * (1.0 + widths[1].powi(2))).sqrt();
    for (mass, level) in MASSES.into_iter().zip(levels(&density.values, MASSES)) {
        let exact = -2.0 * (1.0f64 - mass).ln() * std::f64::consts::PI;
        let found = area(&density.contour(level)) / widened;
        assert!(
            (found / exact - 1.0).abs() < 0.05,
            "{mass}: {found} against {exact}"
        );
    }
}

/// Weights that turn a uniform sample into a triangle: the estimate is the triangle's density.
#[test]
fn a_weighted_density_is_that_of_the_weighted_law() {
    let uniform = Noise::new(3, Purpose::DrawX, 0).uniform(200_000, 1);
    let values: Vec<f64> = uniform.values().iter().map(|&v| f64::from(v)).collect();
    let weights = values.iter().map(|v| 7.0 * v).collect();
    let column = Column {
        values,
        weights: Some(weights),
    };
    let density = Density1::estimate(&column, Grid::new(-0.2, 1.2), 0.02);
    for (cell, value) in density.values.iter().enumerate() {
        let x = density.grid.middle(cell);
        if (0.1..0.9).contains(&x) {
            assert!((value - 2.0 * x).abs() < 0.06, "{value} at {x}");
        }
    }
}

/// Two peaks of width 0.01, one unit apart: Scott's rule would smear them over a tenth of their distance.
#[test]
fn separate_narrow_modes_stay_narrow() {
    let [first, second] = normal_columns(10_000, 2).map(|column| {
        let each = column.values.iter().enumerate();
        Column::new(each.map(|(row, v)| 0.01 * v + (row % 2) as f64).collect())
    });
    let widths = Density2::widths([&first, &second], [Grid::new(-0.5, 1.5); 2]);
    let scott = first.scale() * 10_000f64.powf(-1.0 / 6.0);
    assert!(
        widths[0] < 0.015 && scott > 0.05,
        "{widths:?}, Scott {scott}"
    );
}

#[test]
fn densities_integrate_to_one() {
    let [first, second] = normal_columns(5000, 4);
    let grid = Grid::new(-6.0, 6.0);
    let one = Density1::estimate(&first, grid, 0.2);
    assert!((one.values.iter().sum::<f64>() * grid.step - 1.0).abs() < 1e-6);
    let two = Density2::estimate([&first, &second], [grid; 2], [0.2; 2]);
    assert!((two.values.iter().sum::<f64>() * grid.step * grid.step - 1.0).abs() < 1e-6);
}
