//! The metrics of the process, by the names that Prometheus' clients give them, and of its runtime.
//!
//! Read from `/proc` at each scrape. Figures that cannot be read are left out.

use std::fmt;
use std::fs;

use kcm_framework::Metrics;
use kcm_framework::prometheus_client::collector::Collector;
use kcm_framework::prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use kcm_framework::prometheus_client::metrics::MetricType;
use kcm_framework::prometheus_client::metrics::counter::ConstCounter;
use kcm_framework::prometheus_client::metrics::gauge::ConstGauge;
use tokio::runtime::Handle;

use crate::heartbeat::Heartbeat;

/// Shows the metrics of the process, and of `runtime` and the thread of `heartbeat`, which run the controllers, in `metrics`.
pub(crate) fn register(metrics: &Metrics, runtime: Handle, heartbeat: Heartbeat) {
    /// Marks the metrics as registered, so that it happens once.
    #[derive(Clone)]
    struct OfProcess;
    metrics.register(|registry| {
        registry.register_collector(Box::new(ProcessMetrics { runtime, heartbeat }));
        OfProcess
    });
}

#[derive(Debug)]
struct ProcessMetrics {
    runtime: Handle,
    heartbeat: Heartbeat,
}

impl Collector for ProcessMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let process = Process::read();
        let runtime = self.runtime.metrics();
        for (name, help, value) in [
            (
                "process_cpu_seconds",
                "Processor time of the process in seconds, of its code and of the kernel",
                process.cpu_seconds,
            ),
            (
                "process_network_receive_bytes",
                "Bytes that the network namespace of the process has received",
                process.received,
            ),
            (
                "process_network_transmit_bytes",
                "Bytes that the network namespace of the process has sent",
                process.sent,
            ),
        ] {
            if let Some(value) = value {
                let metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
                ConstCounter::new(value).encode(metric)?;
            }
        }
        for (name, help, value) in [
            (
                "manager_main_thread_blocked_seconds",
                "Seconds for which the thread of the controllers has been blocked by one piece of work",
                Some(self.heartbeat.blocked().as_secs_f64()),
            ),
            (
                "manager_main_thread_longest_blocked_seconds",
                "Longest time in seconds for which the thread of the controllers has been blocked since the start",
                Some(self.heartbeat.longest_blocked().as_secs_f64()),
            ),
            ("process_max_fds", "The most file descriptors that the process may have open", process.max_fds),
            ("process_open_fds", "Open file descriptors", process.open_fds),
            ("process_resident_memory_bytes", "Resident memory in bytes", process.resident),
            ("process_start_time_seconds", "When the process started, in seconds since 1970", process.started),
            ("process_virtual_memory_bytes", "Virtual memory in bytes", process.virtual_memory),
            (
                "process_virtual_memory_max_bytes",
                "The most virtual memory that the process may have, in bytes",
                process.max_virtual_memory,
            ),
            ("tokio_alive_tasks", "Tasks of the runtime that have not ended", exact(runtime.num_alive_tasks())),
            ("tokio_global_queue_depth", "Tasks that wait for the runtime", exact(runtime.global_queue_depth())),
        ] {
            if let Some(value) = value {
                let metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
                ConstGauge::new(value).encode(metric)?;
            }
        }
        Ok(())
    }
}

fn exact(count: usize) -> Option<f64> {
    u32::try_from(count).ok().map(f64::from)
}

/// Figures of this process from `/proc`.
#[derive(Debug, Default)]
struct Process {
    cpu_seconds: Option<f64>,
    received: Option<f64>,
    sent: Option<f64>,
    max_fds: Option<f64>,
    open_fds: Option<f64>,
    resident: Option<f64>,
    started: Option<f64>,
    virtual_memory: Option<f64>,
    max_virtual_memory: Option<f64>,
}

