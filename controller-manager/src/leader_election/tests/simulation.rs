//! Candidates with drifting clocks on an API server with late or lost responses, whose lease is deleted now and then: never
//! do two of them write.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use kcm_framework::client::Mark;
use proptest::prelude::*;

use super::super::elector::{Elector, Lease, LeaseResponse, Next, Request, Timing};

const TIMING: Timing = Timing {
    lease_duration: Duration::from_secs(15),
    renew_deadline: Duration::from_secs(10),
    retry_period: Duration::from_secs(2),
};

/// Milliseconds of true time.
type Millis = u64;

/// Faults of the requests in a run, and their frequency.
#[derive(Debug, Clone)]
struct Weather {
    seed: u64,
    /// The rate of each candidate's clock, in thousandths: 990 is one percent slow.
    rates: Vec<u64>,
    /// The longest time that a request takes to reach the server; it may land long after its client gave up.
    slowest: Millis,
    /// Number of a hundred requests that never arrive, and of a hundred responses that never return.
    lost: (u64, u64),
    /// Number of a hundred wake-ups that are late, as after a SIGSTOP, and the longest delay.
    stopped: (u64, Millis),
    /// Number of a hundred steps before which the machine is suspended, and the longest suspension.
    suspended: (u64, Millis),
    /// Number of a hundred steps that begin a time without connection for the candidate, and the longest such time.
    cut: (u64, Millis),
    /// Times at which an operator deletes the lease, unless it is [too new](World::may_be_deleted).
    deleted: Vec<Millis>,
    /// When all of this ends.
    until: Millis,
}

enum Event {
    /// The candidate takes its next step.
    Step(usize),
    /// The request of a candidate reaches the server.
    Lands(usize, u64, Request),
    /// The response returns, or the request times out.
    Returns(usize, u64, LeaseResponse),
    /// A watch shows the lease to a candidate.
    Shows(usize, Lease),
    /// An operator deletes the lease.
    Deleted,
}

struct Candidate {
    elector: Elector,
    rate: u64,
    /// Until when it reaches nothing.
    cut_until: Millis,
    /// Suspensions of its machine: begin and end.
    suspensions: Vec<(Millis, Millis)>,
    /// Number, time and content of the last request; responses to other requests are ignored.
    sent: Option<(u64, Mark, Request)>,
}

/// The clock by which candidates measure leases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Clock {
    /// It moves while the machine is suspended.
    Boot,
    /// It stands still then.
    Monotonic,
}

struct World {
    weather: Weather,
    clock: Clock,
    start: Mark,
    rng: fastrand::Rng,
    lease: Option<Lease>,
    /// Time at which the lease was created.
    created: Millis,
    version: u64,
    requests: u64,
    candidates: Vec<Candidate>,
    events: BTreeMap<(Millis, u64), Event>,
    order: u64,
}

impl World {
    fn new(weather: Weather, clock: Clock) -> Self {
        let candidates = weather.rates.iter().enumerate().map(|(number, rate)| Candidate {
            elector: Elector::new(format!("candidate-{number}"), TIMING),
            rate: *rate,
            cut_until: 0,
            suspensions: Vec::new(),
            sent: None,
        });
        let candidates: Vec<_> = candidates.collect();
        let mut world = Self {
            start: Mark::after(Duration::ZERO),
            rng: fastrand::Rng::with_seed(weather.seed),
            lease: None,
            created: 0,
            version: 0,
            requests: 0,
            events: BTreeMap::new(),
            order: 0,
            candidates,
            weather,
            clock,
        };
        for number in 0..world.candidates.len() {
            let at = world.rng.u64(0..1000);
            world.schedule(at, Event::Step(number));
        }
        for at in world.weather.deleted.clone() {
            world.schedule(at, Event::Deleted);
        }
        world
    }

    fn schedule(&mut self, at: Millis, event: Event) {
        self.order += 1;
        self.events.insert((at, self.order), event);
    }

    fn local(&self, candidate: usize, at: Millis) -> Mark {
        let Candidate { rate, suspensions, .. } = &self.candidates[candidate];
        let suspended = match self.clock {
            Clock::Boot => 0,
            Clock::Monotonic => suspensions.iter().map(|(begin, end)| at.clamp(*begin, *end) - begin).sum(),
        };
        self.start + Duration::from_micros((at - suspended) * rate)
    }

