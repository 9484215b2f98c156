//! An explanation as lines for operators.

use std::fmt;

use super::explanation::{
    EventExplanation, KeyExplanation, KeyState, ReconcileExplanation, TriggerExplanation, WaitExplanation,
    WriteExplanation,
};

impl fmt::Display for KeyExplanation {
    /// Lines for operators: the state of the key, what it waits for, and its reconciles, the newest first.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let resource = self.resource.as_deref().unwrap_or("key");
        writeln!(f, "{resource} {}, {}, loop {}", self.key, self.controller, self.name)?;
        let missing = if self.exists == Some(false) { "; the cache has no such object" } else { "" };
        writeln!(f, "  State: {}{missing}", self.state_in_words())?;
        for wait in &self.waits_for {
            writeln!(f, "  Waits for: {wait}")?;
        }
        for trigger in &self.pending_triggers {
            writeln!(f, "  Enqueued by: {trigger}")?;
        }
        if self.reconciles.is_empty() {
            writeln!(f, "  No reconcile is recorded.")?;
        }
        for reconcile in &self.reconciles {
            write!(f, "{reconcile}")?;
        }
        Ok(())
    }
}

impl KeyExplanation {
    fn state_in_words(&self) -> String {
        let seconds = self.state_seconds.map(|seconds| format!(" for {}", Span(seconds))).unwrap_or_default();
        let state = match self.state {
            KeyState::Idle => "idle".to_owned(),
            KeyState::Ready => format!("ready{seconds}"),
            KeyState::Processing => format!("processing{seconds}"),
            KeyState::WaitingForWrites => format!("waiting for its writes{seconds}"),
        };
        match self.failures {
            0 => state,
            1 => format!("{state}; its last reconcile failed"),
            failures => format!("{state}; its last {failures} reconciles failed"),
        }
    }
}

impl fmt::Display for WaitExplanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        self.in_seconds.map_or(Ok(()), |seconds| write!(f, ", in {}", Span(seconds)))
    }
}

impl fmt::Display for TriggerExplanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let resource = self.resource.as_deref().unwrap_or("object");
        let event = |verb: &str| match &self.object {
            Some(object) => format!("{resource} {object} was {verb}"),
            None => format!("it was {verb}"),
        };
        f.write_str(&match self.reason.as_str() {
            "Added" => event("added"),
            "Updated" => event("updated"),
            "Deleted" => event("deleted"),
            "Listed" => "the first list, a resync, or another loop".to_owned(),
            "Requeue" => "the earlier reconcile asked for it".to_owned(),
            "BackOff" => "the earlier reconcile failed, and its back-off is over".to_owned(),
            "OutageEnded" => "the API server can be reached again".to_owned(),
            other => event(other),
        })?;
        if self.count > 1 {
            write!(f, " ({} times)", self.count)?;
        }
        if self.delayed { f.write_str(", after a delay") } else { Ok(()) }
    }
}

impl fmt::Display for ReconcileExplanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let attempt = if self.attempt > 1 { format!(", attempt {}", self.attempt) } else { String::new() };
        let (ago, took) = (Span(self.seconds_ago), Span(self.took_seconds));
        writeln!(f, "  {} ({ago} ago), took {took}{attempt}", self.at)?;
        for trigger in &self.triggers {
            writeln!(f, "    because  {trigger}")?;
        }
        match &self.resource_version {
            Some(version) if self.terminating => writeln!(f, "    saw      version {version}, being deleted")?,
            Some(version) => writeln!(f, "    saw      version {version}")?,
            None if self.missing => writeln!(f, "    saw      no object")?,
            None => {}
        }
        for decision in &self.decisions {
            writeln!(f, "    decided  {decision}")?;
        }
        for write in &self.writes {
            writeln!(f, "    wrote    {write}")?;
        }
        for event in &self.events {
            writeln!(f, "    event    {event}")?;
        }
        if self.left_out > 0 {
            writeln!(f, "    and {} more", self.left_out)?;
        }
        self.write_outcome(f)
    }
}

impl ReconcileExplanation {
    fn write_outcome(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let error = self.error.as_deref().unwrap_or("no error is known");
        match self.outcome.as_str() {
            "Failed" => writeln!(f, "    failed   {}: {error}", self.class.as_deref().unwrap_or("error")),
            "Unreachable" => writeln!(f, "    failed   the API server cannot be reached: {error}"),
            "Panicked" => writeln!(f, "    panicked {error}"),
            _succeeded => match self.requeue_after_seconds {
                Some(seconds) => writeln!(f, "    done     again in {} at the latest", Span(seconds)),
                None => writeln!(f, "    done     again when something changes"),
            },
        }
    }
}