impl Process {
    fn read() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let ticks = exact(usize::try_from(rustix::param::clock_ticks_per_second()).unwrap_or(0));
        let page = exact(rustix::param::page_size());
        let stat = Stat::parse(&read("/proc/self/stat"), ticks.unwrap_or(100.0), page.unwrap_or(4096.0));
        let (received, sent) = network(&read("/proc/self/net/dev")).unzip();
        let limits = read("/proc/self/limits");
        let booted = read("/proc/stat").lines().find_map(|line| line.strip_prefix("btime ")?.parse::<f64>().ok());
        Self {
            received,
            sent,
            max_fds: limit(&limits, "Max open files"),
            // The folder that is being read counts as an open file.
            open_fds: fs::read_dir("/proc/self/fd").ok().and_then(|open| exact(open.count().saturating_sub(1))),
            max_virtual_memory: limit(&limits, "Max address space"),
            cpu_seconds: stat.as_ref().map(|stat| stat.cpu_seconds),
            resident: stat.as_ref().map(|stat| stat.resident),
            virtual_memory: stat.as_ref().map(|stat| stat.virtual_memory),
            started: stat.and_then(|stat| Some(stat.started + booted?)),
        }
    }
}

/// The part of `/proc/self/stat` that is shown, in seconds and bytes.
#[derive(Debug, PartialEq)]
struct Stat {
    cpu_seconds: f64,
    /// Seconds after the start of the machine.
    started: f64,
    virtual_memory: f64,
    resident: f64,
}

impl Stat {
    fn parse(stat: &str, ticks: f64, page: f64) -> Option<Self> {
        // The name of the program, in parentheses, may hold spaces; the state follows it, as the third field.
        let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split_whitespace().collect();
        let field = |number: usize| fields.get(number - 3)?.parse::<f64>().ok();
        Some(Self {
            cpu_seconds: (field(14)? + field(15)?) / ticks,
            started: field(22)? / ticks,
            virtual_memory: field(23)?,
            resident: field(24)? * page,
        })
    }
}

/// Returns the soft limit in the line with this name. No limit is the largest number.
fn limit(limits: &str, name: &str) -> Option<f64> {
    const UNLIMITED: f64 = 18_446_744_073_709_552_000.0;
    let value = limits.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?;
    if value == "unlimited" { Some(UNLIMITED) } else { value.parse().ok() }
}

/// The bytes received and sent by all interfaces.
fn network(devices: &str) -> Option<(f64, f64)> {
    let counts = devices.lines().filter_map(|line| {
        let (_, counts) = line.split_once(':')?;
        let counts: Vec<f64> = counts.split_whitespace().map_while(|count| count.parse().ok()).collect();
        Some((*counts.first()?, *counts.get(8)?))
    });
    counts.reduce(|(received, sent), (more_received, more_sent)| (received + more_received, sent + more_sent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_proc_are_read_as_the_kernel_documents_them() {
        let stat = "7 (a b) c) S 1 2 3 4 5 6 7 8 9 10 250 150 0 0 20 0 1 0 400 8192 2 0";
        let expected = Stat { cpu_seconds: 4.0, started: 4.0, virtual_memory: 8192.0, resident: 8192.0 };
        assert_eq!(Stat::parse(stat, 100.0, 4096.0), Some(expected));
        assert_eq!(Stat::parse("", 100.0, 4096.0), None);
        let limits = "Limit  Soft  Hard\nMax open files            1024                 4096                 files\n\
                      Max address space         unlimited            unlimited            bytes\n";
        assert_eq!(limit(limits, "Max open files"), Some(1024.0));
        assert!(limit(limits, "Max address space") > Some(1.8e19));
        let devices = "Inter-|   Receive\n face |bytes\n    lo: 10 1 0 0 0 0 0 0 10 1\n  eth0: 5 1 0 0 0 0 0 0 7 1\n";
        assert_eq!(network(devices), Some((15.0, 17.0)));
    }

    #[tokio::test]
    async fn this_process_has_all_of_them() {
        let metrics = Metrics::new();
        register(&metrics, Handle::current(), Heartbeat::new());
        let exposed = String::from_utf8(metrics.expose(kcm_framework::Format::Text)).expect("an exposition is text");
        for name in [
            "manager_main_thread_blocked_seconds",
            "manager_main_thread_longest_blocked_seconds",
            "process_cpu_seconds_total",
            "process_max_fds",
            "process_network_receive_bytes_total",
            "process_network_transmit_bytes_total",
            "process_open_fds",
            "process_resident_memory_bytes",
            "process_start_time_seconds",
            "process_virtual_memory_bytes",
            "process_virtual_memory_max_bytes",
            "tokio_alive_tasks",
        ] {
            let value = exposed.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<f64>().ok());
            assert!(value.is_some_and(|value| value >= 0.0), "{name} is not in\n{exposed}");
        }
    }
}