    /// When a machine that is suspended goes on.
    fn goes_on_at(&self, number: usize, now: Millis) -> Option<Millis> {
        let last = self.candidates[number].suspensions.last();
        last.map(|(_, end)| *end).filter(|end| now < *end)
    }

    /// True time after which a clock has moved by `local`.
    fn true_delay(&self, candidate: usize, local: Duration) -> Millis {
        u64::try_from(local.as_micros()).unwrap() / self.candidates[candidate].rate + 1
    }

    fn chance(&mut self, percent: u64, now: Millis) -> bool {
        now < self.weather.until && self.rng.u64(0..100) < percent
    }

    fn is_cut(&self, number: usize, now: Millis) -> bool {
        now < self.candidates[number].cut_until
    }

    fn latency(&mut self, now: Millis) -> Millis {
        let rough = now < self.weather.until && self.rng.u64(0..4) == 0;
        self.rng.u64(1..=if rough { self.weather.slowest.max(2) } else { 20 })
    }

    fn step(&mut self, number: usize, now: Millis) {
        let (percent, longest) = self.weather.stopped;
        if self.chance(percent, now) {
            let late = self.rng.u64(0..=longest);
            self.schedule(now + late, Event::Step(number));
            return;
        }
        let (percent, longest) = self.weather.suspended;
        if self.chance(percent, now) {
            let end = now + self.rng.u64(0..=longest);
            self.candidates[number].suspensions.push((now, end));
            self.schedule(end, Event::Step(number));
            return;
        }
        let local = self.local(number, now);
        let wall = Timestamp::from_millisecond(i64::try_from(now).unwrap()).unwrap();
        let request = self.candidates[number].elector.request(local, wall);
        self.requests += 1;
        let id = self.requests;
        self.candidates[number].sent = Some((id, local, request.clone()));
        let (percent, longest) = self.weather.cut;
        if self.chance(percent, now) {
            self.candidates[number].cut_until = now + self.rng.u64(0..=longest);
        }
        let (lost, _) = self.weather.lost;
        if !self.chance(lost, now) && !self.is_cut(number, now) {
            let at = now + self.latency(now);
            self.schedule(at, Event::Lands(number, id, request));
        }
        let timeout = now + self.true_delay(number, TIMING.request_timeout());
        self.schedule(timeout, Event::Returns(number, id, LeaseResponse::Failed));
    }

    fn land(&mut self, number: usize, id: u64, request: Request, now: Millis) {
        let answer = match (request, &self.lease) {
            (Request::Get | Request::Update(_), None) => LeaseResponse::NotFound,
            (Request::Get, Some(lease)) => LeaseResponse::Lease(lease.clone()),
            (Request::Create(_), Some(_)) => LeaseResponse::Failed,
            (Request::Update(update), Some(lease)) if update.version != lease.version => LeaseResponse::Failed,
            (Request::Create(record), None) | (Request::Update(Lease { record, .. }), Some(_)) => {
                self.version += 1;
                if self.lease.is_none() {
                    self.created = now;
                }
                let lease = Lease { record, version: self.version.to_string().as_str().into(), object: () };
                self.lease = Some(lease.clone());
                for other in (0..self.candidates.len()).filter(|other| *other != number) {
                    let at = now + self.latency(now);
                    self.schedule(at, Event::Shows(other, lease.clone()));
                }
                LeaseResponse::Lease(lease)
            }
        };
        let (_, lost) = self.weather.lost;
        if !self.chance(lost, now) && !self.is_cut(number, now) {
            let at = now + self.latency(now);
            self.schedule(at, Event::Returns(number, id, answer));
        }
    }

    fn answer(&mut self, number: usize, id: u64, answer: LeaseResponse, now: Millis) {
        if let Some(end) = self.goes_on_at(number, now) {
            return self.schedule(end, Event::Returns(number, id, answer));
        }
        let local = self.local(number, now);
        let Some((_, sent, request)) = self.candidates[number].sent.take_if(|(sent, ..)| *sent == id) else { return };
        let next = self.candidates[number].elector.answered(&request, sent, answer, local, &mut self.rng);
        let delay = match next {
            Next::Continue => 0,
            Next::After(delay) => self.true_delay(number, delay),
        };
        self.schedule(now + delay, Event::Step(number));
    }

