use neb::simulator::{self, Proposal};
use neb::surrogate::*;
use neb::*;
use std::time::Instant;
fn main() {
    let names = |p: &str, n: usize| (1..=n).map(|i| format!("{p}{i}")).collect::<Vec<_>>();
    let args: Vec<String> = std::env::args().collect();
    let problem = simulator::by_name(&args[1]).unwrap();
    let (x, y) = problem.pairs(
        if args[1] == "slcp" {
            Proposal::Covering
        } else {
            Proposal::StandardNormal
        },
        15000,
        1,
    );
    let (xn, yn) = (names("x", x.cols()), names("y", y.cols()));
    let pairs = Pairs {
        x: x.view(),
        y: y.view(),
        x_names: &xn,
        y_names: &yn,
    };
    let mut config = match args[2].as_str() {
        "paper" => SurrogateConfig::paper(),
        "auto" => SurrogateConfig::auto(),
        "spline" => SurrogateConfig::single(ModelConfig::spline()),
        "coupling" => SurrogateConfig::single(ModelConfig::coupling()),
        "m1" => SurrogateConfig::single(ModelConfig::mixture(1)),
        _ => SurrogateConfig::single(ModelConfig::mixture(8)),
    };
    if let Some(e) = args.get(3) {
        for c in &mut config.candidates {
            c.train.epochs = e.parse().unwrap();
        }
    }
    if let Some(e) = args.get(4) {
        for c in &mut config.candidates {
            c.train.rate = e.parse().unwrap();
        }
    }
    if let Some(w) = args.get(5) {
        let w: usize = w.parse().unwrap();
        for c in &mut config.candidates {
            match &mut c.model {
                ModelConfig::Coupling { head, .. } | ModelConfig::Spline { head, .. } => {
                    *head = vec![w; 3]
                }
                ModelConfig::Mixture { hidden, .. } => *hidden = vec![w; 3],
            }
        }
    }
    if let Some(b) = args.get(6) {
        for c in &mut config.candidates {
            c.train.batch = b.parse().unwrap();
        }
    }
    let t = Instant::now();
    let (s, report) = Surrogate::fit(
        pairs,
        &config,
        FitOptions {
            seed: 1,
            checkpoints: None,
            watch: &mut |_, _| std::ops::ControlFlow::Continue(()),
        },
    )
    .unwrap();
    let sec = t.elapsed().as_secs_f64();
    for r in &report.tried {
        println!(
            "{} held-out {:.3} best epoch {} params {} {:.2}s",
            r.name, r.held_out, r.best_epoch, r.parameters, r.seconds
        );
        for h in r.history.iter().step_by((r.history.len() / 6).max(1)) {
            println!(
                "   {} {:.3} {:.3} gn {:.2}",
                h.epoch, h.train, h.held_out, h.gradient_norm
            );
        }
    }
    println!("fit {sec:.2}s");
    let (x, y) = problem.observations(10000, 77);
    let mut out = vec![0.0; 10000];
    s.log_prob(y.view(), x.view(), &mut out);
    let mean = out.iter().map(|&v| v as f64).sum::<f64>() / 1e4;
    out.sort_by(f32::total_cmp);
    println!(
        "true source: mean {mean:.3} median {:.3} min {:.1}",
        out[5000], out[0]
    );
    let mut pairs = Matrix::zeros(128, 1024);
    let (yy, xx) = (y.view().slice(0..128), x.view().slice(0..1024));
    s.log_prob_pairs(yy, xx, pairs.view_mut());
    let mut best = 1e9f64;
    for _ in 0..5 {
        let t = Instant::now();
        s.log_prob_pairs(yy, xx, pairs.view_mut());
        best = best.min(t.elapsed().as_secs_f64());
    }
    println!(
        "pairs forward {:.2} ms; {:.1} GFLOPS (paper)",
        best * 1e3,
        131072.0 * 4.0 * 2.0 * 2600.0 * 2.0 / best / 1e9
    );
}
