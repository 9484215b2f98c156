//! Control groups that limit a program, as a container runtime makes them.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

const ROOT: &str = "/sys/fs/cgroup";

/// The period of a limit of CPU, in microseconds.
const PERIOD: u32 = 100_000;

/// What a program may take.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Bytes of memory, those of cached files included.
    pub memory: u64,
    /// Hundredths of a processor.
    pub cpu_percent: u32,
}

/// Control groups with [`Limits`]; dropping them removes them, once no process is in them.
#[derive(Debug)]
pub struct Cgroup {
    folders: Vec<PathBuf>,
}

impl Cgroup {
    /// Makes control groups of that name; `None` where this machine does not let us, as in a container without privileges.
    ///
    /// # Errors
    ///
    /// If a group can be made and does not take its limit.
    pub fn limited(name: &str, limits: Limits) -> Result<Option<Self>> {
        let is_unified = Path::new(ROOT).join("cgroup.controllers").is_file();
        let mut group = Self { folders: Vec::new() };
        for (controllers, file, limit) in files(is_unified, limits) {
            let folder = Path::new(ROOT).join(controllers).join(name);
            if !folder.is_dir() {
                if fs::create_dir(&folder).is_err() {
                    return Ok(None);
                }
                group.folders.push(folder.clone());
            }
            let file = folder.join(file);
            if !file.is_file() {
                return Ok(None);
            }
            fs::write(&file, &limit).with_context(|| format!("{} does not take {limit}", file.display()))?;
        }
        Ok(Some(group))
    }

    /// The files into which a process writes its id to join.
    pub fn processes(&self) -> Vec<PathBuf> {
        self.folders.iter().map(|folder| folder.join("cgroup.procs")).collect()
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        for folder in &self.folders {
            // One that is still used stays, empty of meaning once its processes end.
            drop(fs::remove_dir(folder));
        }
    }
}

/// The files of limits: the folder of their controller, their name, and what is written into them.
fn files(is_unified: bool, Limits { memory, cpu_percent }: Limits) -> [(&'static str, &'static str, String); 2] {
    let quota = PERIOD / 100 * cpu_percent;
    if is_unified {
        [("", "memory.max", memory.to_string()), ("", "cpu.max", format!("{quota} {PERIOD}"))]
    } else {
        [("memory", "memory.limit_in_bytes", memory.to_string()), ("cpu", "cpu.cfs_quota_us", quota.to_string())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_written_as_each_version_has_them() {
        let limits = Limits { memory: 64 << 20, cpu_percent: 50 };
        let of = |is_unified| files(is_unified, limits).map(|(folder, file, limit)| format!("{folder}/{file} {limit}"));
        assert_eq!(of(true), ["/memory.max 67108864", "/cpu.max 50000 100000"]);
        assert_eq!(of(false), ["memory/memory.limit_in_bytes 67108864", "cpu/cpu.cfs_quota_us 50000"]);
    }
}
