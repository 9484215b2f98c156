//! Rules that hold after any inputs.

use proptest::prelude::*;

use super::*;

fn any_input() -> impl Strategy<Value = Input> {
    let number = 1_u64..50;
    prop_oneof![
        3 => Just(Input::Deadline),
        3 => Just(Input::ResponseStarted),
        1 => Just(Input::Data),
        1 => Just(Input::UnreadableEvent),
        1 => Just(Input::PageTooLarge),
        1 => number.clone().prop_map(|number| Input::Object(Some(version(number)))),
        1 => (number.clone(), any::<bool>()).prop_map(|(number, ends)| bookmark(number, ends)),
        1 => (number, any::<bool>()).prop_map(|(number, more)| page(number, more.then_some("t"))),
        1 => Just(Input::Ended),
        1 => prop_oneof![
            Just(Failure::Expired),
            Just(Failure::Unsupported),
            Just(Failure::Refused),
            Just(Failure::Denied),
            Just(Failure::Broken),
            Just(Failure::Panicked),
            Just(Failure::Busy { retry_after: None }),
        ]
        .prop_map(Input::Failed),
    ]
}

/// An event of the connection before an input.
#[derive(Debug, Clone, Copy)]
enum Before {
    Nothing,
    Lost,
    Restored,
}

fn before_an_input() -> impl Strategy<Value = Before> {
    prop_oneof![8 => Just(Before::Nothing), 1 => Just(Before::Lost), 3 => Just(Before::Restored)]
}

proptest! {
    #[test]
    fn whatever_happens_it_asks_again_within_bounds_and_never_watches_without_a_version(
        inputs in prop::collection::vec((before_an_input(), any_input(), 0_u64..200_000), 0..80),
    ) {
        let mut protocol = Protocol::new(3);
        let mut now = Duration::ZERO;
        let (mut committed, mut connected) = (false, true);
        for (before, input, passed) in inputs {
            now += Duration::from_millis(passed);
            match before {
                Before::Nothing => {}
                Before::Lost => {
                    connected = false;
                    protocol.connection_lost();
                }
                Before::Restored => {
                    connected = true;
                    drop(protocol.connection_restored(now));
                }
            }
            let input = if now >= protocol.deadline() { Input::Deadline } else { input };
            match protocol.step(input, now) {
                Effect::Open(_) if !connected => prop_assert!(false, "nothing is requested without a connection"),
                Effect::Commit(_) => committed = true,
                Effect::Open(ListWatchRequest::Watch { .. }) | Effect::Apply | Effect::Advance(_) => {
                    prop_assert!(committed, "nothing live before a complete list");
                }
                Effect::Nothing | Effect::Open(_) | Effect::Close(_) | Effect::Stage => {}
            }
            let deadline = protocol.deadline();
            prop_assert!(deadline <= now + Protocol::SILENCE || !connected, "always comes back");
        }
        drop(protocol.connection_restored(now));
        prop_assert!(protocol.deadline() <= now + Protocol::SILENCE, "comes back with the connection");
    }
}
