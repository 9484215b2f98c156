//! The differences between two records.

use super::read::{Script, is_like};
use super::record::Record;

/// The lines that one record has and the other has not, apart from those that may differ.
pub(super) fn differences(script: &Script, theirs: &Record, others: &Record) -> (Vec<String>, Vec<String>) {
    let but = |of: &Record, other: &Record| {
        let lines = of.difference(other).filter(|line| !script.differs.iter().any(|it| is_like(line, it)));
        lines.cloned().collect()
    };
    (but(theirs, others), but(others, theirs))
}

/// The patterns of `differs` that no line of a record is like.
pub(super) fn stale<'a>(script: &'a Script, seen: &Record) -> Vec<&'a str> {
    let is_stale = |pattern: &&String| !seen.iter().any(|line| is_like(line, pattern));
    script.differs.iter().filter(is_stale).map(String::as_str).collect()
}

#[cfg(test)]
mod tests {
    use super::{Record, Script, differences, is_like, stale};

    #[test]
    fn a_pattern_matches_the_whole_line() {
        for pattern in ["event of Pod", "event*", "*Pod", "*of*", "event of Pod*"] {
            assert!(is_like("event of Pod", pattern), "{pattern}");
        }
        for pattern in ["event", "*of", "of*", "event of Pods", "event*Job*"] {
            assert!(!is_like("event of Pod", pattern), "{pattern}");
        }
    }

    #[test]
    fn only_lines_that_may_differ_are_left_out() {
        let text = "{ controllers: job, namespaces: [a], records: [], manifests: [], rounds: [], \
            differs: [{ line: 'b*', reason: it is of a test }, { line: 'x', reason: nothing is like it }] }";
        let script = Script::read("job", text).expect("it is sound");
        let record = |lines: &[&str]| -> Record { lines.iter().map(|&line| line.to_owned()).collect() };
        let (theirs, ours) = (record(&["a 1", "b 1", "c"]), record(&["a 2", "b 2", "c"]));
        assert_eq!(differences(&script, &theirs, &ours), (vec!["a 1".to_owned()], vec!["a 2".to_owned()]));
        assert_eq!(stale(&script, &theirs), ["x"]);
    }
}
