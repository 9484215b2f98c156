//! Formats a snapshot as lines of at most 79 columns, readable without colours. Pure.

use std::time::Duration;

use jiff::Timestamp;

use super::script::Step;
use super::snapshot::{Deployment, Event, PodState, ReplicaSet, Snapshot};
use crate::screen::{HEIGHT, Screen, WIDTH};

/// Maximum number of pods in a bar.
const BAR: u64 = 30;
/// Number of events that are displayed.
const EVENTS: usize = 7;

/// The position in the demo at which a snapshot was taken.
#[derive(Debug, Clone, Copy)]
pub(super) struct Progress<'a> {
    pub(super) step: &'a Step,
    /// Number of the step, from 1.
    pub(super) number: usize,
    pub(super) of: usize,
    pub(super) elapsed: Duration,
    pub(super) now: Timestamp,
}

#[derive(Debug, Clone, Copy)]
enum Colour {
    Bold,
    Dim,
    Green,
    Yellow,
    Red,
}

impl Screen {
    fn paint(self, colour: Colour, text: &str) -> String {
        if !self.colour || text.is_empty() {
            return text.to_owned();
        }
        let code = match colour {
            Colour::Bold => 1,
            Colour::Dim => 2,
            Colour::Green => 32,
            Colour::Yellow => 33,
            Colour::Red => 31,
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }

    /// The symbols of a bar: ready, coming, missing.
    const fn marks(self) -> [&'static str; 3] {
        if self.unicode { ["█", "▒", "·"] } else { ["#", "+", "."] }
    }
}

/// Formats the whole screen.
pub(super) fn screen(snapshot: &Snapshot, progress: &Progress<'_>, style: Screen) -> Vec<String> {
    let mut lines = Vec::new();
    let place = format!("{} of {}   {}", progress.number, progress.of, clock(progress.elapsed));
    lines.push(format!(
        "{}{}",
        style.paint(Colour::Bold, &pad(progress.step.caption, WIDTH - place.len())),
        style.paint(Colour::Dim, &place)
    ));
    lines.push(style.paint(Colour::Dim, &clip(&format!("$ {}", progress.step.command), WIDTH)));
    for deployment in &snapshot.deployments {
        lines.push(String::new());
        lines.extend(deployment_lines(deployment, style));
    }
    lines.push(String::new());
    lines.push(clip(&format!("pods    {}", pods(snapshot)), WIDTH));
    lines.push(clip(&format!("queues  {}", queues(snapshot)), WIDTH));
    lines.push(String::new());
    let from = snapshot.events.len().saturating_sub(EVENTS);
    lines.extend(snapshot.events[from..].iter().map(|event| event_line(event, progress.now, style)));
    // Lines that scroll away cannot be drawn over.
    lines.truncate(HEIGHT);
    lines
}

fn deployment_lines(deployment: &Deployment, style: Screen) -> Vec<String> {
    let head = format!(
        "deployment {}   {}/{} ready, {} up to date, {} in all",
        deployment.name, deployment.ready, deployment.desired, deployment.updated, deployment.total
    );
    let longest = deployment.sets.iter().map(|set| set.desired.max(set.ready + set.coming)).max().unwrap_or(0);
    let scale = Scale::of(longest);
    let mut lines = vec![style.paint(Colour::Bold, &clip(&head, WIDTH))];
    lines.extend(deployment.sets.iter().map(|set| set_line(set, scale, style)));
    lines
}

/// Scale of a bar: `columns` columns for `pods` pods.
#[derive(Debug, Clone, Copy)]
struct Scale {
    columns: u64,
    pods: u64,
}

impl Scale {
    /// Two columns for each of a few pods; many pods share a column.
    fn of(longest: u64) -> Self {
        match longest {
            ..=15 => Self { columns: 2, pods: 1 },
            16..=BAR => Self { columns: 1, pods: 1 },
            _ => Self { columns: BAR, pods: longest },
        }
    }

