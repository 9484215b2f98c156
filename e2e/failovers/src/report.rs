//! The table of failovers, and what it is judged by.

use std::fmt::Write as _;
use std::time::Duration;

use kcm_e2e_harness::subject::Subject;

use super::{Failover, Fault, Outcome, Pair};

/// The outcomes of all pairs of one run.
#[derive(Debug, Clone)]
pub struct Report {
    /// The outcomes.
    pub outcomes: Vec<Outcome>,
    /// The duration of the lease.
    pub lease: Duration,
}

/// At most this part of upstream's time passes until a successor of ours has acted after a SIGTERM.
const RATIO: u32 = 15;

impl Report {
    /// The table in Markdown.
    pub fn table(&self) -> String {
        let mut table = String::from(
            "| managers | fault | leader → successor | n | lease held after, median (longest) | acted after, median (longest) |\n\
             | --- | --- | --- | --- | --- | --- |\n",
        );
        for Outcome { pair, failovers, .. } in &self.outcomes {
            for fault in Fault::ALL {
                for (from, to) in [
                    (Subject::Ours, Subject::Ours),
                    (Subject::Ours, Subject::Peer),
                    (Subject::Peer, Subject::Ours),
                    (Subject::Peer, Subject::Peer),
                ] {
                    let is_such = |it: &&Failover| (it.fault, it.from, it.to) == (fault, from, to);
                    let such: Vec<&Failover> = failovers.iter().filter(is_such).collect();
                    let led: Vec<Duration> = such.iter().map(|it| it.led).collect();
                    let acted: Vec<Duration> = such.iter().map(|it| it.acted).collect();
                    if let (Some(led), Some(acted)) = (figure(&led), figure(&acted)) {
                        let pair = name(*pair);
                        // Writing to a string does not fail.
                        let _written =
                            writeln!(table, "| {pair} | {fault} | {from} → {to} | {} | {led} | {acted} |", such.len());
                    }
                }
            }
        }
        for Outcome { pair, failovers, writes, foreign, surplus, repeated } in &self.outcomes {
            let of = |subject| foreign.iter().filter(|(whose, _)| *whose == subject).count();
            let (pair, ours, peer) = (name(*pair), of(Subject::Ours), of(Subject::Peer));
            let _written = writeln!(
                table,
                "\n{pair}: {} failovers, {writes} writes; without the lease: {ours} of ours, {peer} of upstream's; {} surplus pods, {} repeated indexes.",
                failovers.len(),
                surplus.len(),
                repeated.len()
            );
        }
        table
    }

    /// Violations: writes of ours without the lease, surplus pods between ours, and successors of ours that acted too late.
    pub fn violations(&self) -> Vec<String> {
        let mut violations = Vec::new();
        for Outcome { pair, failovers, foreign, surplus, repeated, .. } in &self.outcomes {
            let of_ours = foreign.iter().filter(|(whose, _)| *whose == Subject::Ours);
            violations.extend(of_ours.map(|(_, write)| format!("a write without the lease: {write}")));
            if *pair != Pair::Ours {
                continue;
            }
            violations.extend(surplus.iter().map(|pod| format!("a surplus pod: {pod}")));
            violations.extend(repeated.iter().map(|index| format!("a repeated index: {index}")));
            for fault in Fault::ALL {
                let acted = acted(failovers, fault);
                let (Some(median), limit) = (median(&acted), fault.limit(self.lease)) else { continue };
                if median > limit {
                    violations
                        .push(format!("after {fault} the median is {median:.2?}, and must be at most {limit:.2?}"));
                }
            }
        }
        if let (Some(ours), Some(peer)) = (self.terminated(Pair::Ours), self.terminated(Pair::Peer))
            && ours > peer / RATIO
        {
            violations
                .push(format!("after SIGTERM ours takes {ours:.2?}, more than 1/{RATIO} of upstream's {peer:.2?}"));
        }
        violations
    }

    fn terminated(&self, pair: Pair) -> Option<Duration> {
        let outcome = self.outcomes.iter().find(|outcome| outcome.pair == pair)?;
        median(&acted(&outcome.failovers, Fault::Terminated))
    }
}

fn name(pair: Pair) -> &'static str {
    match pair {
        Pair::Ours => "two of ours",
        Pair::InTurns => "ours and upstream's",
        Pair::Peer => "two of upstream's",
    }
}

fn acted(failovers: &[Failover], fault: Fault) -> Vec<Duration> {
    failovers.iter().filter(|it| it.fault == fault).map(|it| it.acted).collect()
}

fn median(times: &[Duration]) -> Option<Duration> {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied()
}

fn figure(times: &[Duration]) -> Option<String> {
    let (median, longest) = (median(times)?, times.iter().max()?);
    Some(format!("{:.2} s ({:.2} s)", median.as_secs_f64(), longest.as_secs_f64()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(pair: Pair, fault: Fault, acted: &[u64]) -> Outcome {
        let [from, to] = pair.subjects();
        let failover = |millis: &u64| {
            let acted = Duration::from_millis(*millis);
            Failover { fault, from, to, led: acted / 2, acted }
        };
        Outcome {
            pair,
            failovers: acted.iter().map(failover).collect(),
            writes: 10,
            foreign: Vec::new(),
            surplus: Vec::new(),
            repeated: Vec::new(),
        }
    }

    #[test]
    fn late_successors_and_writes_without_the_lease_are_violations() {
        let lease = Duration::from_secs(15);
        let ours = outcome(Pair::Ours, Fault::Terminated, &[200, 300, 4000]);
        let peer = outcome(Pair::Peer, Fault::Terminated, &[19_000]);
        let good = Report { outcomes: vec![ours, peer.clone()], lease };
        assert_eq!(good.violations(), [""; 0]);
        assert!(
            good.table().contains("| two of ours | SIGTERM | ours → ours | 3 | 0.15 s (2.00 s) | 0.30 s (4.00 s) |")
        );
        let mut late = outcome(Pair::Ours, Fault::Terminated, &[1500]);
        late.foreign = vec![(Subject::Ours, "pods".to_owned()), (Subject::Peer, "pods".to_owned())];
        let killed = outcome(Pair::Ours, Fault::Killed, &[15_900]);
        assert_eq!(Report { outcomes: vec![late, peer, killed], lease }.violations().len(), 3);
    }
}