    /// Runs until `end`. Returns the time of an event at which more than one candidate may write.
    fn run(&mut self, end: Millis) -> Option<Millis> {
        while let Some(entry) = self.events.first_entry().filter(|entry| entry.key().0 <= end) {
            let ((now, _), event) = entry.remove_entry();
            match event {
                Event::Step(number) => self.step(number, now),
                Event::Lands(number, id, request) => self.land(number, id, request, now),
                Event::Returns(number, id, answer) => self.answer(number, id, answer, now),
                Event::Shows(number, lease) if !self.is_cut(number, now) => {
                    let local = self.local(number, now);
                    self.candidates[number].elector.observe(lease, local);
                }
                Event::Deleted if self.may_be_deleted(now) => self.lease = None,
                Event::Shows(..) | Event::Deleted => {}
            }
            if (0..self.candidates.len()).filter(|number| self.may_write(*number, now)).count() > 1 {
                return Some(now);
            }
        }
        None
    }

    /// Returns `true` if nobody writes beside the holder after a deletion now: every candidate has seen the lease, and it
    /// was not created within the renew deadline.
    fn may_be_deleted(&self, now: Millis) -> bool {
        self.created + 15_000 < now && self.candidates.iter().all(|it| it.elector.last_lease().is_some())
    }

    fn may_write(&self, number: usize, now: Millis) -> bool {
        let until = self.candidates[number].elector.writes_until();
        until.is_some_and(|until| self.local(number, now) < until)
    }

    fn leaders(&self, now: Millis) -> usize {
        (0..self.candidates.len()).filter(|it| self.candidates[*it].elector.leads(self.local(*it, now))).count()
    }
}

fn weather() -> impl Strategy<Value = Weather> {
    (
        any::<u64>(),
        proptest::collection::vec(980_u64..=1020, 2..5),
        0_u64..60_000,
        (0_u64..60, 0_u64..60),
        (0_u64..20, 0_u64..60_000),
        (0_u64..20, 0_u64..60_000),
        (0_u64..20, 0_u64..60_000),
        proptest::collection::vec(0_u64..600_000, 0..8),
    )
        .prop_map(|(seed, rates, slowest, lost, stopped, suspended, cut, deleted)| Weather {
            seed,
            rates,
            slowest,
            lost,
            stopped,
            suspended,
            cut,
            deleted,
            until: 600_000,
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn never_two_may_write_and_one_leads_once_requests_are_answered(weather in weather()) {
        let mut world = World::new(weather, Clock::Boot);
        let faults_end = world.weather.until;
        prop_assert_eq!(world.run(faults_end), None, "the time at which two may write");
        // A request that was sent in the faults may land a minute later, and a stopped process wakes as late.
        let end = faults_end + 200_000;
        prop_assert_eq!(world.run(end), None, "the time at which two may write");
        prop_assert_eq!(world.leaders(end), 1);
    }
}

/// Why leases are not measured with a clock that stands still.
#[test]
fn with_a_clock_that_stands_still_during_suspensions_two_would_write() {
    let weather = |seed| Weather {
        seed,
        rates: vec![1000, 1000],
        slowest: 100,
        lost: (0, 0),
        stopped: (0, 0),
        suspended: (5, 60_000),
        cut: (0, 0),
        deleted: Vec::new(),
        until: 600_000,
    };
    let ends = |clock| (0..20).filter(|seed| World::new(weather(*seed), clock).run(600_000).is_some()).count();
    assert_eq!(ends(Clock::Boot), 0);
    assert!(ends(Clock::Monotonic) > 0);
}

/// 24 hours of renewals, with one in a hundred requests and responses lost: the leader changes only after two failures
/// in a row.
#[test]
fn a_day_of_renewals_with_faults_has_one_writer_at_any_time() {
    let day = 24 * 3_600_000;
    let weather = Weather {
        seed: 7,
        rates: vec![1000, 1001, 999],
        slowest: 3_000,
        lost: (1, 1),
        stopped: (0, 0),
        suspended: (0, 0),
        cut: (0, 0),
        deleted: Vec::new(),
        until: day,
    };
    let mut world = World::new(weather, Clock::Boot);
    assert_eq!(world.run(day), None, "the time at which two may write");
    let lease = world.lease.clone().expect("the lease was created");
    assert!(world.requests > 40_000, "a renewal every two seconds, not {}", world.requests);
    // Two failures in a row reach the renew deadline, as each takes half of it: about one renewal in 2,500.
    assert!(lease.record.transitions <= 20, "the leader changed {} times", lease.record.transitions);
}
