//! A control plane with one manager, measured phase by phase.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kcm_e2e_harness::aggregated_api::AggregatedApi;
use kcm_e2e_harness::control_plane::{ControlPlane, Options, free_ports};
use kcm_e2e_harness::peer_metrics::PeerMetrics;
use kcm_e2e_harness::process::Process;
use kcm_e2e_harness::requests::{Kind, Requests};
use kcm_e2e_harness::scenario::LIMITS;
use kcm_e2e_harness::subject::Subject;
use kcm_e2e_harness::wait::eventually_within;
use kcm_e2e_harness::{helpers, manager, nodes};
use tokio::process::Command;
use tokio::time::Instant;

use super::figures::{self, Figure, Phase};
use super::flaky_proxy::FlakyProxy;
use super::probe::Probe;
use super::self_metrics;
use super::workload::Workload;

/// Nodes that pods run on.
pub(super) const NODES: usize = 50;
/// The controllers that scenarios need beside those under test.
const HELPERS: [&str; 1] = ["garbage-collector-controller"];
/// How long a manager may take until it is idle.
const LIMIT: Duration = Duration::from_mins(10);
/// How long it may take to end.
const END: Duration = Duration::from_secs(30);

/// How a scenario is set up.
#[derive(Debug, Clone)]
pub(super) struct Setup {
    pub(super) subject: Subject,
    pub(super) controllers: String,
    /// The kind of object that shows that the manager works.
    pub(super) probe: Probe,
    /// The resources, with their subresources, that no client but the manager writes or gets: [`Figure::Requests`]. Where
    /// other clients do, the verbs that are the manager's alone stand before them, as in `PATCH nodes`.
    pub(super) requests: &'static [&'static str],
    /// The manager works all the time, and is never idle.
    pub(super) is_periodic: bool,
    /// The factor of [`Testbed::scaled`].
    pub(super) scale: f64,
    /// Further flags of the manager.
    pub(super) flags: Vec<String>,
    /// Run a scheduler, and nodes that run pods.
    pub(super) runs_pods: bool,
    /// Run upstream's garbage collector beside the manager, so that dependents of deleted objects are deleted.
    pub(super) collector: bool,
    /// Break the manager's connections at this interval.
    pub(super) break_every: Option<Duration>,
    /// Memory is read once the manager has been idle for so long.
    ///
    /// Go collects garbage by itself only every two minutes when idle (`runtime.forcegcperiod`), so what the peer has
    /// resident then may include garbage.
    pub(super) rest: Duration,
}

/// A manager on a control plane of its own.
pub(super) struct Testbed {
    // Dropped in this order: what uses the API server ends before it.
    manager: Process,
    helpers: Vec<Process>,
    proxy: Option<FlakyProxy>,
    /// The metrics of the peer.
    metrics: Option<PeerMetrics>,
    plane: ControlPlane,
    setup: Setup,
    phases: Vec<Phase>,
}

impl Testbed {
    /// Starts everything, and waits until the manager has reconciled a probe and is idle.
    pub(super) async fn start(setup: Setup) -> Result<Self> {
        // The last of two equal flags counts: this has addresses for thousands of services.
        let api_server_args = vec!["--service-cluster-ip-range=10.96.0.0/16".to_owned()];
        let (scheduler, kwok) = (setup.runs_pods, setup.runs_pods);
        let plane = ControlPlane::start(Options { scheduler, kwok, api_server_args, ..Options::default() }).await?;
        if setup.runs_pods {
            nodes::create(&plane.client(), "node", NODES).await?;
        }
        let helpers = if setup.collector { helpers::start(&plane, &HELPERS)? } else { Vec::new() };
        let proxy = match setup.break_every {
            Some(every) => Some(FlakyProxy::start(&plane, every).await?),
            None => None,
        };
        let metrics = match setup.subject {
            Subject::Ours => None,
            Subject::Peer => {
                let [port] = free_ports()?;
                Some(PeerMetrics::at(port)?)
            }
        };
        let manager = start_manager(&setup, &plane, proxy.as_ref(), metrics.as_ref())?;
        let mut testbed = Self { manager, helpers, proxy, metrics, plane, setup, phases: Vec::new() };
        testbed.probe("started").await?;
        testbed.rest().await?;
        Ok(testbed)
    }

