//! The messages of a watch in protobuf.

use std::ops::ControlFlow;

use super::{KEPT, LONGEST, TooLong};

/// A splitter of messages, each preceded by its length in four bytes, from chunks of any size.
///
/// A message within one chunk is borrowed from the chunk; only a message that spans chunks is copied. The buffer for
/// that is kept between messages, up to [`KEPT`].
///
/// # Upstream
/// `LengthDelimitedFramer` of `apimachinery/pkg/runtime/serializer/protobuf`: the length is big-endian.
#[derive(Debug)]
pub struct Messages {
    /// Length and content, as far as they were received.
    partial: Vec<u8>,
    longest: usize,
    /// Number of bytes that remain of a message that is too long.
    skipped: usize,
}

/// The number of bytes before each message.
const HEAD: usize = size_of::<u32>();

impl Messages {
    /// A splitter of messages of at most `longest` bytes.
    #[must_use]
    pub const fn new(longest: usize) -> Self {
        Self { partial: Vec::new(), longest, skipped: 0 }
    }

    /// Calls `each` with each message that ends in `chunk`, until `each` breaks.
    ///
    /// For a message that is longer than the limit `each` is called once with [`TooLong`], and its bytes are skipped. The
    /// part after the last message is kept for the next chunk, and lost after a break.
    pub fn feed<B>(
        &mut self,
        chunk: &[u8],
        mut each: impl FnMut(Result<&[u8], TooLong>) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        let mut rest = chunk;
        while !rest.is_empty() {
            if self.skipped > 0 {
                let skipped = self.skipped.min(rest.len());
                self.skipped -= skipped;
                rest = &rest[skipped..];
                continue;
            }
            let begun = self.partial.len();
            if begun < HEAD && (begun > 0 || rest.len() < HEAD) {
                let (part, tail) = rest.split_at((HEAD - begun).min(rest.len()));
                self.partial.extend_from_slice(part);
                rest = tail;
                if self.partial.len() < HEAD {
                    continue;
                }
            }
            let length = length_of(if self.partial.is_empty() { rest } else { &self.partial });
            let flow = if length > self.longest {
                if self.partial.is_empty() {
                    rest = &rest[HEAD..];
                }
                self.partial.clear();
                self.skipped = length;
                each(Err(TooLong { longest: self.longest }))
            } else if self.partial.is_empty() {
                if let Some((message, tail)) = rest[HEAD..].split_at_checked(length) {
                    rest = tail;
                    each(Ok(message))
                } else {
                    self.partial.extend_from_slice(rest);
                    rest = &[];
                    continue;
                }
            } else {
                let missing = HEAD + length - self.partial.len();
                let (part, tail) = rest.split_at(missing.min(rest.len()));
                self.partial.extend_from_slice(part);
                rest = tail;
                if part.len() < missing {
                    continue;
                }
                let flow = each(Ok(&self.partial[HEAD..]));
                self.clear();
                flow
            };
            if flow.is_break() {
                self.clear();
                return flow;
            }
        }
        ControlFlow::Continue(())
    }

    /// Drops an incomplete message.
    fn clear(&mut self) {
        self.partial.clear();
        self.partial.shrink_to(KEPT);
    }
}

/// The length of the message at the beginning of `bytes`, which hold it.
fn length_of(bytes: &[u8]) -> usize {
    let head = bytes.first_chunk().expect("the length must have been received");
    usize::try_from(u32::from_be_bytes(*head)).unwrap_or(usize::MAX)
}

impl Default for Messages {
    fn default() -> Self {
        Self::new(LONGEST)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn framed(message: &[u8]) -> Vec<u8> {
        [&u32::try_from(message.len()).unwrap().to_be_bytes(), message].concat()
    }

    fn collect(messages: &mut Messages, chunk: &[u8]) -> Vec<Result<Vec<u8>, TooLong>> {
        let mut found = Vec::new();
        let flow = messages.feed(chunk, |message| {
            found.push(message.map(<[u8]>::to_vec));
            ControlFlow::<()>::Continue(())
        });
        assert!(flow.is_continue());
        found
    }

    const LIMIT: usize = 12;

    proptest! {
        #[test]
        fn chunks_do_not_matter(
            sent in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 0..8),
            size in 1_usize..30,
        ) {
            let bytes: Vec<u8> = sent.iter().flat_map(|message| framed(message)).collect();
            let mut messages = Messages::new(LIMIT);
            let mut found = Vec::new();
            for chunk in bytes.chunks(size) {
                found.extend(collect(&mut messages, chunk));
            }
            let expected: Vec<_> = sent
                .into_iter()
                .map(|message| if message.len() > LIMIT { Err(TooLong { longest: LIMIT }) } else { Ok(message) })
                .collect();
            prop_assert_eq!(found, expected);
            prop_assert!(messages.partial.is_empty());
        }
    }

    #[test]
    fn hands_out_a_message_where_it_lies() {
        let chunk = [framed(b"one"), framed(b"two")].concat();
        let within = chunk.as_ptr_range();
        let flow: ControlFlow<()> = Messages::default().feed(&chunk, |message| {
            assert!(within.contains(&message.unwrap().as_ptr()), "the message was copied");
            ControlFlow::<()>::Continue(())
        });
        assert!(flow.is_continue());
    }

    #[test]
    fn a_break_drops_the_rest_of_the_chunk() {
        let mut messages = Messages::default();
        let chunk = [framed(b"stop"), framed(b"lost"), vec![0, 0]].concat();
        let flow = messages.feed(&chunk, |message| ControlFlow::Break(message.unwrap().len()));
        assert_eq!(flow, ControlFlow::Break(4));
        assert_eq!(collect(&mut messages, &framed(b"next")), [Ok(b"next".to_vec())]);
    }

    #[test]
    fn a_message_that_is_too_long_is_reported_before_it_comes_and_skipped() {
        let mut messages = Messages::new(4);
        assert_eq!(collect(&mut messages, &framed(b"four")), [Ok(b"four".to_vec())]);
        assert_eq!(collect(&mut messages, &[0, 0]), []);
        assert_eq!(collect(&mut messages, &[1, 0]), [Err(TooLong { longest: 4 })]);
        assert_eq!(collect(&mut messages, &[7; 255]), []);
        assert_eq!(collect(&mut messages, &[&[7][..], &framed(b"next")].concat()), [Ok(b"next".to_vec())]);
    }

    #[test]
    fn a_large_buffer_is_given_back() {
        let mut messages = Messages::default();
        let large = framed(&vec![7; 8 * KEPT]);
        let (head, tail) = large.split_at(large.len() / 2);
        assert!(collect(&mut messages, head).is_empty());
        assert_eq!(collect(&mut messages, tail).len(), 1);
        assert!(messages.partial.capacity() <= KEPT);
    }
}
