//! A small network that tells two samples apart.
//!
//! The score s(x) is a multilayer perceptron of the standardised columns, trained by Adam on the weighted logistic loss
//! w · log(1 + e^(∓s)) through the one training loop; its weights are those of the best held-out loss. The scores of a few
//! networks, each with other rows held out, are averaged: weak differences stand out better.
//!
//! [`Network::of_the_authors`] is what the paper's authors judged with, to compare with their tables: raw columns, gradient
//! descent with momentum, one network of 10d × 10d rectifiers. It misses differences that the default sees.

use std::ops::ControlFlow;
use std::path::Path;

use rayon::prelude::*;

use super::classifier::{Classifier, Scorer};
use crate::kernel::{LANES, Lane, tile};
use crate::nn::activation::Activation;
use crate::nn::adam::AdamConfig;
use crate::nn::mlp::{Mlp, MlpGradient, MlpTape, Shape};
use crate::nn::parameters::Layout;
use crate::nn::schedule::Schedule;
use crate::store::{Store, TensorData};
use crate::train::{self, Objective, TrainConfig};
use crate::{Error, Matrix, MatrixMut, Noise, Purpose, Result, Rows};

/// Rows that are scored in one piece.
const SCORED_ROWS: usize = 1024;

/// Settings of the network.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Network {
    /// Units of the hidden layers.
    pub hidden: Vec<usize>,
    /// Most passes over the rows.
    pub epochs: usize,
    /// Rows in a minibatch; fewer where there are few rows.
    pub batch: usize,
    /// Learning rate, which falls to zero as half a cosine.
    pub rate: f64,
    /// Weight decay.
    pub weight_decay: f32,
    /// Part of the rows held out to choose the epoch.
    pub held_out: f64,
    /// Epochs without a better held-out loss before stopping.
    pub patience: usize,
    /// Networks, each with other rows held out, whose scores are averaged.
    pub members: usize,
    /// Function between the layers.
    pub activation: Activation,
    /// Whether the columns are brought to mean 0 and deviation 1.
    pub standardised: bool,
    /// Adam with a falling rate; else descent with momentum 0.9 at a constant rate, which is then that of the mean gradient.
    pub adaptive: bool,
}

impl Default for Network {
    fn default() -> Self {
        Self {
            hidden: vec![64, 64],
            epochs: 40,
            batch: 256,
            rate: 5e-3,
            weight_decay: 1e-4,
            held_out: 0.1,
            patience: 8,
            members: 2,
            activation: Activation::Relu,
            standardised: true,
            adaptive: true,
        }
    }
}

impl Classifier for Network {
    fn name(&self) -> &'static str {
        "network"
    }

    fn fit(&self, x: Rows, second: &[bool], weight: &[f32], seed: u64) -> Result<Scorer> {
        let committee = self.fit_committee(x, second, weight, seed)?;
        Ok(Box::new(move |x| committee.log_odds(x)))
    }
}

/// Fitted networks, whose mean is the score.
pub(crate) struct Committee {
    settings: Network,
    mean: Vec<f32>,
    inverse: Vec<f32>,
    members: Vec<Member>,
}

impl Committee {
    /// Log-odds that a row is of the second sample, row by row.
    pub(crate) fn log_odds(&self, x: Rows) -> Vec<f32> {
        let mut mean = vec![0.0; x.rows()];
        let x = self.standardise(x);
        for member in &self.members {
            member.add_scores(x.view(), 1.0 / self.members.len() as f32, &mut mean);
        }
        mean
    }

