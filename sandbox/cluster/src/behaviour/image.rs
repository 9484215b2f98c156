//! Container behaviour from image tags.

use super::{Behaviour, End, Pull, Range, Ready, Stop};

/// Returns the behaviour of a tag, alone (`web:crash`) or at its end (`web:2.1-crash`).
///
/// Images below `invalid/`, and of hosts that end in `.invalid`, cannot be pulled.
pub(crate) fn behaviour(image: &str) -> Behaviour {
    let nothing = Behaviour::default();
    let first = image.split('/').next().unwrap_or_default();
    let host = first.split(':').next().unwrap_or_default();
    if image.contains('/') && (host == "invalid" || host.ends_with(".invalid")) {
        return Behaviour { pull: Some(Pull::Fails), ..nothing };
    }
    let tag = tag(image);
    match tag.rsplit('-').next().unwrap_or_default() {
        "missing" | "bad" => Behaviour { pull: Some(Pull::Fails), ..nothing },
        "crash" => exits(1),
        "finish" => exits(0),
        "unready" => Behaviour { ready: Some(Ready::Never), ..nothing },
        "slow" => Behaviour {
            start: Some(Range::millis(10_000, 20_000)),
            ready: Some(Ready::After(Range::millis(5_000, 10_000))),
            ..nothing
        },
        "stuck" => Behaviour { stop: Some(Stop::Stuck), ..nothing },
        _ => nothing,
    }
}

fn exits(code: i32) -> Behaviour {
    let end = End::Exits { code, after: Range::millis(2_000, 5_000), times: None };
    Behaviour { end: Some(end), ..Behaviour::default() }
}

fn tag(image: &str) -> &str {
    let name = image.split('@').next().unwrap_or_default();
    let last = name.rsplit('/').next().unwrap_or_default();
    last.split_once(':').map_or("", |(_, tag)| tag)
}

/// Reports whether a string is no valid image name.
///
/// # Upstream
/// `distribution/reference`: repositories are in lower case
pub(crate) fn is_malformed(image: &str) -> bool {
    let name = image.split('@').next().unwrap_or_default();
    let last = name.rsplit('/').next().unwrap_or_default();
    let path = last.split(':').next().unwrap_or_default();
    path.is_empty()
        || path.chars().any(|character| character.is_ascii_uppercase())
        || image.chars().any(|character| character.is_whitespace() || character.is_control())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_counts_alone_or_at_its_end() {
        for (image, expected) in [
            ("web:missing", Some(Pull::Fails)),
            ("web:bad", Some(Pull::Fails)),
            ("host:5000/a/web:2.1-bad", Some(Pull::Fails)),
            ("invalid/web:1", Some(Pull::Fails)),
            ("registry.invalid:5000/web", Some(Pull::Fails)),
            ("invalid", None),
            ("web:badly", None),
            ("web:1", None),
            ("web", None),
            ("host:5000/bad", None),
            ("bad/web@sha256:0123", None),
        ] {
            assert_eq!(behaviour(image).pull, expected, "{image}");
        }
        assert_eq!(behaviour("web:unready").ready, Some(Ready::Never));
        assert_eq!(behaviour("web:stuck").stop, Some(Stop::Stuck));
        assert!(matches!(behaviour("web:2-crash").end, Some(End::Exits { code: 1, .. })));
        assert!(matches!(behaviour("job:finish").end, Some(End::Exits { code: 0, .. })));
    }

    #[test]
    fn invalid_image_names_are_malformed() {
        for (image, expected) in
            [("web", false), ("host:5000/a/web:V1", false), ("Web:1", true), ("a b", true), (":1", true)]
        {
            assert_eq!(is_malformed(image), expected, "{image}");
        }
    }
}
