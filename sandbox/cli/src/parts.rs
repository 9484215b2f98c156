//! What runs in a sandbox, each part a task, none of which ends unnoticed.

use std::any::Any;
use std::panic::AssertUnwindSafe;

use futures::FutureExt as _;
use tokio::task::JoinSet;

/// The parts that run; they are aborted when this is dropped.
#[derive(Default)]
pub(super) struct Parts {
    tasks: JoinSet<Ended>,
}

struct Ended {
    name: &'static str,
    outcome: Result<Result<(), String>, Box<dyn Any + Send>>,
}

impl Ended {
    /// Why it ended, if that is worth telling.
    fn failure(self) -> Option<String> {
        let Self { name, outcome } = self;
        match outcome {
            Ok(ended) => ended.err(),
            // What the panic said has been printed with its place.
            Err(_) => Some(format!("{name} panicked: this is a bug of this program")),
        }
    }
}

impl Parts {
    /// Starts a part; an error says in a sentence why it ended.
    pub(super) fn start(
        &mut self,
        name: &'static str,
        part: impl Future<Output = Result<(), String>> + Send + 'static,
    ) {
        self.tasks.spawn(async move { Ended { name, outcome: AssertUnwindSafe(part).catch_unwind().await } });
    }

    /// Waits for the first part to end while none was told to, and says why it did.
    ///
    /// # Cancellation
    /// Nothing is lost: a part that has ended stays to be told of.
    pub(super) async fn failure(&mut self) -> String {
        match self.tasks.join_next().await {
            Some(Ok(ended)) => {
                let name = ended.name;
                ended.failure().unwrap_or_else(|| format!("{name} ended by itself: this is a bug of this program"))
            }
            // Nobody aborts single parts.
            Some(Err(_)) | None => std::future::pending().await,
        }
    }

    /// Waits for all parts to end, which they have been told to, and returns what went wrong.
    pub(super) async fn ended(mut self) -> Vec<String> {
        let mut failures = Vec::new();
        while let Some(ended) = self.tasks.join_next().await {
            failures.extend(ended.ok().and_then(Ended::failure));
        }
        failures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn failure(part: impl Future<Output = Result<(), String>> + Send + 'static) -> String {
        let mut parts = Parts::default();
        parts.start("another part", std::future::pending());
        parts.start("the part", part);
        parts.failure().await
    }

    #[tokio::test]
    async fn a_part_that_fails_says_why() {
        assert_eq!(failure(async { Err("no more".to_owned()) }).await, "no more");
    }

    #[tokio::test]
    async fn a_part_that_panics_or_ends_by_itself_is_named() {
        let panics = async { panic!("this one is meant to") };
        assert_eq!(failure(panics).await, "the part panicked: this is a bug of this program");
        assert_eq!(failure(async { Ok(()) }).await, "the part ended by itself: this is a bug of this program");
    }

    #[tokio::test]
    async fn parts_that_end_when_told_are_no_failures() {
        let mut parts = Parts::default();
        parts.start("one", async { Ok(()) });
        parts.start("two", async { Err("could not finish".to_owned()) });
        assert_eq!(parts.ended().await, ["could not finish"]);
    }
}
