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

fn recovered(chi_square: f64, shift: f64, rest: f64) -> Vec<Recovered> {
    vec![Recovered {
        name: "m".to_owned(),
        ratios: vec![1.0; 10],
        errors: vec![0.02; 10],
        before: vec![1.0; 10],
        chi_square,
        bins: 10,
        shift,
        rest,
    }]
}

fn checks() -> TrustChecks {
    TrustChecks {
        closure: recovered(11.0, 0.0, 0.03),
        stress: recovered(14.0, 0.4, 0.05),
    }
}

/// An unfolding with nothing to worry about.
fn fine(trust: &TrustChecks) -> UnfoldingFacts<'_> {
    UnfoldingFacts {
        events: [40_000, 36_000, 20_000],
        produced: 22_345.6,
        columns: 6,
        y_auc: auc(0.503),
        y_auc_before: auc(0.61),
        chi_squares: vec![("m".to_owned(), 30.0, 33)],
        trust: Some(trust),
        outside: vec![("m".to_owned(), 0.0)],
        effective: [30_000.0, 20_000.0],
        replicas: [100, 10, 10],
        ..UnfoldingFacts::default()
    }
}

#[test]
fn a_good_unfolding_is_called_good() {
    let trust = checks();
    let verdict = unfolding_verdict(&fine(&trust));
    assert_eq!(verdict.level, Level::Note, "{verdict:?}");
    assert!(verdict.headline.contains("every check was passed"));
    assert!(
        verdict
            .fitted
            .contains("22\u{202f}346 events were produced"),
        "{}",
        verdict.fitted
    );
    let good = verdict.findings.iter().filter(|f| f.level == Level::Good);
    // Bottom line, histograms, closure, stress, effective events.
    assert_eq!(good.count(), 5, "{verdict:?}");
}

/// Each thing to worry about, by itself, changes the level and is named first.
#[test]
fn every_worry_is_raised() {
    let worry = |trust: &TrustChecks, change: &dyn Fn(&mut UnfoldingFacts), level, words: &str| {
        let mut facts = fine(trust);
        change(&mut facts);
        let verdict = unfolding_verdict(&facts);
        assert_eq!(verdict.level, level, "{words}: {verdict:?}");
        let first = &verdict.findings[0];
        assert!(first.text.contains(words), "{words}: {verdict:?}");
    };
    let (caution, problem) = (Level::Caution, Level::Problem);
    let good = checks();
    worry(&good, &|f| f.y_auc = auc(0.53), caution, "just be told");
    worry(&good, &|f| f.y_auc = auc(0.6), problem, "does not describe");
    let far = |f: &mut UnfoldingFacts| f.chi_squares[0].1 = 90.0;
    worry(&good, &far, caution, "m (χ² 90 over 33 bins)");
    let outside = |f: &mut UnfoldingFacts| f.outside[0].1 = 0.05;
    worry(&good, &outside, problem, "m 5.0 %");
    let few = |f: &mut UnfoldingFacts| (f.effective[0], f.replicas[1]) = (900.0, 0);
    worry(&good, &few, caution, "--simulation-replicas");
    worry(&good, &|f| f.negative = 0.3, caution, "30.0 %");
    worry(&good, &|f| f.replicas = [0; 3], caution, "no errors");
    let of_data = "without those of the data";
    worry(&good, &|f| f.replicas[0] = 0, caution, of_data);
    // 1/√(2 · 8) = 25 %.
    worry(
        &good,
        &|f| f.replicas[0] = 9,
        caution,
        "uncertain by 25.0 %",
    );
    worry(
        &good,
        &|f| f.x_auc = auc(0.6),
        caution,
        "differs from the truth",
    );
    let mut open = checks();
    open.closure = recovered(60.0, 0.0, 0.15);
    worry(
        &open,
        &|_| (),
        caution,
        "does not come back: m by up to 15.0 %",
    );
    open.closure = recovered(90.0, 0.0, 0.3);
    worry(&open, &|_| (), problem, "m by up to 30.0 %");
    let mut stressed = checks();
    stressed.stress = recovered(60.0, 0.4, 0.3);
    worry(&stressed, &|_| (), caution, "is not found again: m");
}

/// A deviation that is sure but small is no reason to worry.
#[test]
fn small_deviations_are_no_worry() {
    let mut trust = checks();
    trust.closure = recovered(60.0, 0.0, 0.015);
    trust.stress = recovered(60.0, 0.4, 0.08);
    assert_eq!(unfolding_verdict(&fine(&trust)).level, Level::Note);
}

#[test]
fn baselines_are_compared_where_the_truth_is_known() {
    let trust = checks();
    let mut facts = fine(&trust);
    let delta = |value| Triangular {
        value,
        noise_floor: 0.3,
    };
    facts.discriminators = vec![
        ("m".to_owned(), delta(0.5), Some(delta(0.6))),
        ("zg".to_owned(), delta(0.7), Some(delta(0.6))),
        ("w".to_owned(), delta(0.7), None),
    ];
    let verdict = unfolding_verdict(&facts);
    let said = |f: &Finding| f.text.contains("in 1 of 2 spectra; not in zg");
    assert!(verdict.findings.iter().any(said), "{verdict:?}");
}