    /// Adds weight_k times the gradient of the log-odds at x_k to row k of `dx`.
    pub(crate) fn add_gradient(&self, x: Rows, weight: &[f32], mut dx: MatrixMut) {
        let x = self.standardise(x);
        let share = 1.0 / self.members.len() as f32;
        for member in &self.members {
            let mut pass = Pass::new(member, x.cols());
            let mut tape = member.mlp.new_tape();
            let mut d_input = vec![Lane::ZERO; x.cols()];
            let mut d_share = vec![Lane::ZERO; member.mlp.share_len()];
            for first in (0..x.rows()).step_by(LANES) {
                tile::load(x.view(), first, &mut pass.input);
                pass.score(member, &mut tape, true);
                let mut slope = Lane::ZERO;
                let rows = LANES.min(x.rows() - first);
                let weights = &weight[first..first + rows];
                for (slope, weight) in slope.0.iter_mut().zip(weights) {
                    *slope = share * weight;
                }
                let input = &pass.input;
                let (mlp, tape) = (&member.mlp, &mut tape);
                mlp.backward(input, &[slope], tape, &mut d_input, &mut d_share, None);
                for lane in 0..rows {
                    for (d, dx) in dx.row_mut(first + lane).iter_mut().enumerate() {
                        *dx += d_input[d].0[lane] * self.inverse[d];
                    }
                }
            }
        }
    }

    fn standardise(&self, x: Rows) -> Matrix {
        standardise(x, &self.mean, &self.inverse)
    }

    /// Writes the networks to a file of this kind.
    pub(crate) fn save(&self, kind: &str, path: &Path) -> Result<()> {
        let form = Form {
            settings: self.settings.clone(),
            columns: self.mean.len(),
        };
        let mut store = Store::new(kind, &form)?;
        store.push(TensorData::flat("mean", &self.mean));
        store.push(TensorData::flat("inverse", &self.inverse));
        for (number, member) in self.members.iter().enumerate() {
            let name = format!("member.{number}");
            store.push(TensorData::flat(&name, &member.parameters));
        }
        store.save(path)
    }

    /// Reads what [`Self::save`] wrote.
    pub(crate) fn load(kind: &str, path: &Path) -> Result<Self> {
        let mut store = Store::load(path, kind)?;
        let form: Form = store.config()?;
        let members = (0..form.settings.members).map(|number| {
            let (mut mlp, layout) = Member::lay_out(form.columns, &form.settings);
            let parameters = store.take(&format!("member.{number}"), &[layout.len()])?;
            mlp.pack(&parameters);
            Ok(Member { mlp, parameters })
        });
        Ok(Self {
            members: members.collect::<Result<_>>()?,
            mean: store.take("mean", &[form.columns])?,
            inverse: store.take("inverse", &[form.columns])?,
            settings: form.settings,
        })
    }
}

/// What a file of networks is made of, without its numbers.
#[derive(serde::Serialize, serde::Deserialize)]
struct Form {
    settings: Network,
    columns: usize,
}

fn standardise(x: Rows, mean: &[f32], inverse: &[f32]) -> Matrix {
    Matrix::from_fn(x.rows(), x.cols(), |row, col| {
        (x.row(row)[col] - mean[col]) * inverse[col]
    })
}

impl Network {
    /// For probabilities rather than verdicts: its score is smooth in x. It sees edges later than the default does.
    pub fn smooth() -> Self {
        Self {
            activation: Activation::Silu,
            rate: 3e-3,
            ..Self::default()
        }
    }

    /// The authors' judge of samples with so many columns: scikit-learn's `MLPClassifier` with stochastic gradient descent
    /// (rate 0.001, momentum 0.9, batches of 200, at most 200 epochs). It stops on a held-out tenth, theirs on the training loss.
    pub fn of_the_authors(columns: usize) -> Self {
        Self {
            hidden: vec![10 * columns; 2],
            epochs: 200,
            batch: 200,
            rate: 1e-2,
            patience: 10,
            members: 1,
            activation: Activation::Relu,
            standardised: false,
            adaptive: false,
            ..Self::default()
        }
    }

