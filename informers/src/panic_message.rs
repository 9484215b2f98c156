//! The messages of panics.

use std::any::Any;

/// The message of a panic, from the payload that `catch_unwind` returns.
#[must_use]
pub fn panic_message(payload: &(dyn Any + Send)) -> String {
    let message = payload.downcast_ref::<&str>().copied();
    let message = message.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    message.unwrap_or("a payload that is not a string").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_of_both_types_are_read() {
        let message = |panic: fn()| panic_message(&*std::panic::catch_unwind(panic).unwrap_err());
        assert_eq!(message(|| panic!("plain")), "plain");
        assert_eq!(message(|| panic!("with {}", "arguments")), "with arguments");
        assert_eq!(message(|| std::panic::panic_any(7)), "a payload that is not a string");
    }
}
