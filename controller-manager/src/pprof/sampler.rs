//! Samples the stacks of the threads of the parent process.
//!
//! Each thread is seized with ptrace, which does not stop it. A hundred times a second, running threads are stopped
//! while their registers and the upper part of their stack are read. Waiting threads are not stopped.

use std::collections::BTreeSet;
use std::fs;
use std::io::IoSliceMut;
use std::os::unix::process::parent_id;
use std::time::Duration;

use framehop::{
    CacheNative, ExplicitModuleSectionInfo, MayAllocateDuringUnwind, Module, UnwindRegsNative, Unwinder as _,
    UnwinderNative,
};
use nix::errno::Errno;
use nix::sys::ptrace;
use nix::sys::signal::Signal;
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::maps::executable;
use super::profile::Profile;
use super::symbols::{Section, code};

/// The time between samples, as Go's.
const PERIOD: Duration = Duration::from_millis(10);

/// Longest wait for a thread that was told to stop. A thread that needs a CPU first takes a while.
const STOP: Duration = Duration::from_millis(20);

/// Number of bytes of a stack that are read.
const STACK: usize = 128 * 1024;

/// The frames of a stack at most.
const FRAMES: usize = 256;

/// Samples the parent for some time, or until it ends.
///
/// # Errors
/// If the parent may not be traced.
pub(super) async fn sample(duration: Duration) -> Result<Profile, String> {
    let pid = parent_id();
    let maps =
        fs::read_to_string(format!("/proc/{pid}/maps")).map_err(|error| format!("cannot read the maps: {error}"))?;
    let nanos = i64::try_from(PERIOD.as_nanos()).unwrap_or(i64::MAX);
    let mut profile = Profile {
        types: vec![("samples", "count"), ("cpu", "nanoseconds")],
        period: Some((("cpu", "nanoseconds"), nanos)),
        duration_nanos: i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX),
        mappings: executable(&maps),
        ..Profile::default()
    };
    let mut process = Traced::new(pid, &profile);
    let end = Instant::now() + duration;
    let mut ticks = interval(PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    while Instant::now() < end && parent_id() == pid {
        process.seize()?;
        process.pass_signals_on();
        for thread in process.running() {
            if let Some(stack) = process.stack(thread) {
                profile.add(Some(process.name(thread)), stack, &[1, nanos]);
            }
        }
        ticks.tick().await;
    }
    Ok(profile)
}

/// A process whose threads are traced until this process ends.
struct Traced {
    pid: u32,
    threads: BTreeSet<Pid>,
    unwinder: UnwinderNative<Vec<u8>, MayAllocateDuringUnwind>,
    cache: CacheNative<MayAllocateDuringUnwind>,
    stack: Vec<u8>,
}

impl Traced {
    fn new(pid: u32, profile: &Profile) -> Self {
        let mut unwinder = UnwinderNative::new();
        for mapping in &profile.mappings {
            let Some(code) = code(pid, mapping) else { continue };
            let split =
                |section: Option<Section>| section.map_or((None, None), |(range, data)| (Some(range), Some(data)));
            let (eh_frame_svma, eh_frame) = split(code.eh_frame);
            let (eh_frame_hdr_svma, eh_frame_hdr) = split(code.eh_frame_hdr);
            let sections = ExplicitModuleSectionInfo {
                eh_frame_svma,
                eh_frame,
                eh_frame_hdr_svma,
                eh_frame_hdr,
                ..ExplicitModuleSectionInfo::default()
            };
            unwinder.add_module(Module::new(mapping.file.clone(), mapping.range.clone(), code.bias, sections));
        }
        Self { pid, threads: BTreeSet::new(), unwinder, cache: CacheNative::new(), stack: vec![0; STACK] }
    }

    fn listed(&self) -> impl Iterator<Item = Pid> + use<> {
        let listed = fs::read_dir(format!("/proc/{}/task", self.pid)).into_iter().flatten().flatten();
        listed.filter_map(|entry| entry.file_name().to_str()?.parse().ok().map(Pid::from_raw))
    }

    /// Traces threads that are new.
    fn seize(&mut self) -> Result<(), String> {
        for thread in self.listed() {
            if self.threads.contains(&thread) {
                continue;
            }
            match ptrace::seize(thread, ptrace::Options::empty()) {
                Ok(()) => drop(self.threads.insert(thread)),
                // It ended meanwhile.
                Err(Errno::ESRCH) => {}
                Err(error) => {
                    return Err(format!(
                        "cannot trace the threads of the manager: {error}; ptrace must be allowed to it, by the seccomp \
                         profile of its container and by kernel.yama.ptrace_scope, which must be 0 or 1"
                    ));
                }
            }
        }
        Ok(())
    }

