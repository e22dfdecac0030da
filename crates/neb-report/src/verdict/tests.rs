use neb::check::Band;

use super::*;

fn auc(value: f64) -> Option<Estimate> {
    Some(Estimate {
        value,
        standard_error: 0.004,
        null: Band {
            low: 0.489,
            high: 0.511,
        },
    })
}

const EXTRAPOLATED: Extrapolated = Extrapolated {
    share: 0.0,
    rows: 15_000,
    columns: 2,
};

/// A run with nothing to worry about.
fn fine() -> Facts<'static> {
    Facts {
        surrogate: "mixture-8".to_owned(),
        source: "affine of uniform".to_owned(),
        pairs: 15_000,
        observations: 10_000,
        y_auc: auc(0.497),
        chi_squares: vec![("y1".to_owned(), 48.0, 36)],
        outside: vec![("y1".to_owned(), 0.0)],
        extrapolated: Some(EXTRAPOLATED),
        effective_samples: Some(230.0),
        last_gains: vec![("mixture-8".to_owned(), 0.001)],
        ..Facts::default()
    }
}

fn says(verdict: &Verdict, level: Level, words: &str) -> bool {
    let mut findings = verdict.findings.iter();
    findings.any(|finding| finding.level == level && finding.text.contains(words))
}

#[test]
fn a_good_run_is_called_good() {
    let verdict = verdict(&fine());
    assert_eq!(verdict.level, Level::Note, "{verdict:?}");
    assert!(verdict.headline.contains("nothing speaks against it"));
    assert!(says(&verdict, Level::Note, "neb calibrate"));
    assert!(says(
        &verdict,
        Level::Good,
        "AUC 0.497 ± 0.004; 0.489 to 0.511"
    ));
    assert!(verdict.fitted.contains("15\u{202f}000 simulated pairs"));
}

/// Each thing to worry about, by itself, changes the level and is named first.
#[test]
fn every_worry_is_raised() {
    let worry = |change: &dyn Fn(&mut Facts<'static>), level, words: &str| {
        let mut facts = fine();
        change(&mut facts);
        let verdict = verdict(&facts);
        assert!(says(&verdict, level, words), "{words}: {verdict:?}");
        assert_eq!(verdict.level, level);
        assert_eq!(verdict.findings[0].level, level);
    };
    worry(&|f| f.y_auc = auc(0.53), Level::Caution, "just tell");
    worry(
        &|f| f.y_auc = auc(0.71),
        Level::Problem,
        "does not reproduce",
    );
    // χ² of 29 bins exceeds 79 with probability 1.6e-6, and 48 of 36 with 0.09.
    worry(
        &|f| f.chi_squares[0] = ("y1".to_owned(), 79.0, 29),
        Level::Caution,
        "y1 (χ² 79 over 29 bins)",
    );
    worry(&|f| f.y_auc = None, Level::Caution, "not at hand");
    worry(
        &|f| f.x_auc = auc(0.8),
        Level::Caution,
        "differs from the truth",
    );
    worry(&|f| f.outside[0].1 = 0.011, Level::Caution, "y1 1.1 %");
    worry(&|f| f.outside[0].1 = 0.21, Level::Problem, "y1 21.0 %");
    worry(
        &|f| {
            f.extrapolated = Some(Extrapolated {
                share: 0.01,
                ..EXTRAPOLATED
            })
        },
        Level::Caution,
        "wider proposal",
    );
    worry(
        &|f| f.effective_samples = Some(4.0),
        Level::Problem,
        "mostly noise",
    );
    worry(
        &|f| f.effective_samples = Some(16.0),
        Level::Caution,
        "noisy",
    );
    worry(&|f| f.last_gains[0].1 = 0.2, Level::Caution, "more epochs");
    worry(
        &|f| f.widening = Some(0.4),
        Level::Caution,
        "0.40 deviations",
    );
    let budget = "The budget of 60 s was reached.";
    worry(
        &|f| f.warnings = vec![budget.to_owned()],
        Level::Caution,
        budget,
    );
}

/// Few observations beyond the edge are no reason to distrust a run.
#[test]
fn little_things_stay_notes() {
    let mut facts = fine();
    facts.outside[0].1 = 0.0001;
    facts.widening = Some(0.05);
    let verdict = verdict(&facts);
    assert_eq!(verdict.level, Level::Note);
    assert!(says(&verdict, Level::Note, "y1 0.01 %"));
}

/// Of 2000 rows that differ in nothing, a few lie beyond 2000 others: 0.1 % on average.
#[test]
fn what_chance_puts_outside_is_a_note() {
    let mut facts = fine();
    facts.outside[0].1 = 0.003;
    assert_eq!(verdict(&facts).level, Level::Caution);
    facts.pairs = 2000;
    assert_eq!(verdict(&facts).level, Level::Note);
}

/// The sentence on top does not contradict the points below it.
#[test]
fn the_headline_knows_of_everything() {
    let mut facts = fine();
    facts.chi_squares[0].1 = 400.0;
    assert!(verdict(&facts).headline.contains("nearly"));
    facts.y_auc = None;
    facts.effective_samples = Some(4.0);
    assert!(verdict(&facts).headline.contains("Do not use"));
}

/// Posteriors that are exact, and the same made four times too narrow.
#[test]
fn calibration_is_judged() {
    use neb::check::{CalibrationOptions, Posteriors, calibrate};
    use neb::{Matrix, Noise, Purpose};
    let truth = Noise::new(1, Purpose::DrawX, 0).normal(500, 1);
    let draws = Noise::new(2, Purpose::DrawX, 0).normal(500 * 100, 1);
    let check = |scale: f32| {
        let scaled = draws.values().iter().map(|v| v * scale).collect();
        let scaled = Matrix::from_vec(scaled, 1);
        let posteriors = Posteriors {
            draws: scaled.view(),
            weights: None,
            truth: truth.view(),
        };
        calibrate(posteriors, &CalibrationOptions::default()).unwrap()
    };
    let names = ["x1".to_owned()];
    let (exact, narrow) = (check(1.0), check(0.25));
    let of = |calibration| {
        verdict(&Facts {
            calibration: Some((calibration, &names)),
            ..fine()
        })
    };
    assert!(says(&of(&exact), Level::Good, "calibrated as far"));
    assert!(says(&of(&narrow), Level::Problem, "x1 too narrow"));
}
