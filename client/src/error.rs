//! Errors as they cross the boundary: the type that controllers return, and an error with its causes as one line.

use std::error::Error;

/// An error of any type that a controller returns to the framework.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The message of `error` and the messages of its sources, separated by colons.
///
/// Messages of this workspace do not repeat their source, so the whole chain is printed once, when it leaves the
/// program.
#[must_use]
pub fn error_chain(error: &dyn Error) -> String {
    let sources = std::iter::successors(error.source(), |&source| source.source());
    sources.fold(error.to_string(), |chain, source| format!("{chain}: {source}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot read the file")]
    struct Outer(#[source] std::fmt::Error);

    #[test]
    fn each_source_is_printed_once_after_what_it_caused() {
        let inner = std::fmt::Error;
        assert_eq!(error_chain(&Outer(inner)), format!("cannot read the file: {inner}"));
        assert_eq!(error_chain(&inner), inner.to_string());
    }
}
