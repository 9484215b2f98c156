//! Profiles of a running program, read by Go's tool if Go is installed.

#![cfg(all(feature = "builtin", feature = "pprof", feature = "sandbox", target_os = "linux"))]

mod subcommand;
mod support;

use std::io::Write as _;
use std::process::{Command, Stdio};

use bytes::Bytes;
use http_body_util::BodyExt as _;
use subcommand::{PROGRAM, start_with_port};
use support::program::{Folder, Process};

/// The port of a sandbox's manager.
struct Port {
    process: Process,
    client: kube::Client,
}

impl Port {
    async fn start(folder: &Folder, arguments: &[&str]) -> Self {
        Self::of(start_with_port(folder, arguments)).await
    }

    async fn of(mut process: Process) -> Self {
        let line = process.prints("  manager  ").await;
        let url = line.split_whitespace().last().expect("it ends with the URL");
        let mut config = kube::Config::new(url.parse().expect("it is an address"));
        config.accept_invalid_certs = true;
        process.prints("Ctrl-C ends it").await;
        Self { process, client: kube::Client::try_from(config).expect("it must be usable") }
    }

    async fn get(&self, path: &str) -> (u16, Bytes) {
        let request = http::Request::get(path).body(kube::client::Body::empty()).expect("it is a request");
        let answer = self.client.send(request).await.expect("it answers");
        let code = answer.status().as_u16();
        (code, answer.into_body().collect().await.expect("it is whole").to_bytes())
    }

    /// Keeps the port busy for ever.
    async fn work(&self) {
        loop {
            self.get("/metrics").await;
        }
    }
}

/// Returns the output of Go's tool for a profile; `None` without Go.
fn top(folder: &Folder, profile: &[u8]) -> Option<String> {
    let file = folder.path("profile");
    std::fs::write(&file, profile).expect("the folder is there");
    let Ok(read) = Command::new("go").args(["tool", "pprof", "-top", "-nodecount=2000"]).arg(&file).output() else {
        let mut out = std::io::stderr();
        drop(writeln!(out, "skipped: Go is not installed, whose tool would read the profile"));
        return None;
    };
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    Some(String::from_utf8(read.stdout).expect("it prints UTF-8"))
}

#[tokio::test]
async fn cpu_time_is_profiled_by_function_and_signals_arrive_meanwhile() {
    let folder = Folder::new();
    let port = Port::start(&folder, &[]).await;
    let profiling = port.get("/debug/pprof/profile?seconds=2");
    let (code, profile) = tokio::select! {
        answered = profiling => answered,
        () = port.work() => unreachable!("work never ends"),
    };
    assert_eq!(code, 200, "{}", String::from_utf8_lossy(&profile));
    // The magic number of gzip.
    assert_eq!(profile[..2], [0x1f, 0x8b]);
    if let Some(top) = top(&folder, &profile) {
        assert!(top.contains("Type: cpu\n"), "{top}");
        // The handler of requests and the begin of its thread: stacks are whole.
        for function in ["Metrics", "std::thread"] {
            assert!(top.contains(function), "{function} is not in\n{top}");
        }
    }
    // A signal that arrives while threads are traced reaches the program.
    tokio::join!(port.get_until_closed(), async {
        port.started_helper().await;
        port.process.terminate();
    });
    let ended = port.process.ended().await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
}

impl Port {
    /// Gets a profile from a program that may end meanwhile.
    async fn get_until_closed(&self) {
        let request = http::Request::get("/debug/pprof/profile?seconds=60").body(kube::client::Body::empty());
        drop(self.client.send(request.expect("it is a request")).await);
    }

    /// Waits until the program is traced. Returns the process that traces it.
    async fn started_helper(&self) -> u32 {
        let id = self.process.id();
        let traced = async {
            loop {
                let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
                let tracer = status.lines().find_map(|line| line.strip_prefix("TracerPid:\t")?.parse().ok());
                if let Some(tracer) = tracer.filter(|tracer| *tracer != 0) {
                    return tracer;
                }
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(std::time::Duration::from_mins(1), traced).await.expect("it must be traced")
    }
}

/// Both are in one control group, whose memory may run out.
#[tokio::test]
async fn the_kernel_ends_the_profiler_before_the_manager() {
    let folder = Folder::new();
    let port = Port::start(&folder, &[]).await;
    let (_profile, adjusted) = tokio::join!(port.get("/debug/pprof/profile?seconds=1"), async {
        let helper = port.started_helper().await;
        std::fs::read_to_string(format!("/proc/{helper}/oom_score_adj")).expect("it traces the program")
    });
    assert_eq!(adjusted.trim(), "1000");
}

#[tokio::test]
async fn one_profile_is_made_at_a_time() {
    let folder = Folder::new();
    let port = Port::start(&folder, &[]).await;
    let (_first, second) = tokio::join!(port.get("/debug/pprof/profile?seconds=1"), async {
        port.started_helper().await;
        port.get("/debug/pprof/profile?seconds=1").await
    });
    assert_eq!(second, (500, Bytes::from_static(b"another profile is already running\n")));
}

#[tokio::test]
async fn the_heap_is_profiled_where_jemalloc_is_the_allocator() {
    let folder = Folder::new();
    let port = Port::start(&folder, &[]).await;
    let (code, heap) = port.get("/debug/pprof/heap").await;
    if cfg!(feature = "jemalloc") {
        let reason = String::from_utf8_lossy(&heap);
        assert!(code != 200 && reason.contains("start the manager with MALLOC_CONF=prof:true"), "{code}: {reason}");
        let folder = Folder::new();
        let sampling = |command: &mut Command| {
            command.current_dir(&folder).stdin(Stdio::piped()).env("MALLOC_CONF", "prof:true");
        };
        let port = Port::of(Process::start_with(PROGRAM, &["sandbox", "--socket="], sampling)).await;
        let (code, heap) = port.get("/debug/pprof/heap").await;
        assert_eq!(code, 200, "{}", String::from_utf8_lossy(&heap));
        if let Some(top) = top(&folder, &heap) {
            assert!(top.contains("Type: inuse_space\n"), "{top}");
        }
    } else {
        let reason = String::from_utf8_lossy(&heap);
        assert!(code == 501 && reason.contains("built without the cargo feature jemalloc"), "{code}: {reason}");
    }
}

#[tokio::test]
async fn the_paths_are_those_of_upstream_and_follow_the_flag() {
    let folder = Folder::new();
    let port = Port::start(&folder, &[]).await;
    let (code, words) = port.get("/debug/pprof/cmdline").await;
    let words: Vec<&[u8]> = words.split(|byte| *byte == 0).collect();
    assert_eq!((code, &words[1..]), (200, &[&b"sandbox"[..], b"--socket="][..]));
    let (code, index) = port.get("/debug/pprof/").await;
    assert!(code == 200 && index.starts_with(b"/debug/pprof/profile?seconds=30 "), "{index:?}");
    assert_eq!(port.get("/debug/pprof/profile?seconds=301").await.0, 400);
    let folder = Folder::new();
    let port = Port::start(&folder, &["--profiling=false"]).await;
    for path in ["/debug/pprof/", "/debug/pprof/profile?seconds=1", "/debug/pprof/heap", "/debug/pprof/cmdline"] {
        assert_eq!(port.get(path).await.0, 404, "{path}");
    }
}
