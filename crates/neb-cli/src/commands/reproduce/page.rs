//! `results.md`: the tables, how they came about, and the figures.

use std::path::Path;

use super::Outcome;
use super::table::markdown;

/// The page; paths of figures are seen from its folder.
pub(super) fn page(outcome: &Outcome, folder: &Path) -> String {
    let setup = &outcome.setup;
    let preset = setup.preset_name();
    let mut text = format!(
        "# The paper's tables, reproduced\n\n\
         {} pairs, {} observations, preset `{preset}`, seeds {} to {}, neb {}, {} threads.\n\
         Command: `{}`\n\n\
         Every entry is the mean over the repeats ± their standard deviation, by the sharper of our two classifiers (a network on \
         standardised columns and boosted trees, 10 000 against 10 000 rows, cross-validated); in brackets the authors' own \
         judge (an MLP of 10d × 10d units, gradient descent on raw columns). `!` marks an entry that is worse than the paper's by \
         more than two of its standard deviations (our own row: than the paper's best estimator); `-` a cell that was not run; \
         `(2 of 5)` one with fewer repeats. The rows of estimators have the \
         networks of the preset, `neb (defaults)` those of the program.\n",
        setup.pairs,
        setup.observations,
        outcome.seed,
        outcome.seed + outcome.repeats - 1,
        outcome.version,
        outcome.threads,
        outcome.command,
    );
    if let Some(epochs) = setup.epochs {
        text.push_str(&format!(
            "\nTrainings were limited to {epochs} epochs: these are not the paper's settings.\n"
        ));
    }
    for block in &outcome.blocks {
        text.push_str(&format!("\n## {}\n\n{}", block.title, markdown(block)));
    }
    if !outcome.few.is_empty() {
        text.push_str("\n## One and two observations\n\n");
        for few in &outcome.few {
            text.push_str(&format!(
                "N = {}: {:.1} % of the source's draws may have produced an observation.\n",
                few.observations,
                100.0 * few.plausible
            ));
        }
    }
    text.push_str("\n## Seconds of the source's fit, mean over repeats\n\n");
    text.push_str(&seconds(outcome));
    if !outcome.pictures.is_empty() {
        text.push_str("\n## Figures\n");
        for picture in &outcome.pictures {
            let file = picture.file.strip_prefix(folder).unwrap_or(&picture.file);
            let caption = &picture.caption;
            text.push_str(&format!(
                "\n![{caption}]({})\n\n{caption}\n",
                file.display()
            ));
        }
    }
    text
}

/// One line for each row of a table and problem, whatever the number of its metrics.
fn seconds(outcome: &Outcome) -> String {
    let mut lines: Vec<String> = Vec::new();
    for block in &outcome.blocks {
        for line in &block.lines {
            for entry in &line.entries {
                let Some(seconds) = entry.seconds else {
                    continue;
                };
                let (table, row, problem) = (block.table.title(), &line.title, &entry.problem);
                let text = format!("- {table}: {row} on {problem}: {seconds:.0} s\n");
                if !lines.contains(&text) {
                    lines.push(text);
                }
            }
        }
    }
    lines.concat()
}
