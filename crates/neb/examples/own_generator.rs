//! Your own generator trained from the estimator's value and ∂L/∂x: `cargo run --release --example own_generator`.
//!
//! [`neb::estimator::log_marginal`] takes the draws x and gives L, the mean of log (1/K) Σ_k q(y_i|x_k), with its gradient with
//! respect to every draw. How the draws came about is no concern of neb's: a network in another framework would carry ∂L/∂x
//! back by its own means. Here the generator is x = a + b·z + c·z², plain gradient ascent does the rest, and what it must find
//! is the law of 1 + z/2 + z²/5 behind y = x + 0.3·noise.

use neb::estimator::log_marginal;
use neb::surrogate::GaussianNoise;
use neb::{Likelihood, Matrix, Noise, Purpose, Rows};

const TRUTH: [f32; 3] = [1.0, 0.5, 0.2];

/// x = a + b·z + c·z².
fn generate([a, b, c]: [f32; 3], z: &Matrix) -> Matrix {
    Matrix::from_fn(z.rows(), 1, |row, _| {
        let z = z.row(row)[0];
        a + b * z + c * z * z
    })
}

/// The generator after training; its b may have either sign, z being as likely as −z.
fn train() -> neb::Result<[f32; 3]> {
    let likelihood = GaussianNoise::new(Rows::new(&[0.09], 1))?;
    let hidden = generate(TRUTH, &Noise::new(1, Purpose::DrawX, 0).normal(1000, 1));
    let y = likelihood.sample(hidden.view(), Noise::new(1, Purpose::DrawY, 0));

    let mut parameters = [0.0, 1.0, 0.0];
    for step in 0..300 {
        let z = Noise::new(1, Purpose::SourceNoise, step).normal(256, 1);
        let x = generate(parameters, &z);
        let (_value, dx) = log_marginal(&likelihood, y.view(), x.view())?;
        for row in 0..z.rows() {
            let (z, dx) = (z.row(row)[0], dx.row(row)[0]);
            for (parameter, slope) in parameters.iter_mut().zip([1.0, z, z * z]) {
                *parameter += 0.1 * dx * slope;
            }
        }
    }
    Ok(parameters)
}

fn main() -> neb::Result<()> {
    println!("found {:.3?}, the truth is {TRUTH:.3?}", train()?);
    Ok(())
}

/// 1000 observations determine the parameters to about 0.03; the Monte Carlo bias of 256 draws is smaller.
#[test]
fn finds_the_generator() {
    let [a, b, c] = train().unwrap();
    for (found, truth) in [a, b.abs(), c].into_iter().zip(TRUTH) {
        assert!((found - truth).abs() < 0.1, "{found} is not {truth}");
    }
}
