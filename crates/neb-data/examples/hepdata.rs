//! Two spectra as a HEPData submission: `cargo run --example hepdata -- FOLDER`.

use neb_data::{Series, Spectrum, SpectrumAxis, Submission, write_hepdata};

fn axis(name: &str, units: &str, edges: &[f64]) -> SpectrumAxis {
    SpectrumAxis {
        name: name.to_owned(),
        units: units.to_owned(),
        edges: edges.to_vec(),
    }
}

/// A spectrum of one value per bin, with errors of 10 % from the data and 1 % from the training.
fn series(name: &str, values: Vec<f64>) -> Series {
    let share = |share: f64| {
        values
            .iter()
            .map(|value| share * value)
            .collect::<Vec<f64>>()
    };
    let (data, bins) = (share(0.1), values.len());
    let covariance = |at: usize| {
        let (i, j) = (at / bins, at % bins);
        let correlation = if i == j { 1.0 } else { -0.1 };
        correlation * data[i] * data[j]
    };
    Series {
        name: name.to_owned(),
        units: "1/GEV".to_owned(),
        errors: vec![
            ("data".to_owned(), data.clone()),
            ("training".to_owned(), share(0.01)),
        ],
        covariances: vec![(
            "data".to_owned(),
            (0..bins * bins).map(covariance).collect(),
        )],
        qualifiers: vec![
            ("SQRT(S)".to_owned(), "14000 GEV".to_owned()),
            ("method".to_owned(), name.to_owned()),
        ],
        values,
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).ok_or("name a folder to write to")?;
    let mass = Spectrum {
        name: "mass".to_owned(),
        description: "Mass of the leading jet, normalised.".to_owned(),
        axes: vec![axis("m", "GEV", &[0.0, 10.0, 20.0, 40.0])],
        series: vec![
            series("unfolded", vec![0.03, 0.05, 0.0]),
            series("ibu", vec![0.031, 0.049, 1e-9]),
        ],
    };
    let both = Spectrum {
        name: "mass-zg".to_owned(),
        description: "Mass and momentum fraction of the \"leading\" jet, normalised.".to_owned(),
        axes: vec![
            axis("m", "GEV", &[0.0, 20.0, 40.0]),
            axis("zg", "", &[0.0, 0.1, 0.5]),
        ],
        series: vec![series("unfolded", vec![0.1, 0.2, 0.3, 0.4])],
    };
    let submission = Submission {
        comment: "An example of the files neb writes.".to_owned(),
        keywords: vec![
            ("reactions".to_owned(), vec!["P P --> Z0 JET X".to_owned()]),
            ("cmenergies".to_owned(), vec!["14000.0".to_owned()]),
        ],
        spectra: vec![mass, both],
    };
    for file in write_hepdata(&folder, true, &submission)? {
        println!("{}", file.display());
    }
    Ok(())
}