    /// Does `work` and measures its cost until the manager is idle again.
    pub(super) async fn phase(&mut self, name: &str, work: impl AsyncFnOnce(&Workload) -> Result<()>) -> Result<()> {
        let workload = self.workload();
        let before = Requests::read(&workload.client).await?;
        let (cpu, server_cpu) = (self.manager.cpu_time()?, self.plane.api_server_cpu()?);
        let received = self.received().await;
        self.manager.forget_peak()?;
        let start = Instant::now();
        work(&workload).await.with_context(|| format!("phase {name}"))?;
        let wall = start.elapsed();
        let resident = self.rest().await?;
        let requests = Requests::read(&workload.client).await?.since(&before);
        let cpu = self.manager.cpu_time()?.saturating_sub(cpu);
        let server_cpu = self.plane.api_server_cpu()?.saturating_sub(server_cpu);
        let mut figures = BTreeMap::from([
            (Figure::Wall, wall.as_secs_f64()),
            (Figure::Cpu, cpu.as_secs_f64()),
            (Figure::Resident, as_f64(resident)),
            (Figure::Peak, as_f64(self.manager.peak_bytes()?)),
            (Figure::ServerCpu, server_cpu.as_secs_f64()),
        ]);
        // The bytes of a broken connection are no longer counted.
        if let (Some(before), Some(after), None) = (received, self.received().await, &self.proxy) {
            figures.insert(Figure::Received, as_f64(after.saturating_sub(before)));
        }
        let changes = requests.changes();
        if changes > 0 && !cpu.is_zero() {
            figures.insert(Figure::ChangesPerCpu, as_f64(changes) / cpu.as_secs_f64());
        }
        if !self.setup.requests.is_empty() {
            let theirs = requests.iter().filter(|(kind, _)| is_among(kind, self.setup.requests));
            let theirs = theirs.map(|(_, count)| count).sum();
            figures.insert(Figure::Requests, as_f64(theirs));
        }
        self.add_heap(&mut figures).await?;
        let requests = requests.iter().map(|(kind, count)| (format!("{} {}", kind.verb, kind.resource), count));
        self.phases.push(Phase { name: name.to_owned(), figures, requests: requests.collect() });
        Ok(())
    }

    /// Ends the manager, starts it again, and measures until it has reconciled something.
    pub(super) async fn restart(&mut self, name: &str) -> Result<()> {
        self.restart_after(name, async |_| Ok(())).await
    }

    /// Like [`restart`](Self::restart), with `work` that is done while no manager runs, and is not measured.
    pub(super) async fn restart_after(
        &mut self,
        name: &str,
        work: impl AsyncFnOnce(&Workload) -> Result<()>,
    ) -> Result<()> {
        self.manager.kill9()?;
        work(&self.workload()).await.with_context(|| format!("before phase {name}"))?;
        let logged = self.manager.printed()?.len();
        let server_cpu = self.plane.api_server_cpu()?;
        let probe = self.workload().begin_probe(name).await?;
        let start = Instant::now();
        self.manager = start_manager(&self.setup, &self.plane, self.proxy.as_ref(), self.metrics.as_ref())?;
        self.workload().end_probe(&probe).await?;
        let wall = start.elapsed();
        let resident = self.rest().await?;
        let server_cpu = self.plane.api_server_cpu()?.saturating_sub(server_cpu);
        let mut figures = BTreeMap::from([
            (Figure::Wall, wall.as_secs_f64()),
            (Figure::Cpu, self.manager.cpu_time()?.as_secs_f64()),
            (Figure::Resident, as_f64(resident)),
            (Figure::Peak, as_f64(self.manager.peak_bytes()?)),
            (Figure::ServerCpu, server_cpu.as_secs_f64()),
        ]);
        if let (Some(received), None) = (self.received().await, &self.proxy) {
            figures.insert(Figure::Received, as_f64(received));
        }
        let log = self.manager.printed()?;
        figures.extend(
            log.get(logged..).and_then(self_metrics::caches_full_in_log).map(|full| (Figure::CachesFull, full)),
        );
        self.add_heap(&mut figures).await?;
        self.phases.push(Phase { name: name.to_owned(), figures, requests: BTreeMap::new() });
        Ok(())
    }