    /// The fitted networks themselves, which also know the slope of their score.
    pub(crate) fn fit_committee(
        &self,
        x: Rows,
        second: &[bool],
        weight: &[f32],
        seed: u64,
    ) -> Result<Committee> {
        if self.hidden.is_empty() || self.members == 0 {
            return Err(Error::input(
                format!(
                    "a classifier of {} networks with {} hidden layers",
                    self.members,
                    self.hidden.len()
                ),
                "use at least one of each",
            ));
        }
        let rows = Labelled::new(x, second, weight, self.standardised);
        let members = (0..self.members as u64)
            .into_par_iter()
            .map(|member| {
                let seed = Noise::new(seed, Purpose::Initialise, member).stream(0);
                self.fit_member(&rows, seed)
            })
            .collect::<Result<Vec<Member>>>()?;
        Ok(Committee {
            settings: self.clone(),
            mean: rows.mean,
            inverse: rows.inverse,
            members,
        })
    }

    fn fit_member(&self, rows: &Labelled, mut stream: crate::Stream) -> Result<Member> {
        let mut member = Member::new(rows.x.cols(), self, &mut stream);
        let count = rows.x.rows();
        let config = TrainConfig {
            epochs: self.epochs,
            batch: self.batch.min((count / 20).max(8)),
            rate: self.rate,
            schedule: match self.adaptive {
                true => Schedule::Cosine { warm_up: 0.05 },
                false => Schedule::Constant,
            },
            adam: AdamConfig {
                weight_decay: self.weight_decay,
                clip_norm: 5.0,
                adaptive: self.adaptive,
                ..AdamConfig::default()
            },
            held_out: self.held_out,
            patience: self.patience,
        };
        let mut objective = LogisticLoss {
            tape: member.mlp.new_tape(),
            sums: member.mlp.new_gradient(),
            member: &mut member,
            rows,
        };
        let seed = stream.below(usize::MAX) as u64;
        let watch = &mut |_: &train::Progress| ControlFlow::Continue(());
        train::train(&mut objective, &config, seed, None, watch)?;
        Ok(member)
    }
}

/// Rows, standardised or as they are, with their labels (as the signs −1 and +1) and weights.
struct Labelled {
    mean: Vec<f32>,
    inverse: Vec<f32>,
    x: Matrix,
    signs: Vec<f32>,
    weights: Vec<f32>,
}

impl Labelled {
    fn new(x: Rows, second: &[bool], weight: &[f32], standardised: bool) -> Self {
        let count = x.rows() as f64;
        let (mut mean, mut inverse) = (Vec::new(), Vec::new());
        for col in 0..x.cols() {
            if !standardised {
                mean.push(0.0);
                inverse.push(1.0);
                continue;
            }
            let column = (0..x.rows()).map(|row| f64::from(x.row(row)[col]));
            let centre = column.clone().sum::<f64>() / count;
            let variance = column.map(|v| (v - centre).powi(2)).sum::<f64>() / count;
            mean.push(centre as f32);
            // A constant column says nothing, whatever its scale.
            inverse.push(if variance > 0.0 {
                variance.sqrt().recip() as f32
            } else {
                0.0
            });
        }
        let sign = |&second: &bool| if second { 1.0 } else { -1.0 };
        let mut rows = Self {
            mean,
            inverse,
            x: Matrix::default(),
            signs: second.iter().map(sign).collect(),
            weights: weight.to_vec(),
        };
        rows.x = standardise(x, &rows.mean, &rows.inverse);
        rows
    }
}

/// One network.
struct Member {
    mlp: Mlp,
    parameters: Vec<f32>,
}

impl Member {
    /// A network whose parameters are yet to come, and where they are.
    fn lay_out(inputs: usize, settings: &Network) -> (Mlp, Layout) {
        let mut layout = Layout::default();
        let shape = Shape {
            free: inputs,
            context: 0,
            hidden: settings.hidden.clone(),
            outputs: 1,
            activation: settings.activation,
        };
        let mlp = Mlp::new(shape, &mut layout, |l| format!("layers.{l}"));
        (mlp, layout)
    }

