//! One regression tree on binned columns, grown leaf by leaf where the gain is greatest.
//!
//! With the sums G = Σ g and H = Σ h of the loss' first and second derivatives over the rows of a leaf, the
//! best value of the leaf is −G / (H + λ), and a split gains
//!
//! > G_l² / (H_l + λ) + G_r² / (H_r + λ) − G² / (H + λ).
//!
//! The sums per bin (the histogram) are counted for the smaller child only: parent minus smaller is larger.

use std::ops::Range;

use rayon::prelude::*;

use super::bins::Cuts;
use crate::Rows;

/// A split must leave at least this much curvature H on each side.
const MIN_CURVATURE: f64 = 1e-3;
/// Leaves with fewer counts (rows × columns) than this are counted on one thread.
const PARALLEL_COUNTS: usize = 1 << 17;

/// Limits on the growth of a tree.
#[derive(Clone, Copy, Debug)]
pub(super) struct Growth {
    pub(super) max_leaves: usize,
    pub(super) min_rows: usize,
    pub(super) l2: f64,
    pub(super) shrinkage: f64,
}

/// First and second derivative of the loss of one row with respect to its score.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Slope {
    pub(super) gradient: f32,
    pub(super) curvature: f32,
}

/// Sums over some rows.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    gradient: f64,
    curvature: f64,
    rows: u64,
}

impl Sums {
    fn add(&mut self, slope: Slope) {
        self.gradient += f64::from(slope.gradient);
        self.curvature += f64::from(slope.curvature);
        self.rows += 1;
    }

    fn plus(self, other: Self) -> Self {
        Self {
            gradient: self.gradient + other.gradient,
            curvature: self.curvature + other.curvature,
            rows: self.rows + other.rows,
        }
    }

    fn minus(self, other: Self) -> Self {
        Self {
            gradient: self.gradient - other.gradient,
            curvature: self.curvature - other.curvature,
            rows: self.rows - other.rows,
        }
    }

    /// Twice what the best constant takes off the loss of these rows.
    fn gain(self, l2: f64) -> f64 {
        self.gradient * self.gradient / (self.curvature + l2)
    }
}

/// Sums per bin, one list per column.
type Histogram = Vec<Vec<Sums>>;

#[derive(Clone, Copy, Debug)]
struct Split {
    col: usize,
    bin: usize,
    gain: f64,
    left: Sums,
}

/// A leaf that may still be split.
struct Leaf {
    node: usize,
    /// Its rows, as a range of the grower's `order`.
    rows: Range<usize>,
    sums: Sums,
    histogram: Histogram,
    split: Option<Split>,
}

#[derive(Debug)]
enum Node {
    Leaf(f32),
    Branch {
        col: usize,
        threshold: f32,
        left: usize,
        right: usize,
    },
}

/// A tree over the original (not binned) values.
#[derive(Debug)]
pub(super) struct Tree {
    nodes: Vec<Node>,
}

impl Tree {
    /// The value of the leaf that this row falls into.
    pub(super) fn value(&self, row: &[f32]) -> f32 {
        let mut node = 0;
        loop {
            match self.nodes[node] {
                Node::Leaf(value) => return value,
                Node::Branch {
                    col,
                    threshold,
                    left,
                    right,
                } => node = if row[col] <= threshold { left } else { right },
            }
        }
    }

    /// Adds the tree's value of every row to its score.
    pub(super) fn add_to(&self, x: Rows, scores: &mut [f32]) {
        for (row, score) in scores.iter_mut().enumerate() {
            *score += self.value(x.row(row));
        }
    }
}

/// Grows trees on the same binned rows, again and again.
pub(super) struct Grower<'a> {
    cuts: &'a Cuts,
    columns: Vec<Vec<u8>>,
    growth: Growth,
    /// Row numbers; the rows of a leaf are consecutive.
    order: Vec<u32>,
    scratch: Vec<u32>,
}

impl<'a> Grower<'a> {
    pub(super) fn new(cuts: &'a Cuts, x: Rows, growth: Growth) -> Self {
        Self {
            cuts,
            columns: cuts.bin_columns(x),
            growth,
            order: (0..x.rows() as u32).collect(),
            scratch: Vec::with_capacity(x.rows()),
        }
    }

