//! The message of an error with the messages of its sources.

use std::error::Error;
use std::fmt::Write as _;

/// An error with its sources in one line; a source that an outer message already contains is not repeated.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let message = cause.to_string();
        if !text.contains(&message) {
            write!(text, ": {message}").expect("writing to a string cannot fail");
        }
        next = cause.source();
    }
    text
}
