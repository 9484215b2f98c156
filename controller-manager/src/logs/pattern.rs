//! The patterns of `--vmodule`.

/// Returns `true` if `text` matches `pattern`: `*` is any sequence, `?` any character, `[a-z]` and `[^a-z]` a class,
/// and `\` takes the next character as it is. A malformed pattern matches nothing.
///
/// # Upstream
/// `filepath.Match` of Go, on names without slashes.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = text.chars().collect();
    let (mut at, mut read) = (0, 0);
    // Positions to retry from if the text after the last `*` does not match: `*` then matches one character more.
    let mut retry: Option<(usize, usize)> = None;
    loop {
        if pattern.get(at) == Some(&'*') {
            at += 1;
            retry = Some((at, read));
            continue;
        }
        if at == pattern.len() && read == text.len() {
            return true;
        }
        match text.get(read).and_then(|&character| one(&pattern[at..], character)) {
            Some(length) => (at, read) = (at + length, read + 1),
            None => match retry {
                Some((after, taken)) if taken < text.len() => {
                    retry = Some((after, taken + 1));
                    (at, read) = (after, taken + 1);
                }
                Some(_) | None => return false,
            },
        }
    }
}

/// The length of the first element of `pattern`, if it matches `character`.
fn one(pattern: &[char], character: char) -> Option<usize> {
    match pattern {
        ['?', ..] => Some(1),
        ['\\', escaped, ..] => (*escaped == character).then_some(2),
        ['[', rest @ ..] => {
            let end = rest.iter().skip(1).position(|&it| it == ']')? + 1;
            let (negated, class) = match &rest[..end] {
                ['^', class @ ..] => (true, class),
                class => (false, class),
            };
            (contains(class, character) != negated).then_some(end + 2)
        }
        [literal, ..] => (*literal == character && *literal != '\\').then_some(1),
        [] => None,
    }
}

fn contains(class: &[char], character: char) -> bool {
    match class {
        [low, '-', high, rest @ ..] => (*low..=*high).contains(&character) || contains(rest, character),
        [single, rest @ ..] => *single == character || contains(rest, character),
        [] => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn patterns_match_as_gos_do() {
        let cases = [
            ("worker", "worker", true),
            ("worker", "workers", false),
            ("*", "", true),
            ("re*", "reflector", true),
            ("*e*r", "reflector", true),
            ("*e*x", "reflector", false),
            ("wor?er", "worker", true),
            ("wor?er", "worer", false),
            ("[a-d]x", "cx", true),
            ("[^a-d]x", "cx", false),
            ("[ab-]x", "-x", true),
            ("[a", "a", false),
            ("a\\*", "a*", true),
            ("a\\*", "ab", false),
            ("a\\", "a\\", false),
            ("kcm_framework::*", "kcm_framework::reconcile::worker", true),
        ];
        for (pattern, text, expected) in cases {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }

    proptest! {
        #[test]
        fn no_pattern_panics(pattern in "[a\\[\\]^*?\\\\-]{0,20}", text in "[a\\]^-]{0,20}") {
            matches(&pattern, &text);
        }
    }
}
