//! neb's side of the speed comparison (`bench/README.md` has the protocol): `bench CASE.. --threads N`.

use std::ops::ControlFlow;
use std::time::Instant;

use neb::estimator::{Gradient, Samples, mc};
use neb::nn::schedule::Schedule;
use neb::simulator::{self, Proposal};
use neb::surrogate::{FitOptions, Pairs, Surrogate, SurrogateConfig};
use neb::{Likelihood, Matrix};

const CASES: [&str; 3] = ["pairs_forward", "pairs", "train_epoch"];

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