    /// Grows one tree and adds its values to the scores of its rows; nothing if no split gains anything.
    pub(super) fn grow(&mut self, slopes: &[Slope], scores: &mut [f32]) -> Option<Tree> {
        for (row, entry) in self.order.iter_mut().enumerate() {
            *entry = row as u32;
        }
        let mut sums = Sums::default();
        slopes.iter().for_each(|&slope| sums.add(slope));
        let histogram = self.count(&self.order, slopes);
        let mut leaves = vec![Leaf {
            node: 0,
            rows: 0..self.order.len(),
            sums,
            split: self.best_split(&histogram, sums),
            histogram,
        }];
        let mut nodes = vec![Node::Leaf(0.0)];
        while leaves.len() < self.growth.max_leaves {
            let Some(index) = most_gain(&leaves) else {
                break;
            };
            let parent = leaves.swap_remove(index);
            let last = leaves.len() + 2 == self.growth.max_leaves;
            let children = self.split(parent, slopes, &mut nodes, !last);
            leaves.extend(children);
        }
        if leaves.len() == 1 {
            return None;
        }
        for leaf in leaves {
            let step = -leaf.sums.gradient / (leaf.sums.curvature + self.growth.l2);
            let value = (self.growth.shrinkage * step) as f32;
            nodes[leaf.node] = Node::Leaf(value);
            for &row in &self.order[leaf.rows] {
                scores[row as usize] += value;
            }
        }
        Some(Tree { nodes })
    }

    /// Replaces a leaf by a branch with two leaves; `further` if these may be split again.
    fn split(
        &mut self,
        parent: Leaf,
        slopes: &[Slope],
        nodes: &mut Vec<Node>,
        further: bool,
    ) -> [Leaf; 2] {
        let split = parent.split.expect("only leaves with a split are chosen");
        let middle = self.partition(parent.rows.clone(), split);
        let (left, right) = (nodes.len(), nodes.len() + 1);
        nodes.extend([Node::Leaf(0.0), Node::Leaf(0.0)]);
        nodes[parent.node] = Node::Branch {
            col: split.col,
            threshold: self.cuts.upper(split.col, split.bin),
            left,
            right,
        };
        let leaf = |node, rows, sums| Leaf {
            node,
            rows,
            sums,
            histogram: Histogram::new(),
            split: None,
        };
        let mut children = [
            leaf(left, parent.rows.start..middle, split.left),
            leaf(
                right,
                middle..parent.rows.end,
                parent.sums.minus(split.left),
            ),
        ];
        if further {
            self.count_children(parent.histogram, &mut children, slopes);
        }
        children
    }

    /// Histograms and best splits of two leaves, from their parent's histogram.
    fn count_children(&self, parent: Histogram, children: &mut [Leaf; 2], slopes: &[Slope]) {
        let smaller = usize::from(children[1].rows.len() < children[0].rows.len());
        let counted = self.count(&self.order[children[smaller].rows.clone()], slopes);
        let mut rest = parent;
        for (rest, counted) in rest.iter_mut().zip(&counted) {
            for (rest, &counted) in rest.iter_mut().zip(counted) {
                *rest = rest.minus(counted);
            }
        }
        children[smaller].histogram = counted;
        children[1 - smaller].histogram = rest;
        for child in children {
            child.split = self.best_split(&child.histogram, child.sums);
        }
    }

    /// Moves the rows left of the split to the front, keeping the order of each side; where the right begins.
    fn partition(&mut self, rows: Range<usize>, split: Split) -> usize {
        let column = &self.columns[split.col];
        self.scratch.clear();
        let mut middle = rows.start;
        for at in rows.clone() {
            let row = self.order[at];
            if usize::from(column[row as usize]) <= split.bin {
                self.order[middle] = row;
                middle += 1;
            } else {
                self.scratch.push(row);
            }
        }
        self.order[middle..rows.end].copy_from_slice(&self.scratch);
        middle
    }

    fn count(&self, rows: &[u32], slopes: &[Slope]) -> Histogram {
        let count = |(col, column): (usize, &Vec<u8>)| {
            let mut bins = vec![Sums::default(); self.cuts.bins(col)];
            for &row in rows {
                bins[usize::from(column[row as usize])].add(slopes[row as usize]);
            }
            bins
        };
        if rows.len() * self.columns.len() < PARALLEL_COUNTS {
            self.columns.iter().enumerate().map(count).collect()
        } else {
            self.columns.par_iter().enumerate().map(count).collect()
        }
    }

