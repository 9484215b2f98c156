//! The lines of a watch in JSON.

use std::ops::ControlFlow;

use memchr::memchr;

use super::{KEPT, LONGEST, TooLong};

/// A splitter of lines from chunks of any size.
///
/// A line within one chunk is borrowed from it; only a line that spans chunks is copied. The buffer for that is kept
/// between lines, up to [`KEPT`].
#[derive(Debug)]
pub struct Lines {
    partial: Vec<u8>,
    longest: usize,
    /// Set while the rest of a line that is too long is skipped.
    is_skipping: bool,
}

impl Lines {
    /// A splitter of lines of at most `longest` bytes.
    #[must_use]
    pub const fn new(longest: usize) -> Self {
        Self { partial: Vec::new(), longest, is_skipping: false }
    }

    /// Calls `each` with each line that ends in `chunk`, without its end of line, until `each` breaks.
    ///
    /// Empty lines are skipped. For a line that is longer than the limit `each` is called once with [`TooLong`], and the
    /// line is skipped. The part after the last end of line is kept for the next chunk, and lost after a break.
    pub fn feed<B>(
        &mut self,
        chunk: &[u8],
        mut each: impl FnMut(Result<&[u8], TooLong>) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        let mut rest = chunk;
        while let Some(end) = memchr(b'\n', rest) {
            let (head, tail) = (&rest[..end], &rest[end + 1..]);
            rest = tail;
            if self.is_skipping {
                self.is_skipping = false;
            } else if self.partial.len() + head.len() > self.longest {
                self.clear();
                each(Err(TooLong { longest: self.longest }))?;
            } else if self.partial.is_empty() {
                hand_out(head, &mut each)?;
            } else {
                self.partial.extend_from_slice(head);
                let flow = hand_out(&self.partial, &mut each);
                self.clear();
                flow?;
            }
        }
        if self.is_skipping {
            return ControlFlow::Continue(());
        }
        if self.partial.len() + rest.len() > self.longest {
            self.clear();
            self.is_skipping = true;
            return each(Err(TooLong { longest: self.longest }));
        }
        self.partial.extend_from_slice(rest);
        ControlFlow::Continue(())
    }

    /// Drops an incomplete line.
    fn clear(&mut self) {
        self.partial.clear();
        self.partial.shrink_to(KEPT);
    }
}

impl Default for Lines {
    fn default() -> Self {
        Self::new(LONGEST)
    }
}

fn hand_out<B>(line: &[u8], each: &mut impl FnMut(Result<&[u8], TooLong>) -> ControlFlow<B>) -> ControlFlow<B> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.is_empty() { ControlFlow::Continue(()) } else { each(Ok(line)) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn collect(lines: &mut Lines, chunk: &[u8]) -> Vec<String> {
        let mut found = Vec::new();
        let flow: ControlFlow<()> = lines.feed(chunk, |line| {
            found.push(match line {
                Ok(line) => String::from_utf8(line.to_vec()).unwrap(),
                Err(TooLong { longest }) => format!("longer than {longest}"),
            });
            ControlFlow::Continue(())
        });
        assert!(flow.is_continue());
        found
    }

    #[test]
    fn hands_out_a_line_where_it_lies() {
        let chunk = b"one\ntwo\n".to_vec();
        let within = chunk.as_ptr_range();
        let mut lines = Lines::default();
        let flow: ControlFlow<()> = lines.feed(&chunk, |line| {
            assert!(within.contains(&line.unwrap().as_ptr()), "the line was copied");
            ControlFlow::Continue(())
        });
        assert!(flow.is_continue());
    }

    #[test]
    fn leaves_out_empty_lines_and_carriage_returns() {
        assert_eq!(collect(&mut Lines::default(), b"\n\r\none\r\n\n"), ["one"]);
    }

    #[test]
    fn a_break_drops_the_rest_of_the_chunk() {
        let mut lines = Lines::default();
        let flow = lines.feed(b"stop\nlost\npart", |line| ControlFlow::Break(line.unwrap().len()));
        assert_eq!(flow, ControlFlow::Break(4));
        assert_eq!(collect(&mut lines, b"next\n"), ["next"]);
    }

    #[test]
    fn the_buffer_shrinks_after_a_big_line() {
        let mut lines = Lines::default();
        let big = vec![b'x'; 4 * KEPT];
        assert!(collect(&mut lines, &big).is_empty());
        assert_eq!(collect(&mut lines, b"\n").len(), 1);
        assert!(lines.partial.capacity() <= KEPT, "keeps {} bytes", lines.partial.capacity());
    }

    #[test]
    fn a_line_that_is_too_long_is_reported_once_and_skipped() {
        for body in [["four\nabc\n", "def\n"], ["fo", "ur\nabc\ndef\n"], ["four and", " more\nabc\ndef\n"]] {
            let mut lines = Lines::new(3);
            let found: Vec<String> = body.iter().flat_map(|chunk| collect(&mut lines, chunk.as_bytes())).collect();
            assert_eq!(found, ["longer than 3", "abc", "def"], "{body:?}");
        }
    }

    proptest! {
        #[test]
        fn lines_do_not_depend_on_how_the_body_is_cut(
            texts in prop::collection::vec("[a-z]{1,20}", 0..20),
            cuts in prop::collection::vec(1_usize..15, 1..60),
        ) {
            let body: Vec<u8> = texts.iter().flat_map(|text| format!("{text}\n").into_bytes()).collect();
            let mut lines = Lines::default();
            let (mut rest, mut found) = (body.as_slice(), Vec::new());
            for cut in cuts.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (chunk, tail) = rest.split_at((*cut).min(rest.len()));
                found.extend(collect(&mut lines, chunk));
                rest = tail;
            }
            prop_assert_eq!(found, texts);
        }
    }
}