    /// Adds the cost of each further pod to the later of two phases.
    pub(super) fn per_pod(&mut self, (earlier, later): (&str, &str), pods: u32) {
        let resident = |name| self.phases.iter().find(|it| it.name == name)?.figures.get(&Figure::Resident).copied();
        let (Some(before), Some(after)) = (resident(earlier), resident(later)) else { return };
        if let Some(phase) = self.phases.iter_mut().find(|it| it.name == later) {
            phase.figures.insert(Figure::PerPod, (after - before) / f64::from(pods));
        }
    }

    /// Adds latencies to the last phase: the median, the 99th percentile and the longest.
    pub(super) fn latencies(&mut self, latencies: &[Duration]) {
        if let Some(phase) = self.phases.last_mut() {
            phase.figures.extend(figures::of_latencies(latencies));
        }
    }

    /// Adds to the requests of the last phase those that the manager sent to an aggregated API, which kube-apiserver does not
    /// count.
    pub(super) fn aggregated_requests(&mut self, kind: &str, count: u64) {
        if let Some(phase) = self.phases.last_mut() {
            phase.requests.insert(kind.to_owned(), count);
            *phase.figures.entry(Figure::Requests).or_default() += as_f64(count);
        }
    }

    /// Starts an API server behind that of the testbed.
    pub(super) async fn aggregated_api(&self) -> Result<AggregatedApi> {
        AggregatedApi::start(self.plane.logs()).await
    }

    /// Waits until the manager has reconciled a probe.
    async fn probe(&mut self, name: &str) -> Result<()> {
        let workload = self.workload();
        let probe = workload.begin_probe(name).await?;
        workload.end_probe(&probe).await
    }

    fn workload(&self) -> Workload {
        Workload { client: self.plane.client(), probe: self.setup.probe }
    }

    /// A number of objects, as many times as the plan says.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "numbers of objects are positive and far below 2^32"
    )]
    pub(super) fn scaled(&self, count: usize) -> usize {
        (count as f64 * self.setup.scale).round() as usize
    }

    /// Adds the allocator's view, once everything else is measured: reading it costs something itself.
    async fn add_heap(&self, figures: &mut BTreeMap<Figure, f64>) -> Result<()> {
        let heap = match &self.metrics {
            None => self_metrics::heap_of(&self.manager).await,
            Some(metrics) => self_metrics::heap_in_metrics(&metrics.read().await?),
        };
        if let Some(heap) = heap {
            figures.extend([(Figure::Live, heap.live), (Figure::Held, heap.held)]);
        }
        Ok(())
    }

    /// Longest wait of a key; ends ours, which logs it then.
    async fn longest_wait(&mut self) -> Result<Option<f64>> {
        if let Some(metrics) = &self.metrics {
            return Ok(self_metrics::longest_wait_in_metrics(&metrics.read().await?));
        }
        self.manager.terminate()?;
        eventually_within("the manager to end", END, async || {
            ensure!(self.manager.exited()?.is_some(), "it runs");
            Ok(())
        })
        .await?;
        self_metrics::longest_wait_in_log(&self.manager.printed()?).context("the manager's log has no waits").map(Some)
    }

    /// The phases, if everything still runs.
    pub(super) async fn finish(mut self) -> Result<Vec<Phase>> {
        self.manager.must_run()?;
        self.helpers.iter_mut().try_for_each(Process::must_run)?;
        self.plane.must_run()?;
        let longest_wait = self.longest_wait().await?;
        let mut phases = std::mem::take(&mut self.phases);
        if let (Some(last), Some(longest_wait)) = (phases.last_mut(), longest_wait) {
            last.figures.insert(Figure::LongestWait, longest_wait);
        }
        Ok(phases)
    }

    /// Keeps the logs, and returns their folder.
    pub(super) fn keep_logs(&mut self) -> String {
        self.plane.keep_logs();
        self.plane.logs().display().to_string()
    }

    /// Waits until the manager is idle, and returns its resident memory: the median of several readings.
    async fn rest(&mut self) -> Result<u64> {
        let start = Instant::now();
        let mut quiet_since = (Instant::now(), self.manager.cpu_time()?);
        while quiet_since.0.elapsed() < self.setup.rest {
            ensure!(start.elapsed() < LIMIT, "{} did not come to rest", self.manager.name());
            self.manager.must_run()?;
            tokio::time::sleep(Duration::from_millis(250)).await;
            let cpu = self.manager.cpu_time()?;
            // A manager that only runs timers or collects garbage is idle.
            let spent = cpu.saturating_sub(quiet_since.1);
            if !self.setup.is_periodic && spent > quiet_since.0.elapsed().mul_f64(0.05) + Duration::from_millis(50) {
                quiet_since = (Instant::now(), cpu);
            }
        }
        let mut readings = Vec::new();
        for _ in 0..9 {
            readings.push(self.manager.rss_bytes()?);
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        readings.sort_unstable();
        Ok(readings[readings.len() / 2])
    }

    /// Bytes that the manager's open connections have received; `None` where the system has no `ss`.
    async fn received(&self) -> Option<u64> {
        let output = Command::new("ss").args(["-tinpH", "state", "established"]).output().await.ok()?;
        Some(received_by(&String::from_utf8_lossy(&output.stdout), self.manager.id()))
    }
}

