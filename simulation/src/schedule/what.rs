//! [`What`]: the deviations from the default order. A real API server or machine can show each of them.

use std::fmt;
use std::time::Duration;

/// A deviation from the default order, at an [`Anchor`](crate::Anchor).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum What {
    /// The process is killed at the request, and another starts after a time.
    Kill {
        /// Before the API server gets the request, or after it has answered; the response is lost then.
        moment: Moment,
        /// Time until the next process starts.
        restart: Duration,
        /// Settings of the next process.
        settings: Settings,
    },
    /// The process is killed after it has sent the request, which reaches the API server later.
    KillInFlight(Until),
    /// The process stops for a time, as by SIGSTOP, and continues. Its timers fire late.
    Pause(Duration),
    /// The API server cannot be reached for a time. Its watches break.
    Outage(Duration),
    /// The wall clock of the machine jumps by so many seconds.
    Clock(i64),
    /// The API server performs the request, and the connection breaks before the response arrives.
    LoseResponse,
    /// The request waits before it reaches the API server.
    HoldRequest(Until),
    /// The response waits before it reaches the process.
    HoldResponse(Until),
    /// The delivery waits, and with it all later events of the cache.
    Hold(Until),
    /// The watch ends instead of the delivery, and the cache is filled again.
    Relist(Relist),
    /// The API server, or a proxy before it, fails the request with a status code.
    Fail {
        /// Before or after the request takes effect.
        moment: Moment,
        /// The HTTP status code: 400 or 403 of an admission webhook, 429, 500, 503 or 504, or 409 for a write with a
        /// precondition.
        code: u16,
    },
    /// An admission webhook adds a label to the object that is created.
    Mutate,
    /// The kubelet shows a failure of the pod instead of its step.
    Pod(Failure),
    /// Steps happen by chance, and not in the default order.
    Order(Order),
    /// An action of the user, by its name in the scenario, happens before the request.
    Act(String),
}

/// The settings of a process that starts after a kill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Settings {
    /// The settings of the process before.
    Same,
    /// The [other settings](crate::Scenario::other_settings) of the scenario.
    Other,
}

/// A failure of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Failure {
    /// The pod ends in the phase `Failed`.
    Fails,
    /// The pod is evicted from its node: it ends in the phase `Failed` with that reason.
    IsEvicted,
    /// The pod runs, but is not ready for one step.
    IsUnready,
}

/// A random order of steps. Each actor (a loop with a key, a cache, the kubelets, the user) does its own steps in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Order {
    /// The way in which the next step is chosen.
    pub by: By,
    /// Seed of the priorities.
    pub seed: u32,
    /// Number of steps, after which the default order returns.
    pub steps: u32,
}

/// The way in which a random order chooses the next step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum By {
    /// Partial order sampling: each step has a random priority.
    Step,
    /// Probabilistic concurrency testing: each actor has a random priority, which falls to the lowest at a few steps.
    Actor,
}

/// A moment relative to the effect of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Moment {
    /// The request has no effect.
    Before,
    /// The request has taken effect.
    After,
}

/// The end of a hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Until {
    /// The process has sent so many further writes, events not counted.
    Writes(u32),
    /// So many events wait for the cache. For requests and responses: so many events of all caches were delivered.
    Events(u32),
    /// Nothing else can happen at this time.
    Rest,
    /// A time has passed.
    After(Duration),
}

/// The way in which a watch ends before the cache is filled again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Relist {
    /// The stream ends normally. The watch resumes after the last event that the process has received.
    Clean,
    /// The stream ends after the events that wait and a bookmark. The watch resumes after the bookmark.
    Bookmark,
    /// The connection of the watch breaks.
    Broken,
    /// The stream ends, and the API server has compacted the versions since.
    Compacted,
    /// The API server sends the error 410 (Gone) on the stream.
    Expired,
}

impl fmt::Display for Until {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Writes(count) => write!(f, "{count} writes"),
            Self::Events(count) => write!(f, "{count} events"),
            Self::Rest => f.write_str("rest"),
            Self::After(time) => write!(f, "{}ms", time.as_millis()),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fails => "fails",
            Self::IsEvicted => "evicted",
            Self::IsUnready => "unready",
        })
    }
}

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Step => "pos",
            Self::Actor => "pct",
        })
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Before => "before",
            Self::After => "after",
        })
    }
}

impl fmt::Display for Relist {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Clean => "clean",
            Self::Bookmark => "bookmark",
            Self::Broken => "broken",
            Self::Compacted => "compacted",
            Self::Expired => "expired",
        })
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kill { moment, restart, settings } => {
                write!(f, "kill {moment}")?;
                if !restart.is_zero() {
                    write!(f, ", restart after {}ms", restart.as_millis())?;
                }
                match settings {
                    Settings::Same => Ok(()),
                    Settings::Other => f.write_str(", other settings"),
                }
            }
            Self::KillInFlight(until) => write!(f, "kill in flight until {until}"),
            Self::Pause(time) => write!(f, "pause {}ms", time.as_millis()),
            Self::Outage(time) => write!(f, "outage {}ms", time.as_millis()),
            Self::Clock(seconds) => write!(f, "clock {seconds:+}"),
            Self::Mutate => f.write_str("mutate"),
            Self::Pod(failure) => write!(f, "pod {failure}"),
            Self::Order(Order { by, seed, steps }) => write!(f, "order {by} {seed} for {steps} steps"),
            Self::LoseResponse => f.write_str("lose response"),
            Self::HoldRequest(until) => write!(f, "hold request until {until}"),
            Self::HoldResponse(until) => write!(f, "hold response until {until}"),
            Self::Hold(until) => write!(f, "hold until {until}"),
            Self::Relist(how) => write!(f, "relist {how}"),
            Self::Fail { moment, code } => write!(f, "fail {moment} {code}"),
            Self::Act(name) => write!(f, "act {name}"),
        }
    }
}
