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
}

/// A message, and what follows it.
type Cut<'a> = (&'a [u8], &'a [u8]);

const HEAD: usize = size_of::<u32>();

impl Messages {
    /// A splitter of messages of at most `longest` bytes.
    #[must_use]
    pub const fn new(longest: usize) -> Self {
        Self { partial: Vec::new(), longest }
    }

    /// Calls `each` with each message that ends in `chunk`, until `each` breaks.
    ///
    /// The part after the last message is kept for the next chunk, and lost after a break.
    ///
    /// # Errors
    /// [`TooLong`] when a message is longer than the limit; the rest of the body cannot be read.
    pub fn feed<B>(
        &mut self,
        chunk: &[u8],
        mut each: impl FnMut(&[u8]) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>, TooLong> {
        let mut rest = chunk;
        while !rest.is_empty() {
            let whole = if self.partial.is_empty() { self.whole(rest)? } else { None };
            let flow = if let Some((message, tail)) = whole {
                rest = tail;
                each(message)
            } else {
                let (part, tail) = rest.split_at(self.missing()?.min(rest.len()));
                self.partial.extend_from_slice(part);
                rest = tail;
                // A length that is now complete says how much more is missing.
                if self.missing()? > 0 {
                    continue;
                }
                let flow = each(&self.partial[HEAD..]);
                self.clear();
                flow
            };
            if flow.is_break() {
                self.clear();
                return Ok(flow);
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Drops an incomplete message.
    pub fn clear(&mut self) {
        self.partial.clear();
        self.partial.shrink_to(KEPT);
    }

    /// The message at the beginning of `bytes`, if it is all there, and what follows it.
    fn whole<'a>(&mut self, bytes: &'a [u8]) -> Result<Option<Cut<'a>>, TooLong> {
        let Some((head, tail)) = bytes.split_first_chunk() else { return Ok(None) };
        Ok(tail.split_at_checked(self.length(*head)?))
    }

    /// Number of bytes that are missing of the message that has begun, or of its length.
    fn missing(&mut self) -> Result<usize, TooLong> {
        match self.partial.split_first_chunk() {
            Some((head, content)) => {
                let (head, come) = (*head, content.len());
                Ok(self.length(head)?.saturating_sub(come))
            }
            None => Ok(HEAD - self.partial.len()),
        }
    }

    fn length(&mut self, head: [u8; HEAD]) -> Result<usize, TooLong> {
        let length = usize::try_from(u32::from_be_bytes(head)).unwrap_or(usize::MAX);
        if length > self.longest {
            self.clear();
            return Err(TooLong { longest: self.longest });
        }
        Ok(length)
    }
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

    fn collect(messages: &mut Messages, chunk: &[u8]) -> Result<Vec<Vec<u8>>, TooLong> {
        let mut found = Vec::new();
        let flow = messages.feed(chunk, |message| {
            found.push(message.to_vec());
            ControlFlow::<()>::Continue(())
        })?;
        assert!(flow.is_continue());
        Ok(found)
    }

    proptest! {
        #[test]
        fn chunks_do_not_matter(
            sent in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 0..8),
            size in 1_usize..30,
        ) {
            let bytes: Vec<u8> = sent.iter().flat_map(|message| framed(message)).collect();
            let mut messages = Messages::default();
            let mut found = Vec::new();
            for chunk in bytes.chunks(size) {
                found.extend(collect(&mut messages, chunk).unwrap());
            }
            prop_assert_eq!(found, sent);
            prop_assert!(messages.partial.is_empty());
        }
    }

    #[test]
    fn hands_out_a_message_where_it_lies() {
        let chunk = [framed(b"one"), framed(b"two")].concat();
        let within = chunk.as_ptr_range();
        let flow: Result<ControlFlow<()>, TooLong> = Messages::default().feed(&chunk, |message| {
            assert!(within.contains(&message.as_ptr()), "the message was copied");
            ControlFlow::Continue(())
        });
        assert!(flow.is_ok());
    }

    #[test]
    fn a_break_drops_the_rest_of_the_chunk() {
        let mut messages = Messages::default();
        let chunk = [framed(b"stop"), framed(b"lost"), vec![0, 0]].concat();
        let flow = messages.feed(&chunk, |message| ControlFlow::Break(message.len())).unwrap();
        assert_eq!(flow, ControlFlow::Break(4));
        assert_eq!(collect(&mut messages, &framed(b"next")).unwrap(), [b"next"]);
    }

    #[test]
    fn what_is_too_long_is_refused_before_it_comes() {
        let mut messages = Messages::new(4);
        assert_eq!(collect(&mut messages, &framed(b"four")).unwrap(), [b"four"]);
        assert_eq!(collect(&mut messages, &[0, 0, 0, 5]), Err(TooLong { longest: 4 }));
        assert_eq!(collect(&mut messages, &[0, 0]), Ok(vec![]));
        assert_eq!(collect(&mut messages, &[1, 0]), Err(TooLong { longest: 4 }));
        assert_eq!(collect(&mut messages, &framed(b"next")).unwrap(), [b"next"]);
    }

    #[test]
    fn a_large_buffer_is_given_back() {
        let mut messages = Messages::default();
        let large = framed(&vec![7; 8 * KEPT]);
        let (head, tail) = large.split_at(large.len() / 2);
        assert!(collect(&mut messages, head).unwrap().is_empty());
        assert_eq!(collect(&mut messages, tail).unwrap().len(), 1);
        assert!(messages.partial.capacity() <= KEPT);
    }
}
