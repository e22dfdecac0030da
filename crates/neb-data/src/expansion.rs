//! Small files that claim to unfold into very large tables.

use crate::error::Problem;

/// Tables up to this size are never suspicious.
const HARMLESS: u64 = 1 << 30;

/// Measured data shrink by a factor of 1 to 10; constants by 1000 (the limit of deflate) and more.
const LARGEST_RATIO: u64 = 100;

/// Refuses an array that takes `expanded` bytes when `stored` bytes are all that describes it.
pub(crate) fn check(expanded: u64, stored: u64) -> Result<(), Problem> {
    if expanded <= HARMLESS || expanded / LARGEST_RATIO <= stored {
        return Ok(());
    }
    Err(Problem::new(
        format!("claims to unfold from {stored} to {expanded} bytes, which real data do not"),
        "if the content is truly that repetitive, save it without compression",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_large_and_improbable_expansions_are_refused() {
        assert!(check(1 << 30, 1 << 10).is_ok());
        assert!(check(20 << 30, 10 << 30).is_ok());
        assert_eq!(
            check(4 << 30, 4 << 20).unwrap_err().message,
            "claims to unfold from 4194304 to 4294967296 bytes, which real data do not"
        );
    }
}
