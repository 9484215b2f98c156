//! The guide to plugins shows the code of the examples.

const GUIDE: &str = include_str!("../../../docs/plugins.md");
const EXAMPLES: [&str; 5] = [
    include_str!("../../hello/src/lib.rs"),
    include_str!("../src/main.rs"),
    include_str!("../src/bin/greeter.rs"),
    include_str!("../../hello/tests/sandbox.rs"),
    include_str!("../../hello/tests/loops.rs"),
];

/// Pages of functions and macros, whose examples are tests.
const PAGES: [&str; 2] = [
    include_str!("../../../api/src/declaration/macros.rs"),
    include_str!("../../../framework/src/loop_builder/mod.rs"),
];

/// The blocks of code in a language.
fn blocks(language: &str) -> Vec<&'static str> {
    let begins = format!("```{language}\n");
    let blocks = GUIDE.split(begins.as_str()).skip(1);
    blocks.map(|block| block.split("```").next().expect("a split has a first part")).collect()
}

#[test]
fn every_piece_of_code_in_the_guide_is_in_the_examples() {
    let blocks = blocks("rust");
    let lines = PAGES.iter().flat_map(|page| page.lines());
    let docs: String = lines
        .filter_map(|line| line.trim_start().strip_prefix("///"))
        .fold(String::new(), |docs, line| docs + line.strip_prefix(' ').unwrap_or(line) + "\n");
    assert_eq!(blocks.len(), 17);
    for block in blocks {
        let is_shown = EXAMPLES.iter().any(|example| example.contains(block)) || docs.contains(block);
        assert!(is_shown, "not in the examples:\n{block}");
    }
}

#[test]
fn the_guide_names_the_crates_as_they_are_named() {
    const HELLO: &str = include_str!("../../hello/Cargo.toml");
    const HOST: &str = include_str!("../Cargo.toml");
    let blocks = blocks("toml");
    // The first program, the crate of a controller, its host, its tests.
    assert_eq!(blocks.len(), 4);
    for (block, manifest) in blocks.into_iter().zip([HOST, HELLO, HOST, HELLO]) {
        let dependencies = block.lines().filter_map(|line| line.split_once(" = ")).map(|(name, _)| name);
        for name in dependencies {
            assert!(manifest.contains(&format!("\n{name} = ")), "{name} is no dependency of the example");
        }
    }
}

#[test]
fn the_example_is_as_small_as_the_guide_says() {
    assert!(EXAMPLES[0].lines().count() < 45);
    assert!(EXAMPLES[1].lines().count() <= 10);
}