    fn columns(self, pods: u64) -> usize {
        usize::try_from((pods * self.columns).div_ceil(self.pods)).unwrap_or(usize::MAX)
    }
}

fn set_line(set: &ReplicaSet, scale: Scale, style: Screen) -> String {
    let columns = |count| scale.columns(count);
    let [ready, coming, missing] = style.marks();
    let there = set.ready + set.coming;
    let bars = [
        (Colour::Green, ready.repeat(columns(set.ready))),
        (Colour::Yellow, coming.repeat(columns(there) - columns(set.ready))),
        (Colour::Dim, missing.repeat(columns(set.desired.max(there)) - columns(there))),
    ];
    let mut line = format!("  rev {:<3} {}  ", set.revision, pad(&set.image, 14));
    let mut width = 0;
    for (colour, bar) in bars {
        width += bar.chars().count();
        line.push_str(&style.paint(colour, &bar));
    }
    line.push_str(&" ".repeat(Scale::of(BAR).columns(BAR).saturating_sub(width)));
    line + &format!("  {}/{}", set.ready, set.desired)
}

fn pods(snapshot: &Snapshot) -> String {
    let counted = PodState::ALL.iter().filter(|state| snapshot.count(**state) > 0);
    let words: Vec<String> = counted.map(|state| format!("{} {}", snapshot.count(*state), state.word())).collect();
    if words.is_empty() { "none".to_owned() } else { words.join(", ") }
}

fn queues(snapshot: &Snapshot) -> String {
    let words: Vec<String> = snapshot.queues.iter().map(|(name, depth)| format!("{name} {depth}")).collect();
    words.join(", ")
}

fn event_line(event: &Event, now: Timestamp, style: Screen) -> String {
    let age = now.duration_since(event.at).as_secs().max(0);
    let times = if event.count > 1 { format!(" (x{})", event.count) } else { String::new() };
    let object = event.object.rsplit('/').next().unwrap_or_default();
    let text = format!("{} {}{times}: {}", pad(object, 20), event.reason, event.message);
    let text = clip(&text, WIDTH - 6);
    let text = if event.warning { style.paint(Colour::Red, &text) } else { text };
    format!("{age:>4}s {text}")
}

/// Formats a snapshot as one line; equal snapshots give equal lines.
pub(super) fn line(snapshot: &Snapshot) -> String {
    let mut parts = Vec::new();
    for deployment in &snapshot.deployments {
        parts.push(format!("{} {}/{} ready", deployment.name, deployment.ready, deployment.desired));
        let sets = deployment.sets.iter();
        parts.extend(sets.map(|set| format!("rev {} {} {}/{}", set.revision, set.image, set.ready, set.desired)));
    }
    parts.push(format!("pods: {}", pods(snapshot)));
    parts.join("; ")
}

/// Formats an event as one line.
pub(super) fn event(event: &Event) -> String {
    let word = if event.warning { "warning" } else { "event" };
    clip(&format!("  {word} {} {}: {}", event.object, event.reason, event.message), WIDTH)
}

/// Formats a duration as minutes and seconds.
pub(super) fn clock(elapsed: Duration) -> String {
    format!("{}:{:02}", elapsed.as_secs() / 60, elapsed.as_secs() % 60)
}

fn pad(text: &str, width: usize) -> String {
    format!("{:<width$}", clip(text, width))
}

fn clip(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width.saturating_sub(2)).collect();
    format!("{kept}..")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::script::STEPS;
    use super::*;

    fn snapshot() -> Snapshot {
        let set = |revision, image: &str, desired, ready, coming| ReplicaSet {
            name: format!("web-{revision}"),
            revision,
            image: image.to_owned(),
            desired,
            ready,
            coming,
        };
        let event = Event {
            at: Timestamp::UNIX_EPOCH,
            warning: true,
            object: "Pod/web-6d4cf56db6-abcde".to_owned(),
            reason: "Failed".to_owned(),
            message: "a message that goes on and on, further than any line of a terminal could ever hold".to_owned(),
            count: 3,
        };
        Snapshot {
            deployments: vec![Deployment {
                name: "web".to_owned(),
                desired: 6,
                ready: 5,
                updated: 3,
                total: 8,
                observed: true,
                sets: vec![set(1, "shop:1.0", 5, 5, 0), set(2, "shop:2.0", 3, 0, 2)],
            }],
            pods: BTreeMap::from([(PodState::Ready, 5), (PodState::Starting, 2)]),
            events: vec![event],
            queues: BTreeMap::from([("deployment".to_owned(), 0)]),
        }
    }

    fn shown(colour: bool, unicode: bool) -> Vec<String> {
        let progress = Progress {
            step: &STEPS[1],
            number: 2,
            of: 5,
            elapsed: Duration::from_secs(75),
            now: Timestamp::from_second(9).expect("nine seconds are a time"),
        };
        screen(&snapshot(), &progress, Screen { redraws: true, colour, unicode })
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for line in shown(false, true) {
            assert!(line.chars().count() <= WIDTH, "{line}");
        }
    }

    #[test]
    fn no_screen_is_higher_than_the_terminal() {
        let mut snapshot = snapshot();
        snapshot.deployments = vec![snapshot.deployments[0].clone(); 30];
        let progress =
            Progress { step: &STEPS[0], number: 1, of: 5, elapsed: Duration::ZERO, now: Timestamp::UNIX_EPOCH };
        let lines = screen(&snapshot, &progress, Screen { redraws: true, colour: false, unicode: false });
        assert_eq!(lines.len(), HEIGHT);
    }

    #[test]
    fn it_reads_without_colours_and_without_unicode() {
        let lines = shown(false, false);
        assert!(lines.iter().all(|line| line.is_ascii()), "{lines:?}");
        assert_eq!(lines[0], format!("{:<66}2 of 5   1:15", STEPS[1].caption));
        assert_eq!(lines[3], "deployment web   5/6 ready, 3 up to date, 8 in all");
        assert_eq!(lines[4], "  rev 1   shop:1.0        ##########                      5/5");
        assert_eq!(lines[5], "  rev 2   shop:2.0        ++++..                          0/3");
        assert_eq!(lines[7], "pods    5 ready, 2 starting");
        assert_eq!(lines[10], "   9s web-6d4cf56db6-abcde Failed (x3): a message that goes on and on, furthe..");
    }

    #[test]
    fn colours_change_no_text() {
        let plain = |line: &str| {
            let mut parts = line.split("\x1b[");
            let first = parts.next().unwrap_or_default().to_owned();
            parts.fold(first, |text, part| text + part.split_once('m').map_or(part, |(_, rest)| rest))
        };
        let coloured: Vec<String> = shown(true, true).iter().map(|line| plain(line)).collect();
        assert_eq!(coloured, shown(false, true));
    }

    #[test]
    fn a_pipe_gets_one_line() {
        assert_eq!(
            line(&snapshot()),
            "web 5/6 ready; rev 1 shop:1.0 5/5; rev 2 shop:2.0 0/3; pods: 5 ready, 2 starting"
        );
    }
}
