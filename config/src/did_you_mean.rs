//! The nearest known name to a misspelled one.

/// Returns the candidate that is spelled most like `given`, if any is close enough to be a typing error.
///
/// Case does not count; the first of equally close candidates is returned.
pub fn nearest<'a>(given: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // The distance takes time in the product of both lengths, and no name is this long.
    if given.len() > 100 {
        return None;
    }
    let lowered = given.to_ascii_lowercase();
    candidates
        .into_iter()
        .map(|candidate| {
            let distance = strsim::osa_distance(&lowered, &candidate.to_ascii_lowercase());
            // If spellings differ in case only, the candidate with the nearer case is first.
            (distance, strsim::osa_distance(given, candidate), candidate)
        })
        .filter(|&(distance, _, candidate)| distance <= 1 + candidate.len().min(given.len()) / 4)
        .min_by_key(|&(distance, exact, _)| (distance, exact))
        .map(|(_, _, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_one_typing_error_away() {
        let known = ["kube-api-qps", "kube-api-burst", "v"];
        assert_eq!(nearest("kube-api-qsp", known), Some("kube-api-qps"));
        assert_eq!(nearest("KUBE-API-BRUST", known), Some("kube-api-burst"));
        assert_eq!(nearest("cluster-name", known), None);
        assert_eq!(nearest(&"x".repeat(1000), known), None);
    }

    #[test]
    fn the_nearest_name_keeps_the_case_that_was_typed() {
        assert_eq!(nearest("concurentRSSyncs", ["ConcurrentRSSyncs", "concurrentRSSyncs"]), Some("concurrentRSSyncs"));
    }
}
