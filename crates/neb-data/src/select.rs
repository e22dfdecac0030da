//! Which columns play which part.

use std::collections::HashSet;

use crate::error::Problem;
use crate::names::{list, nearest};

/// The columns that play one part in the method: `x`, `y` or `weight`.
///
/// In an npz file the part is played by the array of that name, or by the arrays named instead, side by side. In a csv
/// or parquet file it is played by the columns `x`, `x1`, `x2`, ..., or by the columns named instead; a name that is no
/// column stands for its numbered columns (`gen` for `gen1`, `gen2`, ...). A file without names (npy, csv without a header)
/// gives all it holds; the columns of such a csv can be named by their numbers, `1,2,3`.
#[derive(Clone, Debug, PartialEq)]
pub struct Selection {
    role: String,
    names: Vec<String>,
}

impl Selection {
    /// The part `role`, by the names usual for it.
    pub fn new(role: &str) -> Self {
        Self {
            role: role.into(),
            names: Vec::new(),
        }
    }

    /// The part `role`, played by the arrays or columns of a comma-separated list (usual names if the list is empty).
    pub fn named(role: &str, list: &str) -> Self {
        let names = list.split(',').map(str::trim);
        Self {
            role: role.into(),
            names: names
                .filter(|name| !name.is_empty())
                .map(str::to_owned)
                .collect(),
        }
    }

    /// The part: `x`, `y` or `weight`.
    pub fn role(&self) -> &str {
        &self.role
    }

    /// Whether the names were left to custom.
    pub fn is_usual(&self) -> bool {
        self.names.is_empty()
    }

    /// The names asked for: those given, or the role itself.
    pub(crate) fn wanted(&self) -> Vec<&str> {
        if self.names.is_empty() {
            vec![&self.role]
        } else {
            self.names.iter().map(String::as_str).collect()
        }
    }

    /// Positions in `columns` of the columns that play the part.
    pub(crate) fn resolve(&self, columns: &[String]) -> Result<Vec<usize>, Problem> {
        let mut positions = Vec::new();
        for name in self.wanted() {
            let mut found = exact(name, columns);
            if found.is_empty() || self.is_usual() {
                found.extend(numbered(name, columns));
            }
            if found.is_empty() {
                return Err(self.absent(name, columns));
            }
            found.sort_unstable();
            positions.extend(found.into_iter().map(|(_, at)| at));
        }
        let mut seen = HashSet::new();
        match positions.iter().find(|&&at| !seen.insert(&columns[at])) {
            None => Ok(positions),
            Some(&at) => Err(Problem::new(
                format!(
                    "column `{}` is selected twice for `{}`",
                    columns[at], self.role
                ),
                "give every column a name of its own, and select it once",
            )),
        }
    }

    fn absent(&self, name: &str, columns: &[String]) -> Problem {
        let wanted = if self.is_usual() {
            format!("`{name}`, `{name}1`, `{name}2`, ...")
        } else {
            format!("`{name}`")
        };
        Problem::new(
            format!(
                "there is no column {wanted}; the columns are {}",
                list(columns)
            ),
            self.suggest(name, columns, "columns"),
        )
    }

    /// The hint for a name that is not there.
    pub(crate) fn suggest(&self, name: &str, names: &[String], what: &str) -> String {
        let role = &self.role;
        match nearest(name, names) {
            Some(near) => format!("did you mean `{near}`? select it with --{role} {near}"),
            None => format!("say which {what} are `{role}` with --{role} NAME,NAME,..."),
        }
    }
}

/// The columns of exactly this name, as number 0.
fn exact(name: &str, columns: &[String]) -> Vec<(u64, usize)> {
    let same = (0..columns.len()).filter(|&at| columns[at] == name);
    same.map(|at| (0, at)).collect()
}

/// The columns `name1`, `name2`, ... as pairs of number and position.
fn numbered(name: &str, columns: &[String]) -> Vec<(u64, usize)> {
    let number = |column: &String| {
        let digits = column.strip_prefix(name)?;
        let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
        if plain {
            digits.parse::<u64>().ok()
        } else {
            None
        }
    };
    (0..columns.len())
        .filter_map(|at| Some((number(&columns[at])?, at)))
        .collect()
}

/// Names for columns without names: `x1`, `x2`, ...
pub(crate) fn numbered_names(name: &str, cols: usize) -> Vec<String> {
    (1..=cols).map(|number| format!("{name}{number}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn usual_columns_are_taken_in_the_order_of_their_numbers() {
        let all = columns(&["y1", "x10", "x2", "x1", "x_3", "xy1", "weight", "x+4"]);
        let of = |role| Selection::new(role).resolve(&all).unwrap();
        assert_eq!(of("x"), [3, 2, 1]);
        assert_eq!(of("y"), [0]);
        assert_eq!(of("weight"), [6]);
    }

    #[test]
    fn named_columns_are_taken_in_the_order_of_the_list() {
        let all = columns(&["pt", "mass", "gen2", "gen1"]);
        let of = |list| Selection::named("x", list).resolve(&all).unwrap();
        assert_eq!(of("mass, pt"), [1, 0]);
        assert_eq!(of("gen,pt"), [3, 2, 0]);
        assert!(Selection::named("x", " , ").is_usual());
    }

    #[test]
    fn absent_and_repeated_columns_are_refused() {
        let all = columns(&["pt", "mass", "mass"]);
        let problem = Selection::new("x").resolve(&all).unwrap_err();
        assert_eq!(
            problem.message,
            "there is no column `x`, `x1`, `x2`, ...; the columns are `pt`, `mass`, `mass`"
        );
        assert_eq!(
            problem.hint,
            "say which columns are `x` with --x NAME,NAME,..."
        );
        let problem = Selection::named("x", "ptt").resolve(&all).unwrap_err();
        assert_eq!(problem.hint, "did you mean `pt`? select it with --x pt");
        for list in ["mass", "pt,pt"] {
            let problem = Selection::named("x", list).resolve(&all).unwrap_err();
            assert!(problem.message.ends_with("is selected twice for `x`"));
        }
    }
}
