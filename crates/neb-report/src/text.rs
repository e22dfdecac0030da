//! About how wide a text is: enough to lay out legends, whatever sans-serif font the viewer has.

use crate::style::TEXT;

/// Width in pixels of a text of ordinary size, rather too wide than too narrow.
pub(crate) fn width(text: &str) -> f64 {
    let ems: f64 = text
        .chars()
        .map(|c| match c {
            'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '|' | '\'' | ' ' | '(' | ')' => 0.36,
            'm' | 'w' | 'M' | 'W' | '%' | '±' => 0.95,
            _ => 0.64,
        })
        .sum();
    ems * TEXT
}
