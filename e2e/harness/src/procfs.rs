//! What the kernel says about a process, from `/proc`.

use std::time::Duration;

use anyhow::{Context, Result};

/// Bytes of memory resident in RAM.
///
/// # Errors
///
/// If the process is gone.
pub fn resident_bytes(pid: u32) -> Result<u64> {
    status_line(pid, "VmRSS:")
}

/// Bytes of memory resident in RAM that are no pages of files.
///
/// # Errors
///
/// If the process is gone.
pub fn own_bytes(pid: u32) -> Result<u64> {
    status_line(pid, "RssAnon:")
}

fn status_line(pid: u32, name: &str) -> Result<u64> {
    let path = format!("/proc/{pid}/status");
    let status = std::fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    parse_bytes(&status, name).with_context(|| format!("{path} has no line `{name}`"))
}

/// The most bytes of memory that were resident since the process began, or since [`forget_peak`].
///
/// # Errors
///
/// If the process is gone.
pub fn peak_bytes(pid: u32) -> Result<u64> {
    status_line(pid, "VmHWM:")
}

/// Makes [`peak_bytes`] begin anew.
///
/// # Errors
///
/// If the process is gone, or is not ours.
pub fn forget_peak(pid: u32) -> Result<()> {
    let path = format!("/proc/{pid}/clear_refs");
    std::fs::write(&path, "5").with_context(|| format!("cannot write {path}"))
}

/// CPU time spent by all threads, in user and kernel mode.
///
/// # Errors
///
/// If the process is gone.
pub fn cpu_time(pid: u32) -> Result<Duration> {
    let path = format!("/proc/{pid}/stat");
    let stat = std::fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    let ticks = parse_cpu_ticks(&stat).with_context(|| format!("{path} does not look as expected: {stat}"))?;
    let millis = ticks.saturating_mul(1000) / rustix::param::clock_ticks_per_second().max(1);
    Ok(Duration::from_millis(millis))
}

/// How many threads it has.
///
/// # Errors
///
/// If the process is gone.
pub fn threads(pid: u32) -> Result<usize> {
    let path = format!("/proc/{pid}/task");
    Ok(std::fs::read_dir(&path).with_context(|| format!("cannot read {path}"))?.count())
}

/// The processes that it has started and that still run.
///
/// # Errors
///
/// If the process is gone.
pub fn children(pid: u32) -> Result<Vec<u32>> {
    let path = format!("/proc/{pid}/task/{pid}/children");
    let children = std::fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    let ids = children.split_whitespace().map(|id| id.parse().with_context(|| format!("{path} has {id}")));
    ids.collect()
}

fn parse_bytes(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// Fields 14 and 15 of `stat`. The name, field 2, may hold spaces and brackets, so counting starts
/// behind its last bracket.
fn parse_cpu_ticks(stat: &str) -> Option<u64> {
    let (_, behind_name) = stat.rsplit_once(')')?;
    let mut fields = behind_name.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

#[cfg(test)]
mod tests {
    use super::{cpu_time, parse_bytes, parse_cpu_ticks, peak_bytes, resident_bytes};

    #[test]
    fn resident_memory_is_read_in_bytes() {
        let status = "Name:\tx\nVmHWM:\t  9000 kB\nVmRSS:\t   1234 kB\nThreads:\t2\n";
        assert_eq!(parse_bytes(status, "VmRSS:"), Some(1234 * 1024));
        assert_eq!(parse_bytes("Name:\tzombie\n", "VmRSS:"), None);
    }

    #[test]
    fn cpu_ticks_are_found_behind_a_name_with_brackets_and_spaces() {
        let stat = "42 (a ) b) S 1 42 42 0 -1 4194560 100 0 0 0 25 17 0 0 20 0 8 0 300 0 0";
        assert_eq!(parse_cpu_ticks(stat), Some(42));
        assert_eq!(parse_cpu_ticks("42 (x) S 1"), None);
    }

    #[test]
    fn this_process_has_memory_and_time() {
        assert!(resident_bytes(std::process::id()).expect("this process runs") > 100_000);
        assert!(peak_bytes(std::process::id()).expect("this process runs") > 100_000);
        cpu_time(std::process::id()).expect("this process runs");
    }
}