impl fmt::Display for WriteExplanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.resource)?;
        if let Some(object) = &self.object {
            write!(f, " {object}")?;
        }
        if self.count > 1 {
            write!(f, " and {} more", self.count - 1)?;
        }
        match (self.failed, &self.error) {
            (0, _) => Ok(()),
            (failed, Some(error)) if self.count > 1 => write!(f, "; {failed} failed: {error}"),
            (_, Some(error)) => write!(f, "; it failed: {error}"),
            (failed, None) => write!(f, "; {failed} failed"),
        }
    }
}

impl fmt::Display for EventExplanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.reason, self.message)?;
        if self.count > 1 { write!(f, " (and {} more)", self.count - 1) } else { Ok(()) }
    }
}

/// Seconds in the largest two units.
struct Span(f64);

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.max(0.0);
        if seconds < 0.001 {
            return write!(f, "{:.0}µs", seconds * 1e6);
        }
        if seconds < 1.0 {
            return write!(f, "{:.0}ms", seconds * 1e3);
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is positive, and saturates")]
        let whole = seconds.round() as u64;
        match (whole / 86400, whole / 3600 % 24, whole / 60 % 60, whole % 60) {
            (0, 0, 0, seconds) => write!(f, "{seconds}s"),
            (0, 0, minutes, seconds) => write!(f, "{minutes}m{seconds}s"),
            (0, hours, minutes, _) => write!(f, "{hours}h{minutes}m"),
            (days, hours, _, _) => write!(f, "{days}d{hours}h"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trigger(reason: &str, object: Option<&str>, count: u32) -> TriggerExplanation {
        let resource = object.map(|_| "replicasets.apps".to_owned());
        TriggerExplanation {
            reason: reason.to_owned(),
            resource,
            object: object.map(str::to_owned),
            count,
            delayed: false,
        }
    }

    #[test]
    fn an_explanation_reads_from_the_state_to_the_oldest_reconcile() {
        let reconcile = ReconcileExplanation {
            at: "2026-01-02T03:04:05.006Z".to_owned(),
            seconds_ago: 12.0,
            took_seconds: 0.0031,
            attempt: 2,
            triggers: vec![trigger("Updated", Some("shop/web-1"), 3), trigger("BackOff", None, 1)],
            resource_version: Some("7".to_owned()),
            terminating: false,
            missing: false,
            decisions: vec!["rolls out the template".to_owned()],
            writes: vec![WriteExplanation {
                verb: "update".to_owned(),
                resource: "replicasets.apps".to_owned(),
                object: Some("shop/web-1".to_owned()),
                count: 2,
                failed: 1,
                error: Some("no".to_owned()),
            }],
            events: vec![EventExplanation {
                reason: "ScalingReplicaSet".to_owned(),
                message: "Scaled up".to_owned(),
                count: 1,
            }],
            left_out: 0,
            outcome: "Failed".to_owned(),
            class: Some("conflict".to_owned()),
            error: Some("too late".to_owned()),
            requeue_after_seconds: None,
        };
        let explained = KeyExplanation {
            controller: "deployment-controller".to_owned(),
            name: "deployment".to_owned(),
            resource: Some("deployments.apps".to_owned()),
            key: "shop/web".to_owned(),
            exists: Some(true),
            failures: 2,
            waits_for: vec![WaitExplanation {
                reason: "BackOff".to_owned(),
                message: "its back-off after 2 failures".to_owned(),
                in_seconds: Some(0.01),
            }],
            reconciles: vec![reconcile],
            ..KeyExplanation::default()
        };
        let expected = "\
deployments.apps shop/web, deployment-controller, loop deployment
  State: idle; its last 2 reconciles failed
  Waits for: its back-off after 2 failures, in 10ms
  2026-01-02T03:04:05.006Z (12s ago), took 3ms, attempt 2
    because  replicasets.apps shop/web-1 was updated (3 times)
    because  the earlier reconcile failed, and its back-off is over
    saw      version 7
    decided  rolls out the template
    wrote    update replicasets.apps shop/web-1 and 1 more; 1 failed: no
    event    ScalingReplicaSet: Scaled up
    failed   conflict: too late
";
        assert_eq!(explained.to_string(), expected);
    }

    #[test]
    fn spans_have_two_units() {
        for (seconds, written) in
            [(0.000_02, "20µs"), (0.5, "500ms"), (59.4, "59s"), (61.0, "1m1s"), (3660.0, "1h1m"), (90_000.0, "1d1h")]
        {
            assert_eq!(Span(seconds).to_string(), written);
        }
    }
}
