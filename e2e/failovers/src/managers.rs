//! Two managers that compete for one lease, each as a user of its own and through a proxy of its own.

use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use kcm_e2e_harness::control_plane::ControlPlane;
use kcm_e2e_harness::process::Process;
use kcm_e2e_harness::scenario::LIMITS;
use kcm_e2e_harness::subject::Subject;
use kcm_e2e_harness::wait::eventually_within;

use super::audit::{self, USERS, Write, history};
use super::fault::Fault;
use super::proxy::Proxy;
use super::{LIMIT, Pair, Plan};

/// The two managers.
pub(super) struct Managers {
    managers: [Manager; 2],
    audit: AuditLog,
}

struct Manager {
    user: String,
    subject: Subject,
    process: Process,
    proxy: Proxy,
    /// How many times it has been started.
    starts: usize,
}

impl Managers {
    /// Starts both, the first of which leads.
    pub(super) async fn start(plane: &ControlPlane, pair: Pair, plan: &Plan, audit: PathBuf) -> Result<Self> {
        let [first, second] = pair.subjects();
        let mut audit = AuditLog { path: audit, offset: 0, rest: String::new(), writes: Vec::new() };
        let first = Manager::start(plane, USERS[0], first, plan).await?;
        eventually_within("the first manager to lead", LIMIT, async || {
            ensure!(!history(audit.read()?).is_empty(), "the lease has no holder");
            Ok(())
        })
        .await?;
        let second = Manager::start(plane, USERS[1], second, plan).await?;
        Ok(Self { managers: [first, second], audit })
    }

    pub(super) fn user(&self, at: usize) -> String {
        self.managers[at].user.clone()
    }

    pub(super) fn subject(&self, at: usize) -> Subject {
        self.managers[at].subject
    }

    pub(super) fn subject_of(&self, user: &str) -> Subject {
        if self.managers[0].user == user { self.managers[0].subject } else { self.managers[1].subject }
    }

    /// All accepted writes so far.
    pub(super) fn writes(&mut self) -> Result<&[Write]> {
        self.audit.read()
    }

    /// The manager that holds the lease.
    pub(super) fn leader(&mut self) -> Result<usize> {
        let history = history(self.audit.read()?);
        let user = history.last().and_then(|change| change.user.clone()).context("the lease has no holder")?;
        self.managers.iter().position(|manager| manager.user == user).context("another holds the lease")
    }

    /// Waits until both run and compete, and one leads.
    pub(super) async fn are_ready(&mut self) -> Result<()> {
        eventually_within("both managers to compete", LIMIT, async || {
            for manager in &mut self.managers {
                manager.process.must_run()?;
                let printed = manager.process.printed()?.to_lowercase();
                let competed = printed.matches("attempting to acquire leader lease").count();
                ensure!(competed >= manager.starts, "{} does not compete yet", manager.user);
            }
            let history = history(self.audit.read()?);
            ensure!(history.last().is_some_and(|change| change.user.is_some()), "the lease has no holder");
            Ok(())
        })
        .await
    }

    /// Makes a manager stop acting.
    pub(super) fn fail(&mut self, at: usize, fault: Fault) -> Result<()> {
        let Manager { process, proxy, .. } = &mut self.managers[at];
        match fault {
            Fault::Terminated => process.terminate(),
            Fault::Killed => process.kill9(),
            Fault::Frozen => process.pause(),
            Fault::CutOff => {
                proxy.lose();
                Ok(())
            }
            // It happens to the API server.
            Fault::ServerFrozen => Ok(()),
        }
    }

    /// Ends the fault, waits for the end of the process, and starts it again.
    pub(super) async fn recover(&mut self, at: usize, fault: Fault) -> Result<()> {
        let Manager { process, proxy, subject, starts, .. } = &mut self.managers[at];
        match fault {
            Fault::Terminated | Fault::Killed | Fault::ServerFrozen => {}
            Fault::Frozen => process.resume()?,
            Fault::CutOff => proxy.restore(),
        }
        let status = process.wait(LIMIT).await?;
        let expected = match (subject, fault) {
            (Subject::Peer, _) | (_, Fault::Killed) => None,
            (Subject::Ours, Fault::Terminated) => Some(0),
            (Subject::Ours, Fault::Frozen | Fault::CutOff | Fault::ServerFrozen) => Some(3),
        };
        if let Some(expected) = expected {
            ensure!(status.code() == Some(expected), "it ended with {status}:\n{}", process.printed()?);
        }
        *starts += 1;
        process.start_again()
    }
}

impl Manager {
    async fn start(plane: &ControlPlane, user: &str, subject: Subject, plan: &Plan) -> Result<Self> {
        let lease = plan.lease;
        let kubeconfig = plane.kubeconfig_for(user, &["system:masters"])?;
        let proxy = Proxy::start(&kubeconfig).await?;
        let mut args = vec![
            format!("--kubeconfig={}", proxy.kubeconfig().display()),
            format!("--controllers=deployment,replicaset{}", if plan.jobs { ",job" } else { "" }),
            format!("--leader-elect-lease-duration={}s", lease.as_secs()),
            format!("--leader-elect-renew-deadline={}s", lease.as_secs() * 2 / 3),
            format!("--leader-elect-retry-period={}ms", lease.as_millis() * 2 / 15),
        ];
        args.extend(LIMITS.map(str::to_owned));
        // Both run on this machine.
        args.push("--secure-port=0".to_owned());
        if subject == Subject::Peer {
            args.push("--use-service-account-credentials=false".to_owned());
        }
        let process = Process::start(user, &subject.program()?, &args, plane.logs())?;
        Ok(Self { user: user.to_owned(), subject, process, proxy, starts: 1 })
    }
}

/// The audit log of the API server, read as it grows.
struct AuditLog {
    path: PathBuf,
    offset: u64,
    /// The beginning of a line that is being written.
    rest: String,
    writes: Vec<Write>,
}

impl AuditLog {
    fn read(&mut self) -> Result<&[Write]> {
        // It is made with the first event.
        if let Ok(mut file) = std::fs::File::open(&self.path) {
            file.seek(SeekFrom::Start(self.offset)).context("cannot read the audit log")?;
            let mut more = Vec::new();
            let count = file.read_to_end(&mut more).context("cannot read the audit log")?;
            self.offset += count as u64;
            self.rest.push_str(&String::from_utf8_lossy(&more));
            let whole = self.rest.rfind('\n').map_or(0, |end| end + 1);
            let lines: String = self.rest.drain(..whole).collect();
            self.writes.extend(audit::writes(&lines)?);
        }
        Ok(&self.writes)
    }
}