    fn best_split(&self, histogram: &Histogram, sums: Sums) -> Option<Split> {
        let Growth { min_rows, l2, .. } = self.growth;
        if (sums.rows as usize) < 2 * min_rows {
            return None;
        }
        let enough = |part: Sums| part.rows as usize >= min_rows && part.curvature >= MIN_CURVATURE;
        let parent = sums.gain(l2);
        let mut best: Option<Split> = None;
        let mut most = parent;
        for (col, bins) in histogram.iter().enumerate() {
            let mut left = Sums::default();
            for (bin, &entry) in bins[..bins.len() - 1].iter().enumerate() {
                left = left.plus(entry);
                let right = sums.minus(left);
                if !enough(left) || !enough(right) {
                    continue;
                }
                // Both fractions on one denominator: a division only where the best changes.
                let (below_l, below_r) = (left.curvature + l2, right.curvature + l2);
                let above = left.gradient.powi(2) * below_r + right.gradient.powi(2) * below_l;
                if above > most * below_l * below_r {
                    most = above / (below_l * below_r);
                    best = Some(Split {
                        col,
                        bin,
                        gain: most - parent,
                        left,
                    });
                }
            }
        }
        best
    }
}

/// The leaf whose split gains most; the first of equals.
fn most_gain(leaves: &[Leaf]) -> Option<usize> {
    let mut best: Option<(usize, f64)> = None;
    for (index, leaf) in leaves.iter().enumerate() {
        if let Some(split) = leaf.split
            && best.is_none_or(|(_, gain)| split.gain > gain)
        {
            best = Some((index, split.gain));
        }
    }
    best.map(|(index, _)| index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Matrix, Noise, Purpose};

    fn growth() -> Growth {
        Growth {
            max_leaves: 2,
            min_rows: 5,
            l2: 0.5,
            shrinkage: 1.0,
        }
    }

    fn random_slopes(x: &Matrix) -> Vec<Slope> {
        let noise = Noise::new(4, Purpose::Test, 1).uniform(x.rows(), 2);
        (0..x.rows())
            .map(|row| Slope {
                gradient: noise.row(row)[0] - 0.5 + 0.4 * x.row(row)[1],
                curvature: 0.1 + noise.row(row)[1],
            })
            .collect()
    }

    /// Against a search through every cut between neighbouring values, summed afresh each time.
    #[test]
    fn one_split_is_the_best_of_all() {
        let x = Noise::new(3, Purpose::Test, 0).normal(60, 3);
        let slopes = random_slopes(&x);
        let value = |rows: &[usize]| {
            let sum =
                |part: fn(&Slope) -> f32| rows.iter().map(|&r| f64::from(part(&slopes[r]))).sum();
            let (g, h): (f64, f64) = (sum(|s| s.gradient), sum(|s| s.curvature));
            (g * g / (h + 0.5), -g / (h + 0.5))
        };
        let mut best = (f64::MIN, Vec::new(), Vec::new());
        for col in 0..3 {
            for pivot in 0..60 {
                let (left, right): (Vec<usize>, Vec<usize>) =
                    (0..60).partition(|&row| x.row(row)[col] <= x.row(pivot)[col]);
                if left.len() < 5 || right.len() < 5 {
                    continue;
                }
                let gain = value(&left).0 + value(&right).0;
                if gain > best.0 {
                    best = (gain, left, right);
                }
            }
        }
        let cuts = Cuts::at_quantiles(x.view(), 255);
        let mut scores = vec![0.0; 60];
        let tree = Grower::new(&cuts, x.view(), growth())
            .grow(&slopes, &mut scores)
            .expect("the gradient depends on column 1");
        for rows in [&best.1, &best.2] {
            for &row in rows {
                assert!((f64::from(scores[row]) - value(rows).1).abs() < 1e-6);
                assert_eq!(tree.value(x.row(row)), scores[row]);
            }
        }
    }

    /// The histograms of larger children come by subtraction: the leaf values must still be −G / (H + λ) of
    /// the rows that the finished tree sends there.
    #[test]
    fn leaf_values_are_those_of_their_rows() {
        let x = Noise::new(3, Purpose::Test, 2).normal(2000, 3);
        let slopes = random_slopes(&x);
        let cuts = Cuts::at_quantiles(x.view(), 64);
        let mut scores = vec![0.0; 2000];
        let deep = Growth {
            max_leaves: 31,
            ..growth()
        };
        let tree = Grower::new(&cuts, x.view(), deep)
            .grow(&slopes, &mut scores)
            .expect("the gradient depends on column 1");
        let mut leaves = std::collections::BTreeMap::<u32, (f64, f64, usize)>::new();
        for row in 0..2000 {
            let value = tree.value(x.row(row));
            assert_eq!(value, scores[row]);
            let sums = leaves.entry(value.to_bits()).or_default();
            sums.0 += f64::from(slopes[row].gradient);
            sums.1 += f64::from(slopes[row].curvature);
            sums.2 += 1;
        }
        assert_eq!(leaves.len(), 31);
        for (bits, (g, h, rows)) in leaves {
            assert!((f64::from(f32::from_bits(bits)) + g / (h + 0.5)).abs() < 1e-6);
            assert!(rows >= 5);
        }
    }
}