fn start_manager(
    setup: &Setup,
    plane: &ControlPlane,
    proxy: Option<&FlakyProxy>,
    metrics: Option<&PeerMetrics>,
) -> Result<Process> {
    let controllers = format!("--controllers={}", setup.controllers);
    let mut args: Vec<String> = [controllers.as_str()].iter().chain(&LIMITS).map(|&arg| arg.to_owned()).collect();
    // The last of two equal flags counts.
    args.extend(proxy.map(|proxy| format!("--kubeconfig={}", proxy.kubeconfig().display())));
    args.extend(metrics.into_iter().flat_map(PeerMetrics::args));
    args.extend(setup.flags.iter().cloned());
    manager::start(setup.subject, plane, &setup.subject.to_string(), &args)
}

/// Whether a request is one of those that [`Setup::requests`] names.
fn is_among(kind: &Kind, requests: &[&str]) -> bool {
    !["LIST", "WATCH"].contains(&&*kind.verb)
        && requests.iter().any(|request| match request.split_once(' ') {
            Some((verb, resource)) => kind.verb == verb && kind.resource == resource,
            None => kind.resource == *request,
        })
}

/// Sums the bytes that the connections of a process received, as `ss` prints them: a line for each connection, then one
/// with its counts.
fn received_by(text: &str, process: u32) -> u64 {
    let mark = format!("pid={process},");
    let mut theirs = false;
    let mut sum = 0;
    for line in text.lines() {
        if line.starts_with(char::is_whitespace) {
            let count = line.split_whitespace().find_map(|word| word.strip_prefix("bytes_received:"));
            sum += count.filter(|_| theirs).and_then(|count| count.parse().ok()).unwrap_or(0);
        } else {
            theirs = line.contains(&mark);
        }
    }
    sum
}

#[expect(clippy::cast_precision_loss, reason = "bytes and counts stay far below 2^53")]
pub(super) fn as_f64(value: u64) -> f64 {
    value as f64
}

#[cfg(test)]
mod tests {
    use super::{is_among, received_by};
    use kcm_e2e_harness::requests::Kind;

    #[test]
    fn requests_are_told_apart_by_resource_and_where_it_is_named_by_verb() {
        let is_theirs = |verb: &str, resource: &str| {
            let kind = Kind { verb: verb.to_owned(), resource: resource.to_owned() };
            is_among(&kind, &["endpointslices", "PATCH servicecidrs"])
        };
        assert!(is_theirs("PUT", "endpointslices") && is_theirs("GET", "endpointslices"));
        assert!(!is_theirs("LIST", "endpointslices") && !is_theirs("PUT", "services"));
        assert!(is_theirs("PATCH", "servicecidrs") && !is_theirs("POST", "servicecidrs"));
        assert!(!is_theirs("PATCH", "servicecidrs/status"));
    }

    #[test]
    fn only_the_connections_of_the_process_count() {
        let text = "\
0 0 127.0.0.1:1 127.0.0.1:2 users:((\"kcm\",pid=7,fd=3))
\t cubic bytes_sent:5 bytes_received:100 segs_out:3
0 0 127.0.0.1:2 127.0.0.1:1 users:((\"api\",pid=70,fd=3))
\t cubic bytes_received:1000
0 0 127.0.0.1:3 127.0.0.1:2 users:((\"kcm\",pid=7,fd=4))
\t cubic bytes_received:11
";
        assert_eq!(received_by(text, 7), 111);
    }
}
