//! Cuts text of clients before it is sent back. Pure.

/// Largest number of bytes of a path, a query or a name that a response repeats.
pub(super) const MOST_REPEATED: usize = 256;

/// Largest number of bytes of a reason of the API server that a response repeats.
pub(super) const MOST_REASON: usize = 1024;

/// Returns the first `most` bytes of `text`, or fewer if they would end within a character.
pub(super) fn cut(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

#[cfg(test)]
mod tests {
    use super::cut;

    #[test]
    fn text_is_cut_between_characters() {
        for (text, expected) in [("", ""), ("abc", "abc"), ("abcd", "abc"), ("abä", "ab"), ("aä", "aä"), ("äää", "ä")]
        {
            assert_eq!(cut(text, 3), expected, "{text}");
        }
    }
}
