//! neb's side of the speed comparison (`bench/README.md` has the protocol): `bench CASE.. --threads N`.

use std::ops::ControlFlow;
use std::time::Instant;

use neb::estimator::{Gradient, Samples, mc};
use neb::nn::adam::{Adam, AdamConfig};
use neb::nn::schedule::Schedule;
use neb::simulator::{self, Proposal};
use neb::source::{
    Bound, Estimator, EstimatorKind, MarginalObjective, Pull, Recognition, RecognitionConfig,
    SingleConfig, SourceKind, Spread, VariationalObjective, VariationalProblem,
};
use neb::surrogate::{FitOptions, Pairs, Surrogate, SurrogateConfig};
use neb::train::Objective;
use neb::{Likelihood, Matrix};

const CASES: [&str; 6] = [
    "pairs_forward",
    "pairs",
    "train_epoch",
    "umnn_step",
    "elbo_step",
    "iw_step",
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut cases = Vec::new();
    let mut threads = 1;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        if argument == "--threads" {
            threads = arguments
                .next()
                .ok_or("--threads needs a number")?
                .parse()?;
        } else if CASES.contains(&argument.as_str()) {
            cases.push(argument);
        } else {
            eprintln!(
                "error: no case `{argument}`; there are {}",
                CASES.join(", ")
            );
            std::process::exit(2);
        }
    }
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build_global()?;
    let surrogate = train(40)?.0;
    let (y, x) = inputs();
    for case in cases {
        let seconds = match case.as_str() {
            "pairs_forward" => {
                let mut out = Matrix::zeros(y.rows(), x.rows());
                median(|| surrogate.log_prob_pairs(y.view(), x.view(), out.view_mut()))
            }
            "pairs" => median(|| {
                let samples = Samples::Shared(x.view());
                mc(&surrogate, y.view().into(), samples, Gradient::Sparse).expect("finite");
            }),
            "umnn_step" => mc_step(&surrogate, &y)?,
            "elbo_step" => variational_step(&surrogate, &y, Bound::Elbo, 1)?,
            "iw_step" => variational_step(&surrogate, &y, Bound::ImportanceWeighted, 16)?,
            _ => train(6)?.1,
        };
        println!(r#"{{"name": "{case}", "seconds": {seconds}, "threads": {threads}}}"#);
    }
    Ok(())
}

/// 128 two-moons observations and 1024 evenly spread source values.
fn inputs() -> (Matrix, Matrix) {
    let problem = simulator::by_name("two-moons").expect("a built-in problem");
    let (_, y) = problem.observations(128, 1);
    let steps = [0.754_877_666_246_692_7, 0.569_840_290_998_053_2];
    let x = Matrix::from_fn(1024, 2, |k, d| {
        (2.0 * ((k + 1) as f64 * steps[d]).fract() - 1.0) as f32
    });
    (y, x)
}

/// The paper's surrogate after so many epochs, and the median seconds of one.
fn train(epochs: usize) -> Result<(Surrogate, f64), neb::Error> {
    let problem = simulator::by_name("two-moons")?;
    let (x, y) = problem.pairs(Proposal::StandardNormal, 15_000, 1);
    let names = |letter: &str| vec![format!("{letter}1"), format!("{letter}2")];
    let mut config = SurrogateConfig::paper();
    let training = &mut config.candidates[0].train;
    training.epochs = epochs;
    training.held_out = 0.0;
    training.schedule = Schedule::Constant;
    let pairs = Pairs {
        x: x.view(),
        y: y.view(),
        x_names: &names("x"),
        y_names: &names("y"),
    };
    let options = FitOptions {
        seed: 1,
        checkpoints: None,
        watch: &mut |_, _| ControlFlow::Continue(()),
    };
    let (surrogate, report) = Surrogate::fit(pairs, &config, options)?;
    let history = &report.best().history;
    let mut seconds: Vec<f64> = history
        .windows(2)
        .map(|pair| pair[1].seconds - pair[0].seconds)
        .collect();
    seconds.sort_by(f64::total_cmp);
    Ok((surrogate, seconds[seconds.len() / 2]))
}

/// One step of stage 2 with the paper's UMNN source, 1024 samples shared by the batch.
fn mc_step(surrogate: &Surrogate, y: &Matrix) -> Result<f64, neb::Error> {
    let mut source =
        SingleConfig::source(EstimatorKind::Mc, SourceKind::Umnn).build(&[0.0; 2], &[1.0; 2], 1)?;
    step_seconds(&mut MarginalObjective {
        source: &mut source,
        likelihood: surrogate,
        y: y.view(),
        weights: None,
        estimator: Estimator::Shared { k: 1024 },
        pull: Pull::NONE,
        held_out_k: 1024,
        seed: 1,
        effective_samples: None,
    })
}

/// One step of a variational bound with the paper's UMNN source and recognition network.
fn variational_step(
    surrogate: &Surrogate,
    y: &Matrix,
    bound: Bound,
    k: usize,
) -> Result<f64, neb::Error> {
    let start = Spread {
        mean: &[0.0; 2],
        deviation: &[1.0; 2],
    };
    let mut source = SingleConfig::source(EstimatorKind::Iw, SourceKind::Umnn).build(
        start.mean,
        start.deviation,
        1,
    )?;
    let mut recognition = Recognition::new(&RecognitionConfig::paper(), start, start, 1);
    let problem = VariationalProblem {
        likelihood: surrogate,
        y: y.view(),
        weights: None,
        bound,
        k,
        pull: Pull::NONE,
        seed: 1,
    };
    step_seconds(&mut VariationalObjective::new(
        &mut source,
        &mut recognition,
        problem,
    )?)
}

/// Median seconds of loss, gradient and Adam over all rows.
fn step_seconds(objective: &mut dyn Objective) -> Result<f64, neb::Error> {
    let rows: Vec<u32> = (0..objective.rows() as u32).collect();
    let mut gradient = vec![0.0; objective.parameters().len()];
    let mut adam = Adam::new(gradient.len());
    let mut step = 0;
    let mut failed = None;
    let seconds = median(|| {
        failed = failed
            .take()
            .or(objective.loss(&rows, step, &mut gradient).err());
        objective.update(&mut |parameters| {
            adam.step(&AdamConfig::default(), 1e-4, parameters, &mut gradient);
        });
        step += 1;
    });
    failed.map_or(Ok(seconds), Err)
}

/// Median seconds over repeats, after a warm-up.
fn median(mut work: impl FnMut()) -> f64 {
    work();
    let mut seconds: Vec<f64> = (0..11)
        .map(|_| {
            let start = Instant::now();
            work();
            start.elapsed().as_secs_f64()
        })
        .collect();
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}
