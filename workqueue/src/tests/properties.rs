//! Properties of the state under any sequence of inputs.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::prelude::*;

use super::model::Model;
use crate::limits::RetryLimits;
use crate::priority::Priority;
use crate::state::{State, Taken};

const AGEING: Duration = Duration::from_millis(20);

// Small enough for every bound to be met within one run.
const LIMITS: RetryLimits = RetryLimits {
    base: Duration::from_millis(5),
    max: Duration::from_millis(60),
    interval: Duration::from_millis(10),
    burst: 3,
};

#[derive(Clone, Copy, Debug)]
enum Input {
    Add(u8, Priority),
    AddAfter(u8, Duration, Priority),
    Retry(u8),
    Forget(u8),
    Take,
    Done(u8),
    Park(u8),
    Unpark(u8),
    Wait(Duration),
    ShutDown,
}

/// Inputs to a queue of few keys, so that they meet. Most runs never shut down.
fn inputs() -> impl Strategy<Value = Vec<Input>> {
    let key = || 0..6_u8;
    let input = prop_oneof![
        6 => (key(), priority()).prop_map(|(key, priority)| Input::Add(key, priority)),
        4 => (key(), millis(0..40), priority()).prop_map(|(key, delay, priority)| Input::AddAfter(key, delay, priority)),
        3 => key().prop_map(Input::Retry),
        1 => key().prop_map(Input::Forget),
        8 => Just(Input::Take),
        6 => key().prop_map(Input::Done),
        3 => key().prop_map(Input::Park),
        3 => key().prop_map(Input::Unpark),
        5 => millis(0..30).prop_map(Input::Wait),
    ];
    let end = prop_oneof![4 => Just(Vec::new()), 1 => proptest::collection::vec(input.clone(), 1..60)];
    (proptest::collection::vec(input, 1..200), end).prop_map(|(mut inputs, end)| {
        if !end.is_empty() {
            inputs.push(Input::ShutDown);
        }
        inputs.extend(end);
        inputs
    })
}

fn priority() -> impl Strategy<Value = Priority> {
    prop_oneof![Just(Priority::Live), Just(Priority::Initial)]
}

fn millis(range: std::ops::Range<u64>) -> impl Strategy<Value = Duration> {
    range.prop_map(Duration::from_millis)
}

/// A state with the clock that drives it.
struct Run {
    state: State<u8>,
    now: Duration,
}

impl Run {
    fn new() -> Self {
        Self { state: State::new(LIMITS, AGEING), now: Duration::ZERO }
    }

    /// Returns the key that was taken, if the input was to take one and there was one.
    fn input(&mut self, input: Input) -> Option<u8> {
        let now = self.now;
        match input {
            Input::Add(key, priority) => self.state.add(key, priority, now),
            Input::AddAfter(key, delay, priority) => self.state.add_after(key, delay, priority, now),
            Input::Retry(key) => self.state.retry(key, Duration::MAX, now),
            Input::Forget(key) => self.state.forget(&key, now),
            Input::Done(key) => {
                self.state.done(&key, now);
            }
            Input::Park(key) => {
                self.state.park(&key, now);
            }
            Input::Unpark(key) => self.state.unpark(&key, now),
            Input::Wait(duration) => self.now += duration,
            Input::ShutDown => self.state.shut_down(now),
            Input::Take => return self.take(),
        }
        None
    }

    fn inputs(&mut self, inputs: impl IntoIterator<Item = Input>) {
        for input in inputs {
            self.input(input);
        }
    }

    fn take(&mut self) -> Option<u8> {
        match self.state.take(self.now) {
            Taken::Key { key, .. } => Some(key),
            Taken::NothingBefore { .. } | Taken::ShutDown => None,
        }
    }

    /// Takes all that is ready, in order.
    fn take_all(&mut self) -> Vec<u8> {
        std::iter::from_fn(|| self.take()).collect()
    }

    /// Finishes and unparks every key, waits for every delay, and processes every key.
    fn work_off(&mut self) -> Vec<u8> {
        let snapshot = self.state.snapshot(self.now);
        self.inputs(snapshot.processing.iter().map(|held| Input::Done(held.key)));
        self.inputs(snapshot.parked.iter().map(|held| Input::Unpark(held.key)));
        self.now += Duration::from_hours(1);
        let mut taken = Vec::new();
        while let Some(key) = self.take() {
            taken.push(key);
            self.state.done(&key, self.now);
        }
        taken
    }
}

