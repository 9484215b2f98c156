//! Rules that hold for any body of a watch, the body of the fuzz target in `fuzz/`, which `cargo test` calls with
//! seeded mutations.
#![allow(dead_code, unreachable_pub, reason = "each program that includes this uses a part of it")]

use std::ops::ControlFlow;

use kcm_api::PartialObjectMeta;
use kcm_informers::Event;
use kcm_informers::frames::{Lines, Messages, TooLong};

const LONGEST: usize = 4096;

/// A body of a watch, whose first byte is the length of its chunks: its events do not depend on how it is cut, and each is
/// read or refused.
pub fn watch(bytes: &[u8]) {
    let Some((first, body)) = bytes.split_first() else { return };
    let chunks = || body.chunks(usize::from(*first) + 1);
    let (mut whole, mut cut) = (Vec::new(), Vec::new());
    lines(std::iter::once(body), &mut whole);
    lines(chunks(), &mut cut);
    assert_eq!(whole, cut);
    for line in whole.iter().flatten() {
        let (split, parsed) = (Event::split(line), Event::parse(line));
        if let (Ok(split), Ok(parsed)) = (&split, &parsed) {
            assert_eq!(split.kind, parsed.kind);
        }
        assert!(split.is_ok() || parsed.is_err(), "the fixed order reads less than JSON does");
        [split, parsed].into_iter().flatten().for_each(read);
    }
    let (mut whole, mut cut) = (Vec::new(), Vec::new());
    messages(std::iter::once(body), &mut whole);
    messages(chunks(), &mut cut);
    assert_eq!(whole, cut);
    whole.iter().flatten().filter_map(|message| Event::of_message(message).ok()).for_each(read);
}

fn read(event: Event<'_>) {
    drop(event.object.decode::<PartialObjectMeta>());
}

fn lines<'a>(chunks: impl Iterator<Item = &'a [u8]>, found: &mut Vec<Option<Vec<u8>>>) {
    let mut lines = Lines::new(LONGEST);
    for chunk in chunks {
        let flow = lines.feed(chunk, |line| note(line, found));
        assert!(flow.is_continue());
    }
}

fn messages<'a>(chunks: impl Iterator<Item = &'a [u8]>, found: &mut Vec<Option<Vec<u8>>>) {
    let mut messages = Messages::new(LONGEST);
    for chunk in chunks {
        let flow = messages.feed(chunk, |message| note(message, found));
        assert!(flow.is_continue());
    }
}

fn note(frame: Result<&[u8], TooLong>, found: &mut Vec<Option<Vec<u8>>>) -> ControlFlow<()> {
    found.push(frame.ok().map(<[u8]>::to_vec));
    ControlFlow::Continue(())
}
