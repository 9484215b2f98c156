//! Framing of a watch body: splits its bytes into events.

mod lines;
mod messages;

use std::ops::ControlFlow;

pub use lines::Lines;
pub use messages::Messages;

/// The longest event that is read: many times what etcd stores of one object, and still bounded.
pub const LONGEST: usize = 32 << 20;
/// The size up to which a buffer is kept between events.
pub const KEPT: usize = 16 << 10;

/// The error for an event longer than the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event is longer than {longest} bytes")]
pub struct TooLong {
    /// The limit, in bytes.
    pub longest: usize,
}

/// The framing of a body.
#[derive(Debug)]
pub(crate) enum Frames {
    /// As lines of JSON.
    Lines(Lines),
    /// As messages of protobuf, each behind its length.
    Messages(Messages),
}

/// The bytes of one event.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Frame<'a> {
    /// A line.
    Line(&'a [u8]),
    /// A message.
    Message(&'a [u8]),
    /// An event whose bytes are skipped.
    TooLong(TooLong),
}

impl Frames {
    /// The framing at the beginning of a body.
    pub(crate) fn of(is_protobuf: bool) -> Self {
        if is_protobuf { Self::Messages(Messages::default()) } else { Self::Lines(Lines::default()) }
    }

    /// As [`Lines::feed`].
    pub(crate) fn feed<B>(
        &mut self,
        chunk: &[u8],
        mut each: impl FnMut(Frame<'_>) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        match self {
            Self::Lines(lines) => lines.feed(chunk, |line| each(line.map_or_else(Frame::TooLong, Frame::Line))),
            Self::Messages(messages) => {
                messages.feed(chunk, |message| each(message.map_or_else(Frame::TooLong, Frame::Message)))
            }
        }
    }
}

impl Default for Frames {
    fn default() -> Self {
        Self::of(false)
    }
}
