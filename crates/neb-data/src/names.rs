//! Lists of names in messages, and the name a user probably meant.

/// How many names a message lists before it stops.
const LISTED: usize = 20;

/// The names in backticks, with commas; long lists are cut.
pub(crate) fn list(names: &[impl AsRef<str>]) -> String {
    if names.is_empty() {
        return "(none)".into();
    }
    let quoted: Vec<String> = names
        .iter()
        .take(LISTED)
        .map(|name| format!("`{}`", name.as_ref()))
        .collect();
    let mut text = quoted.join(", ");
    if names.len() > LISTED {
        text.push_str(&format!(" and {} more", names.len() - LISTED));
    }
    text
}

/// The name closest to `wanted`, if one is close enough to be a slip: same but for case, or at most a third of its letters
/// (and at least one) changed.
pub fn nearest<'a>(wanted: &str, names: &'a [impl AsRef<str>]) -> Option<&'a str> {
    let allowed = (wanted.chars().count() / 3).max(1);
    let lower = wanted.to_lowercase();
    names
        .iter()
        .map(|name| (edits(&lower, &name.as_ref().to_lowercase()), name.as_ref()))
        .filter(|&(distance, name)| distance <= allowed && distance < name.chars().count())
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, name)| name)
}

/// Levenshtein distance: insertions, deletions and replacements of one letter.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, letter) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &other) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != other);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_counted() {
        assert_eq!(edits("kitten", "sitting"), 3);
        assert_eq!(edits("", "abc"), 3);
        assert_eq!(edits("abc", "abc"), 0);
    }

    #[test]
    fn only_slips_are_suggested() {
        let names = ["gen_mass", "gen_pt", "Weight"];
        assert_eq!(nearest("gen_mas", &names), Some("gen_mass"));
        assert_eq!(nearest("weight", &names), Some("Weight"));
        assert_eq!(nearest("energy", &names), None);
        assert_eq!(nearest("x", &["y"]), None);
    }

    #[test]
    fn long_lists_are_cut() {
        let names: Vec<String> = (0..25).map(|i| format!("c{i}")).collect();
        assert!(list(&names).ends_with("`c19` and 5 more"));
        assert_eq!(list(&[""; 0]), "(none)");
    }
}
