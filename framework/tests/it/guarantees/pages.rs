//! Tests are named after the guarantees on the pages of the crate.

/// Pages whose guarantees are sentences in italics.
const PAGES: [(&str, &str); 4] = [
    ("the page of loops", include_str!("../../../src/loop_builder/mod.rs")),
    ("the page of supervision", include_str!("../../../src/supervise/mod.rs")),
    ("the page of takeovers", include_str!("../../../src/takeover/mod.rs")),
    ("the page of discovery", include_str!("../../../src/discovery/mod.rs")),
];

const TESTS: [&str; 12] = [
    include_str!("control_loop.rs"),
    include_str!("declared_writes.rs"),
    include_str!("initialization.rs"),
    include_str!("loops.rs"),
    include_str!("manager.rs"),
    include_str!("outages.rs"),
    include_str!("read_your_own_writes.rs"),
    include_str!("selection.rs"),
    include_str!("standby.rs"),
    include_str!("supervision.rs"),
    include_str!("takeover.rs"),
    include_str!("../discovery.rs"),
];

/// The lines of the section of guarantees, as one text.
fn guarantees(source: &str) -> String {
    let lines = source.lines().filter_map(|line| line.strip_prefix("//!").or_else(|| line.strip_prefix("///")));
    let section = lines.skip_while(|line| line.trim() != "# Guarantees").skip(1);
    let section = section.take_while(|line| !line.trim_start().starts_with("# "));
    section.flat_map(|line| [line.trim(), " "]).collect()
}

/// A link is its text.
fn without_links(text: &str) -> String {
    let mut parts = text.split("](");
    let first = parts.next().unwrap_or_default().to_owned();
    let text = parts.fold(first, |text, part| text + part.split_once(')').map_or(part, |(_, rest)| rest));
    text.replace('[', "")
}

/// The name of the test of a sentence.
fn test_name(sentence: &str) -> String {
    let sentence = sentence.replace("`InitFunc`", "init func").to_lowercase().replace('-', " ");
    let sentence = sentence.replace(['.', ',', '`'], "");
    sentence.split_whitespace().collect::<Vec<_>>().join("_")
}

#[test]
fn every_guarantee_of_the_pages_has_a_test() {
    let tests = TESTS.concat();
    for (page, source) in PAGES {
        let text = without_links(&guarantees(source));
        let sentences: Vec<&str> = text.split('*').skip(1).step_by(2).collect();
        assert!(sentences.len() > 2, "{page}: {sentences:?}");
        for sentence in sentences {
            let name = test_name(sentence);
            assert!(tests.contains(&format!("async fn {name}()")), "{page}: no test is named {name}");
        }
    }
}
