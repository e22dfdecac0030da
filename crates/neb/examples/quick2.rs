use neb::check::*;
use neb::simulator::{self, Proposal};
use neb::source::{Source, ladder::*};
use neb::surrogate::*;
use neb::*;
use std::time::Instant;
fn main() {
    let names = |p: &str, n: usize| (1..=n).map(|i| format!("{p}{i}")).collect::<Vec<_>>();
    let args: Vec<String> = std::env::args().collect();
    let seed: u64 = args[3].parse().unwrap();
    let shape = args[1].as_str();
    let problem = simulator::by_name(match shape {
        "ring" | "peaks" => "two-moons",
        p => p,
    })
    .unwrap();
    let (x, y) = problem.pairs(Proposal::Covering, 15000, seed);
    let (xn, yn) = (names("x", x.cols()), names("y", y.cols()));
    let pairs = Pairs {
        x: x.view(),
        y: y.view(),
        x_names: &xn,
        y_names: &yn,
    };
    let config = match args[2].as_str() {
        "auto" => SurrogateConfig::auto(),
        "coupling" => SurrogateConfig::single(ModelConfig::coupling()),
        "m1" => SurrogateConfig::single(ModelConfig::noisy_mixture(1)),
        "fast" => SurrogateConfig::fast(),
        _ => SurrogateConfig::single(ModelConfig::noisy_mixture(8)),
    };
    let t = Instant::now();
    let (s, report) = Surrogate::fit(
        pairs,
        &config,
        FitOptions {
            seed,
            checkpoints: None,
            watch: &mut |_, _| std::ops::ControlFlow::Continue(()),
        },
    )
    .unwrap();
    println!(
        "surrogate {} {:.3} {:.1}s",
        report.best().name,
        report.best().held_out,
        t.elapsed().as_secs_f64()
    );
    let (tx, ty) = problem.observations(10000, seed + 1000);
    let (tx, ty) = match shape {
        "ring" | "peaks" => {
            let n = Noise::new(seed, Purpose::Test, 5);
            let z = n.normal(10000, 2);
            let u = Noise::new(seed, Purpose::Test, 6).uniform(10000, 1);
            let tx = Matrix::from_fn(10000, 2, |r, d| {
                if shape == "ring" {
                    let a = u.row(r)[0] * std::f32::consts::TAU;
                    let rad = 0.5 + 0.05 * z.row(r)[0];
                    0.5 + rad * if d == 0 { a.cos() } else { a.sin() }
                } else {
                    let c = if u.row(r)[0] < 0.5 {
                        [0.7, 0.2]
                    } else {
                        [0.1, 0.9]
                    };
                    c[d] + 0.12 * z.row(r)[d]
                }
            });
            let ty = problem.corrupt(tx.view(), Noise::new(seed, Purpose::DrawY, 99));
            (tx, ty)
        }
        _ => (tx, ty),
    };
    let mut lc = LadderConfig::default();
    if args.len() > 4 && args[4] == "sym" {
        lc.symmetric = vec![true; tx.cols()];
    }
    if let Ok(v) = std::env::var("ENT") {
        lc.entropy = v.parse().unwrap();
    }
    if let Ok(v) = std::env::var("KK") {
        lc.affine_k = v.parse().unwrap();
    }
    if let Ok(v) = std::env::var("ESS") {
        lc.effective_samples = v.parse().unwrap();
    }
    if std::env::var("ONLY").is_ok() {
        lc.refine_epochs = 1;
        lc.flow.train.epochs = 1;
        lc.particles = 2000;
    }
    let out = climb(&s, ty.view(), x.view(), &lc, seed, &mut |_, _| {
        std::ops::ControlFlow::Continue(())
    })
    .unwrap();
    for r in &out.report.rungs {
        println!(
            "  {} {:.4} gain {:.4} ± {:.4} kept {} ess {:.1} {:.1}s",
            r.name, r.held_out, r.gain, r.standard_error, r.kept, r.effective_samples, r.seconds
        );
    }
    println!(
        "{} width {:?} particles {:?}; total {:.1}s",
        out.report.reason(),
        out.report.width,
        out.report.particles,
        t.elapsed().as_secs_f64()
    );
    if let Fitted::Affine(a) = &out.source {
        println!(
            "mean {:?} dev {:?}",
            (0..a.dim()).map(|d| a.mean(d)).collect::<Vec<_>>(),
            (0..a.dim()).map(|d| a.deviation(d)).collect::<Vec<_>>()
        );
    }
    let sx = out
        .source
        .source()
        .sample(10000, Noise::new(seed, Purpose::SourceSample, 77));
    let sy = problem.corrupt(sx.view(), Noise::new(seed, Purpose::DrawY, 777));
    let push = s.sample(sx.view(), Noise::new(seed, Purpose::DrawY, 778));
    let seen = |m: &Matrix| {
        if matches!(shape, "ring" | "peaks") {
            Matrix::from_fn(m.rows(), 2, |r, d| {
                let v = m.row(r);
                if d == 0 {
                    (v[0] + v[1]).abs()
                } else {
                    v[1] - v[0]
                }
            })
        } else {
            m.clone()
        }
    };
    let o = CompareOptions::default();
    println!(
        "x-AUC {:.3} y-AUC(sim) {:.3} y-AUC(surr) {:.3}",
        compare(seen(&tx).view(), seen(&sx).view(), &o)
            .unwrap()
            .auc
            .value,
        compare(ty.view(), sy.view(), &o).unwrap().auc.value,
        compare(ty.view(), push.view(), &o).unwrap().auc.value
    );
}
