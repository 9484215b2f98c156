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
}

impl Lines {
    /// A splitter of lines of at most `longest` bytes.
    #[must_use]
    pub const fn new(longest: usize) -> Self {
        Self { partial: Vec::new(), longest }
    }

    /// Calls `each` with each line that ends in `chunk`, without its end of line, until `each` breaks.
    ///
    /// Empty lines are skipped. The part after the last end of line is kept for the next chunk, and lost after a break.
    ///
    /// # Errors
    /// [`TooLong`] when a line is longer than the limit; the rest of the body cannot be read.
    pub fn feed<B>(
        &mut self,
        chunk: &[u8],
        mut each: impl FnMut(&[u8]) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>, TooLong> {
        let mut rest = chunk;
        while let Some(end) = memchr(b'\n', rest) {
            let (head, tail) = (&rest[..end], &rest[end + 1..]);
            rest = tail;
            let flow = if self.partial.is_empty() {
                self.check(head.len())?;
                hand_out(head, &mut each)
            } else {
                self.keep(head)?;
                let flow = hand_out(&self.partial, &mut each);
                self.clear();
                flow
            };
            if flow.is_break() {
                return Ok(flow);
            }
        }
        self.keep(rest)?;
        Ok(ControlFlow::Continue(()))
    }

    /// Drops an incomplete line.
    pub fn clear(&mut self) {
        self.partial.clear();
        self.partial.shrink_to(KEPT);
    }

    fn keep(&mut self, part: &[u8]) -> Result<(), TooLong> {
        self.check(self.partial.len() + part.len())?;
        self.partial.extend_from_slice(part);
        Ok(())
    }

    fn check(&mut self, length: usize) -> Result<(), TooLong> {
        if length > self.longest {
            self.clear();
            return Err(TooLong { longest: self.longest });
        }
        Ok(())
    }
}

impl Default for Lines {
    fn default() -> Self {
        Self::new(LONGEST)
    }
}

fn hand_out<B>(line: &[u8], each: &mut impl FnMut(&[u8]) -> ControlFlow<B>) -> ControlFlow<B> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.is_empty() { ControlFlow::Continue(()) } else { each(line) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn collect(lines: &mut Lines, chunk: &[u8]) -> Vec<String> {
        let mut found = Vec::new();
        let flow: ControlFlow<()> = lines
            .feed(chunk, |line| {
                found.push(String::from_utf8(line.to_vec()).unwrap());
                ControlFlow::Continue(())
            })
            .unwrap();
        assert!(flow.is_continue());
        found
    }

    #[test]
    fn hands_out_a_line_where_it_lies() {
        let chunk = b"one\ntwo\n".to_vec();
        let within = chunk.as_ptr_range();
        let mut lines = Lines::default();
        let flow: Result<ControlFlow<()>, TooLong> = lines.feed(&chunk, |line| {
            assert!(within.contains(&line.as_ptr()), "the line was copied");
            ControlFlow::Continue(())
        });
        assert!(flow.is_ok());
    }

    #[test]
    fn leaves_out_empty_lines_and_carriage_returns() {
        assert_eq!(collect(&mut Lines::default(), b"\n\r\none\r\n\n"), ["one"]);
    }

    #[test]
    fn a_break_drops_the_rest_of_the_chunk() {
        let mut lines = Lines::default();
        let flow = lines.feed(b"stop\nlost\npart", |line| ControlFlow::Break(line.len())).unwrap();
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
    fn refuses_a_line_that_is_too_long_whole_or_in_parts() {
        let each = |_line: &[u8]| ControlFlow::<()>::Continue(());
        assert_eq!(Lines::new(3).feed(b"four\n", each), Err(TooLong { longest: 3 }));
        let mut lines = Lines::new(3);
        assert!(lines.feed(b"fo", each).is_ok());
        assert_eq!(lines.feed(b"ur", each), Err(TooLong { longest: 3 }));
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
