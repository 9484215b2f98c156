//! [`kill_after_each_write`]: a scenario with the manager killed after each write.

use crate::cluster::TestCluster;
use crate::environment::TestEnvironment;

/// Runs a scenario once without kills, and then once per write of the manager, with the manager killed after that write
/// has taken effect and before its response arrives. Returns the number of writes.
///
/// A new manager starts immediately, as under a kubelet. The scenario drives the cluster and asserts the final state, as
/// in any test; the only visible difference is the duration of a restart. Events are not counted as writes: losing one is
/// allowed.
///
/// # Panics
/// If an assertion of the scenario fails; the message is preceded by a line that names the write. If the manager writes
/// nothing, or a run has fewer writes than the first one, since then nothing was killed.
pub async fn kill_after_each_write(
    environment: impl Fn() -> TestEnvironment,
    scenario: impl AsyncFn(&TestCluster),
) -> usize {
    let cluster = environment().start().await;
    scenario(&cluster).await;
    let writes = cluster.writes().accepted();
    drop(cluster);
    assert!(writes > 0, "the manager writes nothing in this scenario, so there is nothing to kill it after");
    for number in 1..=writes {
        let cluster = environment().start().await;
        cluster.writes().kill_after(number);
        let named = OnPanic { number, writes };
        scenario(&cluster).await;
        assert_eq!(cluster.managers_started(), 2, "write {number} of {writes} was never sent");
        drop(named);
    }
    writes
}

/// Prints the killed write if the scenario panics.
struct OnPanic {
    number: usize,
    writes: usize,
}

impl Drop for OnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            #[expect(clippy::print_stderr, reason = "the test harness shows it beside the message of the panic")]
            {
                eprintln!("the manager was killed after write {} of {}", self.number, self.writes);
            }
        }
    }
}
