//! Fewer points for the same curve (Ramer, Douglas and Peucker): a contour of hundreds of cells needs some tens of points
//! to look the same.

/// How far a dropped point may lie from the line, in pixels.
const TOLERANCE: f64 = 0.06;

/// A closed line without the points that nobody would miss.
pub(crate) fn simplify(line: Vec<[f64; 2]>) -> Vec<[f64; 2]> {
    if line.len() < 5 {
        return line;
    }
    let mut keep = vec![false; line.len()];
    let (last, half) = (line.len() - 1, line.len() / 2);
    for corner in [0, half, last] {
        keep[corner] = true;
    }
    let mut open = vec![(0, half), (half, last)];
    while let Some((first, last)) = open.pop() {
        let between = first + 1..last;
        let distance = |&index: &usize| from_line(line[index], line[first], line[last]);
        let farthest = between.max_by(|a, b| distance(a).total_cmp(&distance(b)));
        if let Some(middle) = farthest.filter(|index| distance(index) > TOLERANCE) {
            keep[middle] = true;
            open.push((first, middle));
            open.push((middle, last));
        }
    }
    let kept = line.into_iter().zip(keep).filter(|(_, keep)| *keep);
    kept.map(|(point, _)| point).collect()
}

/// Distance of a point from the piece of line between `a` and `b`.
fn from_line(point: [f64; 2], a: [f64; 2], b: [f64; 2]) -> f64 {
    let (dx, dy) = (b[0] - a[0], b[1] - a[1]);
    let (px, py) = (point[0] - a[0], point[1] - a[1]);
    let square = dx * dx + dy * dy;
    let along = if square > 0.0 {
        ((px * dx + py * dy) / square).clamp(0.0, 1.0)
    } else {
        0.0
    };
    (px - along * dx).hypot(py - along * dy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_circle_keeps_its_shape_with_fewer_points() {
        let angle = |step: usize| step as f64 * std::f64::consts::TAU / 600.0;
        let circle: Vec<[f64; 2]> = (0..=600)
            .map(|step| [50.0 * angle(step).cos(), 50.0 * angle(step).sin()])
            .collect();
        let simple = simplify(circle.clone());
        assert!(simple.len() < 120, "{} points", simple.len());
        for point in circle {
            let nearest = simple
                .windows(2)
                .map(|pair| from_line(point, pair[0], pair[1]))
                .fold(f64::INFINITY, f64::min);
            assert!(nearest <= TOLERANCE);
        }
    }
}
