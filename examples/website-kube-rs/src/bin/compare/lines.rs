//! Lines of code of each operator, without the kind, its decisions and its host names, which both share.

const OURS: [&str; 3] = [
    include_str!("../../../../website/src/lib.rs"),
    include_str!("../../../../website/src/main.rs"),
    include_str!("../../../../website/src/reconcile.rs"),
];
const THEIRS: [&str; 2] = [include_str!("../../lib.rs"), include_str!("../../main.rs")];

/// Counts the lines of `examples/website`.
pub(crate) fn ours() -> usize {
    count(&OURS)
}

/// Those of `examples/website-kube-rs`, with its companions.
pub(crate) fn theirs() -> usize {
    count(&THEIRS)
}

/// The lines without blank lines, comments and imports.
fn count(sources: &[&str]) -> usize {
    let mut in_import = false;
    let is_code = |line: &&str| {
        let begins = line.starts_with("use ");
        let skipped = in_import || begins || line.is_empty() || line.starts_with("//");
        in_import = (in_import || begins) && !line.ends_with(';');
        !skipped
    };
    sources.iter().flat_map(|source| source.lines()).map(str::trim).filter(is_code).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blank_lines_comments_and_imports_do_not_count() {
        let source =
            "//! A page.\n\nuse a::{\n    b,\n};\nuse c;\n\n/// A function.\nfn d() {\n    // A reason.\n    e();\n}\n";
        assert_eq!(count(&[source, "f();"]), 4);
    }

    #[test]
    fn the_operator_is_shorter_than_on_kube_rs_and_the_guide_says_by_how_much() {
        let (ours, theirs) = (ours(), theirs());
        assert!(ours < theirs, "{ours} lines here, {theirs} on kube-rs");
        let row = format!("| lines of code | {ours} | {theirs} |");
        let guide = include_str!("../../../../../docs/plugins.md");
        assert!(guide.contains(&row), "write this to the table of docs/plugins.md: {row}");
    }
}
