//! The nearest known word to one that was mistyped. It only proposes; nothing is ever corrected.

/// How alike two words must be for one to be proposed for the other.
const ALIKE_MIN: f64 = 0.5;

/// The known word that `given` is most likely to mean, if one is close.
pub fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |word: &str| word.to_lowercase().replace(['_', ' '], "-");
    let given: String = plain(given).chars().take(64).collect();
    known
        .into_iter()
        .map(|word| {
            let alike = strsim::normalized_damerau_levenshtein(&given, &plain(word));
            (alike, word)
        })
        .filter(|(alike, _)| *alike >= ALIKE_MIN)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, word)| word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_recognised_and_a_stranger_is_not() {
        let known = ["maxConcurrent", "runtime", "agent"];
        assert_eq!(nearest("maxConcurent", known), Some("maxConcurrent"));
        assert_eq!(nearest("max_concurrent", known), Some("maxConcurrent"));
        assert_eq!(nearest("agnet", known), Some("agent"));
        assert_eq!(nearest("colour", known), None);
        assert_eq!(nearest("", known), None);
    }
}