proptest! {
    #[test]
    fn the_state_does_what_the_naive_model_does(inputs in inputs()) {
        let mut run = Run::new();
        let mut model = Model::new(LIMITS, AGEING);
        for input in inputs {
            let taken = run.input(input);
            let now = run.now;
            model.advance(now);
            match input {
                Input::Add(key, priority) => model.add(key, priority, now),
                Input::AddAfter(key, delay, priority) => model.add_after(key, delay, priority, now),
                Input::Retry(key) => model.retry(key, now),
                Input::Forget(key) => model.forget(key),
                Input::Done(key) => model.done(key, now),
                Input::Park(key) => model.park(key, now),
                Input::Unpark(key) => model.unpark(key, now),
                Input::Wait(_) => {}
                Input::ShutDown => model.shut_down(),
                Input::Take => prop_assert_eq!(taken, model.take(now)),
            }
            prop_assert_eq!(run.state.snapshot(now), model.snapshot(now), "after {:?}", input);
        }
    }

    #[test]
    fn every_add_is_followed_by_a_take(inputs in inputs()) {
        let mut run = Run::new();
        let mut owed = BTreeSet::new();
        let mut owed_later = BTreeSet::new();
        for input in inputs {
            let taken = run.input(input);
            match input {
                Input::Add(key, _) => {
                    owed.insert(key);
                }
                Input::AddAfter(key, ..) | Input::Retry(key) => {
                    owed_later.insert(key);
                }
                // From here on nothing is accepted, and what was delayed is dropped.
                Input::ShutDown => return Ok(()),
                Input::Take | Input::Forget(_) | Input::Done(_) | Input::Park(_) | Input::Unpark(_) | Input::Wait(_) => {}
            }
            if let Some(key) = taken {
                owed.remove(&key);
                if !run.state.snapshot(run.now).delayed.iter().any(|delayed| delayed.key == key) {
                    owed_later.remove(&key);
                }
            }
        }
        let taken: BTreeSet<_> = run.work_off().into_iter().collect();
        prop_assert!(owed.is_subset(&taken), "owed {owed:?}, taken {taken:?}");
        prop_assert!(owed_later.is_subset(&taken), "owed later {owed_later:?}, taken {taken:?}");
    }

    #[test]
    fn no_key_is_handed_out_twice_at_once(inputs in inputs()) {
        let mut run = Run::new();
        let mut out_of_reach = BTreeSet::new();
        for input in inputs {
            if let Some(key) = run.input(input) {
                prop_assert!(out_of_reach.insert(key), "{key} is processing or parked");
            }
            let snapshot = run.state.snapshot(run.now);
            out_of_reach = snapshot.processing.iter().chain(&snapshot.parked).map(|held| held.key).collect();
        }
    }

    #[test]
    fn the_earliest_of_several_delays_and_the_highest_of_their_priorities_win(
        delays in proptest::collection::vec((millis(1..50), priority()), 1..8),
    ) {
        let mut run = Run::new();
        for (delay, priority) in &delays {
            run.input(Input::AddAfter(1, *delay, *priority));
        }
        let earliest = delays.iter().map(|(delay, _)| *delay).min().expect("there is one");
        run.now = earliest.saturating_sub(Duration::from_nanos(1));
        prop_assert_eq!(run.take(), None);
        run.now = earliest;
        // Key 2 stands behind key 1 among live keys and before it if key 1 is not live.
        run.input(Input::Add(2, Priority::Live));
        let is_live = delays.iter().any(|(_, priority)| *priority == Priority::Live);
        prop_assert_eq!(run.take_all(), if is_live { [1, 2] } else { [2, 1] });
        run.input(Input::Done(1));
        prop_assert_eq!(run.work_off(), [], "the later ones have merged into the earliest");
    }

    #[test]
    fn the_highest_priority_wins_and_within_one_the_first_goes_first(
        adds in proptest::collection::vec((0..20_u8, priority()), 1..80),
    ) {
        let mut run = Run::new();
        let mut since = BTreeMap::new();
        for (at, (key, priority)) in adds.iter().enumerate() {
            run.input(Input::Add(*key, *priority));
            let place = since.entry(*key).or_insert((*priority, at));
            if *priority > place.0 {
                *place = (*priority, at);
            }
        }
        let mut expected: Vec<_> = since.keys().copied().collect();
        expected.sort_by_key(|key| (std::cmp::Reverse(since[key].0), since[key].1));
        prop_assert_eq!(run.take_all(), expected);
    }

    #[test]
    fn neither_priority_starves(
        initial in 1..10_u8,
        live_first in 0..10_u8,
        arrivals in proptest::collection::vec(0..3_u8, 60),
    ) {
        // The initial keys have aged, and live ones go on arriving, the same again and again.
        let mut run = Run::new();
        run.inputs((100..100 + initial).map(|key| Input::Add(key, Priority::Initial)));
        run.now += AGEING;
        run.inputs((0..live_first).map(|key| Input::Add(key, Priority::Live)));
        let mut gets: BTreeMap<u8, usize> = BTreeMap::new();
        for (nth, arriving) in (1..).zip(arrivals) {
            run.inputs((50..50 + arriving).map(|key| Input::Add(key, Priority::Live)));
            if let Some(key) = run.take() {
                gets.entry(key).or_insert(nth);
                run.input(Input::Done(key));
            }
        }
        for key in 100..100 + initial {
            prop_assert!(gets[&key] <= 2 * usize::from(key - 99), "initial {key} was get {}", gets[&key]);
        }
        for key in 0..live_first {
            prop_assert!(gets[&key] <= 2 * usize::from(key + 1), "live {key} was get {}", gets[&key]);
        }
    }

    #[test]
    fn raising_a_key_never_makes_it_wait_longer(
        adds in proptest::collection::vec((0..20_u8, priority()), 1..40),
        raised in 0..20_u8,
        age in millis(0..40),
    ) {
        let mut plain = Run::new();
        let mut with_raise = Run::new();
        for run in [&mut plain, &mut with_raise] {
            run.inputs(adds.iter().map(|(key, priority)| Input::Add(*key, *priority)));
            run.input(Input::Wait(age));
        }
        with_raise.input(Input::Add(raised, Priority::Live));
        let place = |run: &mut Run| run.take_all().iter().position(|key| *key == raised);
        if let Some(before) = place(&mut plain) {
            prop_assert!(place(&mut with_raise).is_some_and(|after| after <= before));
        }
    }

    #[test]
    fn only_a_retry_counts_as_a_failure_and_only_forgetting_resets_it(inputs in inputs()) {
        let mut run = Run::new();
        let mut failures = [0; 6];
        for input in inputs {
            run.input(input);
            match input {
                Input::Retry(key) => failures[usize::from(key)] += 1,
                Input::Forget(key) => failures[usize::from(key)] = 0,
                Input::ShutDown => return Ok(()),
                Input::Add(..) | Input::AddAfter(..) | Input::Take | Input::Done(_) | Input::Park(_) | Input::Unpark(_)
                | Input::Wait(_) => {}
            }
            prop_assert_eq!([0, 1, 2, 3, 4, 5].map(|key| run.state.failures(&key)), failures);
        }
    }

    #[test]
    fn a_parked_key_comes_back_exactly_if_it_was_added(
        before_park in any::<bool>(), while_parked in any::<bool>(), due_while_parked in any::<bool>(),
    ) {
        let mut run = Run::new();
        run.input(Input::Add(1, Priority::Live));
        prop_assert_eq!(run.take(), Some(1));
        if before_park {
            run.input(Input::Add(1, Priority::Live));
        }
        if due_while_parked {
            run.input(Input::AddAfter(1, Duration::from_millis(5), Priority::Live));
        }
        run.input(Input::Park(1));
        if while_parked {
            run.input(Input::Add(1, Priority::Live));
        }
        run.input(Input::Wait(Duration::from_millis(5)));
        prop_assert_eq!(run.take(), None, "it is parked");
        run.input(Input::Done(1));
        prop_assert_eq!(run.take(), None, "it is parked, not processing");
        run.input(Input::Unpark(1));
        prop_assert_eq!(run.take().is_some(), before_park || while_parked || due_while_parked);
    }

    #[test]
    fn looking_more_often_changes_nothing(inputs in inputs(), pause in millis(1..10)) {
        let mut seldom = Run::new();
        let mut often = Run::new();
        for input in inputs {
            let mut look = often.now;
            prop_assert_eq!(seldom.input(input), often.input(input));
            while look <= often.now {
                often.state.advance(look);
                look += pause;
            }
        }
        prop_assert_eq!(seldom.state.snapshot(seldom.now), often.state.snapshot(often.now));
        prop_assert_eq!(seldom.work_off(), often.work_off());
    }

    #[test]
    fn an_idle_key_without_failures_takes_no_memory(inputs in inputs()) {
        let mut run = Run::new();
        run.inputs(inputs);
        run.work_off();
        run.inputs((0..6).map(Input::Forget));
        prop_assert_eq!(run.state.snapshot(run.now).remembered, 0);
    }
}
