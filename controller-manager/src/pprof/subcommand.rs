//! The sub-command by which the program starts itself to profile its parent. People have no use for it, so that no help
//! lists it.

use std::io::{Read as _, Write as _};
use std::time::Duration;

use kcm_framework::BoxFuture;

use super::heap_dump;
use super::profile::Profile;
use super::symbols::resolve;
use crate::command_line::exit::Exit;
use crate::command_line::subcommand::{Action, Failure, Invocation, Subcommand};

/// Profiles the parent process, and writes the profile to standard output.
pub(crate) const HELPER: Subcommand =
    Subcommand { name: "pprof-helper", usages: &[], rows: &[], file_after: None, quiet: true, run };

/// The profile of its parent that a helper makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Stacks of the threads that run, for so long; it begins when standard input ends, as the parent has allowed it then.
    Cpu(Duration),
    /// Encodes jemalloc's dump from standard input.
    Heap,
}

impl Kind {
    /// The operands that ask for it.
    pub(super) fn operands(self) -> Vec<String> {
        match self {
            Self::Cpu(duration) => vec!["cpu".to_owned(), duration.as_secs().to_string()],
            Self::Heap => vec!["heap".to_owned()],
        }
    }

    fn parse(operands: &[String]) -> Option<Self> {
        match operands {
            [kind, seconds] if kind == "cpu" => Some(Self::Cpu(Duration::from_secs(seconds.parse().ok()?))),
            [kind] if kind == "heap" => Some(Self::Heap),
            _other => None,
        }
    }
}

/// Makes the kernel end this process before its parent if memory runs out.
fn prefer_to_be_ended() {
    // Elsewhere than on Linux there is no such file.
    drop(std::fs::write("/proc/self/oom_score_adj", "1000"));
}

fn run(Invocation { settings, manager: _ }: Invocation) -> Result<Action, Vec<String>> {
    prefer_to_be_ended();
    let Some(kind) = Kind::parse(settings.operands()) else {
        return Err(vec![
            "pprof-helper: the manager starts it; get /debug/pprof/profile of its port instead".to_owned(),
        ]);
    };
    Ok(Action::Run(Box::new(move |_stop| -> BoxFuture<'static, _> {
        Box::pin(async move {
            let failed = |reason: String| Failure { exit: Exit::Refused, reasons: vec![reason] };
            let mut input = String::new();
            let read = std::io::stdin().read_to_string(&mut input);
            read.map_err(|error| failed(format!("cannot read what the manager writes: {error}")))?;
            let parent = std::os::unix::process::parent_id();
            let mut profile = profile(kind, &input).await.map_err(failed)?;
            resolve(parent, &mut profile);
            let encoded = profile.encode().and_then(|encoded| std::io::stdout().write_all(&encoded));
            encoded.map_err(|error| failed(format!("cannot write the profile: {error}")))
        })
    })))
}

async fn profile(kind: Kind, input: &str) -> Result<Profile, String> {
    match kind {
        Kind::Cpu(duration) => cpu(duration).await,
        Kind::Heap => heap_dump::parse(input).ok_or_else(|| "what jemalloc wrote is no heap profile".to_owned()),
    }
}

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
async fn cpu(duration: Duration) -> Result<Profile, String> {
    super::sampler::sample(duration).await
}

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
async fn cpu(_duration: Duration) -> Result<Profile, String> {
    Err("CPU profiles are made on Linux on x86_64 and aarch64 only".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operands_are_read_as_they_are_written() {
        for kind in [Kind::Cpu(Duration::from_secs(7)), Kind::Heap] {
            assert_eq!(Kind::parse(&kind.operands()), Some(kind));
        }
        for wrong in [&[][..], &["cpu"], &["cpu", "x"], &["heap", "1"], &["trace"]] {
            let wrong: Vec<String> = wrong.iter().map(|word| (*word).to_owned()).collect();
            assert_eq!(Kind::parse(&wrong), None, "{wrong:?}");
        }
    }
}