    fn new(inputs: usize, settings: &Network, stream: &mut crate::Stream) -> Self {
        let (mut mlp, layout) = Self::lay_out(inputs, settings);
        let mut parameters = vec![0.0; layout.len()];
        mlp.initialise(1.0, stream, &mut parameters);
        mlp.pack(&parameters);
        Self { mlp, parameters }
    }

    /// Adds the scores of standardised rows, times a factor.
    fn add_scores(&self, x: Rows, factor: f32, scores: &mut [f32]) {
        scores
            .par_chunks_mut(SCORED_ROWS)
            .enumerate()
            .for_each(|(chunk, scores)| {
                let mut pass = Pass::new(self, x.cols());
                let mut tape = self.mlp.new_tape();
                for (t, scores) in scores.chunks_mut(LANES).enumerate() {
                    tile::load(x, chunk * SCORED_ROWS + t * LANES, &mut pass.input);
                    let score = pass.score(self, &mut tape, false);
                    for (out, score) in scores.iter_mut().zip(score.0) {
                        *out += factor * score;
                    }
                }
            });
    }
}

/// Memory of one tile's pass.
struct Pass {
    input: Vec<Lane>,
    share: Vec<Lane>,
    out: [Lane; 1],
}

impl Pass {
    fn new(member: &Member, inputs: usize) -> Self {
        let mut share = vec![Lane::ZERO; member.mlp.share_len()];
        member.mlp.share(&[], &mut share);
        Self {
            input: vec![Lane::ZERO; inputs],
            share,
            out: [Lane::ZERO],
        }
    }

    fn score(&mut self, member: &Member, tape: &mut MlpTape, taped: bool) -> Lane {
        member
            .mlp
            .forward(&self.input, &self.share, &mut self.out, tape, taped);
        self.out[0]
    }
}

/// The weighted logistic loss of a network.
struct LogisticLoss<'a> {
    member: &'a mut Member,
    rows: &'a Labelled,
    tape: MlpTape,
    sums: MlpGradient,
}

impl LogisticLoss<'_> {
    /// Sum of the loss over rows; with `scale`, also adds the gradient of the loss times it to the sums.
    fn sum(&mut self, rows: &[u32], scale: Option<f32>) -> f64 {
        let cols = self.rows.x.cols();
        let mut pass = Pass::new(self.member, cols);
        let mut d_input = vec![Lane::ZERO; cols];
        let mut d_share = vec![Lane::ZERO; self.member.mlp.share_len()];
        let mut sum = 0.0;
        for rows in rows.chunks(LANES) {
            tile::gather(self.rows.x.view(), rows, &mut pass.input);
            let score = pass.score(self.member, &mut self.tape, scale.is_some());
            let mut slope = Lane::ZERO;
            for (lane, &row) in rows.iter().enumerate() {
                let (sign, weight) = (
                    self.rows.signs[row as usize],
                    self.rows.weights[row as usize],
                );
                let margin = sign * score.0[lane];
                let loss = (-margin.abs()).exp().ln_1p() + (-margin).max(0.0);
                sum += f64::from(weight * loss);
                slope.0[lane] = -weight * sign / (1.0 + margin.exp()) * scale.unwrap_or(0.0);
            }
            if scale.is_some() {
                let sums = Some(&mut self.sums);
                let tape = &mut self.tape;
                let mlp = &self.member.mlp;
                mlp.backward(
                    &pass.input,
                    &[slope],
                    tape,
                    &mut d_input,
                    &mut d_share,
                    sums,
                );
            }
        }
        sum
    }
}

