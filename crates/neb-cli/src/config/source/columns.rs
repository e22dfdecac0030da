//! Settings of the source that name columns of x: `all=-3:3`, `x1,x3`.

use anyhow::Result;
use neb::column::Transform;
use neb::source::Domain;

use crate::failure::Failure;
use crate::files::Group;

/// Which columns are even: `all`, `none`, or names with commas.
pub(super) fn symmetric(given: Option<&str>, x: &Group) -> Result<Vec<bool>> {
    let x_names = &x.names;
    let names: Vec<&str> = match given {
        None | Some("none") => return Ok(Vec::new()),
        Some("all") => x_names.iter().map(String::as_str).collect(),
        Some(list) => list.split(',').map(str::trim).collect(),
    };
    let mut even = vec![false; x_names.len()];
    for name in names {
        let column = place("symmetric", name, x_names)?;
        even[column] = true;
        if !matches!(
            x.transforms.of(column),
            Transform::None | Transform::Dequantise { .. }
        ) {
            return Err(Failure::input(
                format!(
                    "--symmetric: column `{name}` has the transform {}, which is not even about zero",
                    x.transforms.of(column).words()
                ),
                format!("leave the column out, or give --transform {name}=none"),
            ));
        }
    }
    Ok(even)
}

/// Where x can be, in the models' units: `none`, or NAME=LOW:HIGH with commas, the name `all` for every column.
pub(super) fn domain(given: Option<&str>, x: &Group) -> Result<Option<Domain>> {
    let x_names = &x.names;
    let list = match given {
        None | Some("none") => return Ok(None),
        Some(list) => list,
    };
    let mut lower = vec![f32::NEG_INFINITY; x_names.len()];
    let mut upper = vec![f32::INFINITY; x_names.len()];
    for part in list.split(',').map(str::trim) {
        let (name, low, high) = edges(part).ok_or_else(|| {
            Failure::input(
                format!("--domain: `{part}` is not of the form NAME=LOW:HIGH"),
                "for example x1=-1:1,x2=0:inf or all=-3:3",
            )
        })?;
        if low >= high || low.is_nan() || high.is_nan() {
            return Err(Failure::input(
                format!("--domain: `{part}` runs from {low} to {high}"),
                "give a lower edge and a larger upper one, -inf or inf where there is none",
            ));
        }
        let columns = match name {
            "all" => 0..x_names.len(),
            _ => {
                let column = place("domain", name, x_names)?;
                column..column + 1
            }
        };
        lower[columns.clone()].fill(low);
        upper[columns].fill(high);
    }
    let edges = lower.iter().zip(&upper).enumerate();
    let (lower, upper): (Vec<f32>, Vec<f32>) = edges
        .map(|(column, (&low, &high))| x.transforms.of(column).bounds(low, high).into())
        .unzip();
    Ok(Some(Domain::new(&lower, &upper)?))
}

fn edges(part: &str) -> Option<(&str, f32, f32)> {
    let (name, range) = part.split_once('=')?;
    let (low, high) = range.split_once(':')?;
    Some((
        name.trim(),
        low.trim().parse().ok()?,
        high.trim().parse().ok()?,
    ))
}

/// The number of a column; one that does not exist is refused with the one that was probably meant.
fn place(flag: &str, name: &str, x_names: &[String]) -> Result<usize> {
    x_names
        .iter()
        .position(|known| known == name)
        .ok_or_else(|| {
            let hint = match neb_data::nearest(name, x_names) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("choose from `{}`, or all", x_names.join("`, `")),
            };
            Failure::input(format!("--{flag}: x has no column `{name}`"), hint)
        })
}

#[cfg(test)]
mod tests {
    use neb::Matrix;
    use neb::column::Transforms;

    use super::*;

    fn x() -> Group {
        Group::plain(
            Matrix::zeros(1, 2),
            ["pt", "mass"].map(str::to_owned).to_vec(),
        )
    }

    #[test]
    fn even_columns_are_named() {
        let even = |given| symmetric(given, &x());
        assert!(even(None).unwrap().is_empty());
        assert_eq!(even(Some("all")).unwrap(), [true, true]);
        assert_eq!(even(Some("mass")).unwrap(), [false, true]);
        assert!(even(Some("mas")).is_err());
    }

    #[test]
    fn domains_are_read() {
        let read = |given| domain(given, &x());
        assert!(read(None).unwrap().is_none());
        let both = read(Some("all=-3:3, pt=0:inf")).unwrap().unwrap();
        assert_eq!(both.lower(), [0.0, -3.0]);
        assert_eq!(both.upper(), [f32::INFINITY, 3.0]);
        let transforms = vec![Transform::Log, Transform::None];
        let logged = Group {
            transforms: Transforms::new(transforms),
            ..x()
        };
        let both = domain(Some("all=1:3"), &logged).unwrap().unwrap();
        assert_eq!(both.lower(), [0.0, 1.0]);
        assert_eq!(both.upper(), [3f32.ln(), 3.0]);
        assert!(symmetric(Some("pt"), &logged).is_err());
        for (text, words) in [
            ("pt=1:1", "runs from 1 to 1"),
            ("pt=2:-1", "runs from 2 to -1"),
            ("pt=1", "not of the form"),
            ("pt=a:b", "not of the form"),
            ("mas=0:1", "no column `mas`"),
        ] {
            let message = read(Some(text)).unwrap_err().to_string();
            assert!(message.contains(words), "{text}: {message}");
        }
    }
}
