//! Random choices that shrink, and running a property over many of them.

use std::any::Any;
use std::future::Future;
use std::sync::mpsc;
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// Maximum real time of a case, to detect endless loops.
const PATIENCE: Duration = Duration::from_mins(1);

/// A list of numbers that decides every choice. After its end, each choice is the first and simplest option.
#[derive(Debug, Clone)]
pub(crate) struct Choices(std::vec::IntoIter<u32>);

impl Choices {
    pub(crate) fn next(&mut self) -> u32 {
        self.0.next().unwrap_or(0)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.next() as usize % limit.max(1)
    }

    /// Returns `true` once in `times` calls on average.
    pub(crate) fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == times - 1
    }

    pub(crate) fn one<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())].clone()
    }

    pub(crate) fn bytes(&mut self, most: usize) -> Vec<u8> {
        (0..self.below(most)).map(|_| self.next().to_le_bytes()[0]).collect()
    }
}

/// Checks a property for many lists of choices, each in a runtime of its own whose clock is paused.
///
/// A panic fails the case wherever it happens, and so does a case that does not end.
pub(crate) fn hold<F: Future<Output = ()> + 'static>(cases: u32, most_choices: usize, property: fn(Choices) -> F) {
    let cases = std::env::var("FUZZ_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(cases);
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 500, ..Config::default() };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let choices = prop::collection::vec(any::<u32>(), 0..most_choices);
    let outcome = TestRunner::new_with_rng(config, rng)
        .run(&choices, |choices| try_one(property, choices).map_err(TestCaseError::fail));
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
}

/// Checks a property without choices, in the same way.
pub(crate) fn hold_once<F: Future<Output = ()> + 'static>(property: fn(Choices) -> F) {
    try_one(property, Vec::new()).unwrap_or_else(|failure| panic!("{failure}"));
}

fn try_one<F: Future<Output = ()> + 'static>(property: fn(Choices) -> F, choices: Vec<u32>) -> Result<(), String> {
    let (ended, waiting) = mpsc::channel();
    let case = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.expect("a runtime can be built").block_on(property(Choices(choices.into_iter())));
        ended.send(()).expect("the test waits");
    });
    match waiting.recv_timeout(PATIENCE) {
        Err(mpsc::RecvTimeoutError::Timeout) => Err(format!("the case is not over after {PATIENCE:?}")),
        Ok(()) | Err(mpsc::RecvTimeoutError::Disconnected) => case.join().map_err(|panic| text_of(&*panic)),
    }
}

fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without a text").to_owned()
}