impl Objective for LogisticLoss<'_> {
    fn rows(&self) -> usize {
        self.rows.x.rows()
    }

    fn parameters(&self) -> &[f32] {
        &self.member.parameters
    }

    fn update(&mut self, change: &mut dyn FnMut(&mut [f32])) {
        change(&mut self.member.parameters);
        self.member.mlp.pack(&self.member.parameters);
    }

    fn loss(&mut self, rows: &[u32], _step: u64, gradient: &mut [f32]) -> Result<f64> {
        let count = rows.len() as f32;
        self.sums.clear();
        let sum = self.sum(rows, Some(1.0 / count));
        gradient.fill(0.0);
        self.member.mlp.unpack_gradient(&self.sums, gradient);
        Ok(sum / f64::from(count))
    }

    fn held_out_loss(&mut self, rows: &[u32]) -> Result<f64> {
        Ok(self.sum(rows, None) / rows.len() as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::two_normals;
    use super::*;

    /// The log-odds of N(1, 1) against N(0, 1) is x − ½; a wrong sign, scale or start would be off by 0.5 or more. The second
    /// column is enormous: only standardised inputs can be learned from.
    #[test]
    fn scores_are_log_odds() {
        let (mut x, second) = two_normals(20_000, 1.0);
        for row in 0..x.rows() {
            x.row_mut(row)[1] = 1e6 * (1.0 + x.row(row)[1]);
        }
        let network = Network::smooth();
        let scorer = network
            .fit(x.view(), &second, &vec![1.0; 20_000], 1)
            .unwrap();
        let grid = Matrix::from_fn(31, 2, |row, col| {
            if col == 0 {
                row as f32 / 10.0 - 1.0
            } else {
                1e6
            }
        });
        let scores = scorer(grid.view());
        let square = scores
            .iter()
            .enumerate()
            .map(|(row, score)| (score - (grid.row(row)[0] - 0.5)).powi(2));
        let error = (square.sum::<f32>() / 31.0).sqrt();
        assert!(error < 0.2, "{error}");
    }

    /// The best AUC of N(1, 1) against N(0, 1) is Φ(1/√2) = 0.760; with 5000 fresh rows of each its error is 0.005, and
    /// a network that did not learn would be at 0.5.
    #[test]
    fn the_authors_judge_learns_from_raw_columns() {
        let (x, second) = two_normals(10_000, 1.0);
        let judge = Network::of_the_authors(2);
        let scorer = judge.fit(x.view(), &second, &[1.0; 10_000], 3).unwrap();
        let fresh = |step, shift: f32| {
            let mut x = Noise::new(12, Purpose::Test, step).normal(5000, 2);
            (0..5000).for_each(|row| x.row_mut(row)[0] += shift);
            scorer(x.view())
        };
        let (a, b) = (fresh(0, 0.0), fresh(1, 1.0));
        let weights = [1.0; 5000];
        let scored = |scores| crate::check::Scored {
            scores,
            weights: &weights,
        };
        let auc = crate::check::auc(scored(&a), scored(&b));
        assert!((auc.value - 0.760).abs() < 0.02, "{}", auc.value);
    }

    /// Doubling the weight of the second sample adds log 2 to every log-odds.
    #[test]
    fn weights_shift_the_log_odds() {
        let (x, second) = two_normals(4000, 0.0);
        let weight: Vec<f32> = second.iter().map(|&s| if s { 2.0 } else { 1.0 }).collect();
        let scorer = Network::default()
            .fit(x.view(), &second, &weight, 1)
            .unwrap();
        let scores = scorer(x.view());
        let mean = scores.iter().sum::<f32>() / scores.len() as f32;
        assert!((mean - 2f32.ln()).abs() < 0.1, "{mean}");
    }

    #[test]
    fn a_constant_column_is_no_obstacle() {
        let (mut x, second) = two_normals(2000, 3.0);
        for row in 0..x.rows() {
            x.row_mut(row)[1] = 7.0;
        }
        let scorer = Network::default()
            .fit(x.view(), &second, &[1.0; 2000], 1)
            .unwrap();
        let scores = scorer(x.view());
        let right = scores
            .iter()
            .zip(&second)
            .filter(|(s, second)| (**s > 0.0) == **second);
        assert!(right.count() > 1800);
    }
}