    /// Resumes threads that stopped for a signal, and passes the signal on.
    fn pass_signals_on(&self) {
        for thread in &self.threads {
            if let Some(stop) = stopped(*thread) {
                go_on(*thread, stop);
            }
        }
    }

    /// The threads that run, or would if there were a free CPU.
    fn running(&self) -> Vec<Pid> {
        let runs = |thread: &&Pid| {
            let stat = fs::read_to_string(format!("/proc/{}/task/{thread}/stat", self.pid)).unwrap_or_default();
            // The name before the state may have any characters.
            stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('R'))
        };
        self.threads.iter().filter(runs).copied().collect()
    }

    fn name(&self, thread: Pid) -> String {
        let name = fs::read_to_string(format!("/proc/{}/task/{thread}/comm", self.pid)).unwrap_or_default();
        name.trim_end().to_owned()
    }

    /// Stops a thread, reads its stack, and lets it go on.
    fn stack(&mut self, thread: Pid) -> Option<Vec<u64>> {
        ptrace::interrupt(thread).ok()?;
        // A thread that stops later is resumed with the next sample.
        let limit = Instant::now() + STOP;
        let stop = loop {
            match stopped(thread) {
                Some(stop) => break stop,
                None if Instant::now() < limit => std::thread::yield_now(),
                None => return None,
            }
        };
        let read = registers(thread).map(|registers| {
            let (pc, sp, regs) = registers;
            let base = usize::try_from(sp).unwrap_or_default();
            (pc, sp, regs, self.read_stack(thread, base))
        });
        go_on(thread, stop);
        let (pc, sp, regs, length) = read?;
        let bytes = &self.stack[..length];
        let mut read = |address: u64| {
            let at = usize::try_from(address.checked_sub(sp).ok_or(())?).map_err(|_| ())?;
            let word = bytes.get(at..at.saturating_add(8)).and_then(|word| word.try_into().ok()).ok_or(())?;
            Ok(u64::from_le_bytes(word))
        };
        let mut frames = self.unwinder.iter_frames(pc, regs, &mut self.cache, &mut read);
        let mut stack = Vec::new();
        while let Ok(Some(frame)) = frames.next() {
            stack.push(frame.address_for_lookup());
            if stack.len() == FRAMES {
                break;
            }
        }
        Some(stack)
    }

    /// Reads the stack from its top, and returns how much of it there is.
    fn read_stack(&mut self, thread: Pid, base: usize) -> usize {
        let mut length = STACK;
        // Near the end of the stack there is less.
        while length >= 4096 {
            let remote = [RemoteIoVec { base, len: length }];
            if let Ok(read) = process_vm_readv(thread, &mut [IoSliceMut::new(&mut self.stack[..length])], &remote) {
                return read;
            }
            length /= 2;
        }
        0
    }
}

/// A stop of a thread, and its signal; `None` if the stop was requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stop(Option<Signal>);

/// The stop of a thread, if it is stopped.
///
/// It does not block: the main thread of a process that ends is not waited for before its other threads, which are waited
/// for here as well.
fn stopped(thread: Pid) -> Option<Stop> {
    let status = waitpid(thread, Some(WaitPidFlag::WNOHANG | WaitPidFlag::__WALL)).ok()?;
    match status {
        WaitStatus::Stopped(_, signal) => Some(Stop(Some(signal))),
        WaitStatus::PtraceEvent(..) | WaitStatus::PtraceSyscall(_) => Some(Stop(None)),
        WaitStatus::Exited(..) | WaitStatus::Signaled(..) | WaitStatus::Continued(_) | WaitStatus::StillAlive => None,
    }
}

/// Resumes a thread that was seen stopped. Another thread may be stopping for a signal now, which would be lost.
fn go_on(thread: Pid, Stop(signal): Stop) {
    // It may have ended meanwhile.
    let _gone = ptrace::cont(thread, signal);
}

/// Returns the program counter, the stack pointer, and the other registers that the unwinder needs.
#[cfg(target_arch = "x86_64")]
fn registers(thread: Pid) -> Option<(u64, u64, UnwindRegsNative)> {
    let registers = ptrace::getregs(thread).ok()?;
    Some((registers.rip, registers.rsp, UnwindRegsNative::new(registers.rip, registers.rsp, registers.rbp)))
}

/// Returns the program counter, the stack pointer, and the other registers that the unwinder needs.
#[cfg(target_arch = "aarch64")]
fn registers(thread: Pid) -> Option<(u64, u64, UnwindRegsNative)> {
    let registers = ptrace::getregs(thread).ok()?;
    Some((registers.pc, registers.sp, UnwindRegsNative::new(registers.regs[30], registers.sp, registers.regs[29])))
}
