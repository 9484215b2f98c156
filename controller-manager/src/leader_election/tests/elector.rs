//! The rules of one participant, one at a time; `simulation.rs` lets several compete.

use std::time::Duration;

use jiff::Timestamp;
use kcm_framework::client::Mark;

use super::super::elector::{Elector, Lease, LeaseRecord, LeaseResponse, Next, Request, Timing};

const TIMING: Timing = Timing {
    lease_duration: Duration::from_secs(15),
    renew_deadline: Duration::from_secs(10),
    retry_period: Duration::from_secs(2),
};

const ME: &str = "me";

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn wall(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn lease(version: &str, holder: &str, duration: Duration) -> Lease {
    let record =
        LeaseRecord { holder: holder.to_owned(), duration, acquired_at: wall(1), renewed_at: wall(2), transitions: 3 };
    Lease { record, version: version.into(), object: () }
}

/// A participant, the clock of its machine, and its random numbers.
struct Participant {
    elector: Elector,
    now: Mark,
    rng: fastrand::Rng,
}

impl Participant {
    fn new() -> Self {
        Self {
            elector: Elector::new(ME, TIMING),
            now: Mark::after(Duration::from_hours(1)),
            rng: fastrand::Rng::with_seed(1),
        }
    }

    /// The next request, sent at a second of the wall clock.
    fn request(&self, second: i64) -> Request {
        self.elector.request(self.now, wall(second))
    }

    fn answered(&mut self, request: &Request, answer: LeaseResponse) -> Next {
        self.elector.answered(request, self.now, answer, self.now, &mut self.rng)
    }

    /// Reads the lease and returns the next step.
    fn reads(&mut self, lease: Lease) -> Next {
        assert_eq!(self.request(0), Request::Get);
        self.answered(&Request::Get, LeaseResponse::Lease(lease))
    }

    /// Reads a free lease and takes it at second 10, with version 6 then.
    fn leading() -> Self {
        let mut participant = Self::new();
        assert_eq!(participant.reads(lease("5", "", seconds(1))), Next::Continue);
        let request = participant.request(10);
        let Request::Update(Lease { record, .. }) = request.clone() else { panic!("{request:?}") };
        let next =
            participant.answered(&request, LeaseResponse::Lease(Lease { record, version: "6".into(), object: () }));
        assert_eq!(next, Next::After(TIMING.retry_period));
        participant
    }
}

#[test]
fn a_request_may_take_half_of_the_renew_deadline_and_at_least_a_second() {
    for (renew_deadline, expected) in [(10_000, 5_000), (3_000, 1_500), (2_000, 1_000), (1_000, 1_000)] {
        let timing = Timing { renew_deadline: Duration::from_millis(renew_deadline), ..TIMING };
        assert_eq!(timing.request_timeout(), Duration::from_millis(expected), "{renew_deadline} ms");
    }
}

#[test]
fn a_lease_that_is_held_is_tried_again_after_one_to_two_and_a_fifth_retry_periods() {
    let delays = (0..1_000).map(|seed| {
        let mut participant = Participant { rng: fastrand::Rng::with_seed(seed), ..Participant::new() };
        match participant.reads(lease("5", "another", seconds(3600))) {
            Next::After(delay) => delay,
            Next::Continue => panic!("it is held"),
        }
    });
    let delays: Vec<Duration> = delays.collect();
    let (least, most) = (delays.iter().min().unwrap(), delays.iter().max().unwrap());
    assert!((TIMING.retry_period..Duration::from_millis(2_050)).contains(least), "{least:?}");
    assert!((Duration::from_millis(4_350)..=Duration::from_millis(4_400)).contains(most), "{most:?}");
}

#[test]
fn a_lease_expires_its_own_duration_after_its_last_change_was_seen_whatever_its_times_say() {
    for renewed_at in [wall(-4_000_000_000), wall(8_000_000_000)] {
        let mut participant = Participant::new();
        let mut held = lease("5", "another", seconds(60));
        held.record.renewed_at = renewed_at;
        let begun = participant.now;
        for (second, version, is_expired) in
            [(0, "5", false), (59, "5", false), (59, "6", false), (118, "6", false), (119, "6", true)]
        {
            participant.now = begun + seconds(second);
            held.version = version.into();
            let next = participant.reads(held.clone());
            assert_eq!(next == Next::Continue, is_expired, "version {version} after {second} s: {next:?}");
        }
        assert!(matches!(participant.request(0), Request::Update(_)));
    }
}

#[test]
fn a_change_of_the_holder_is_a_transition_and_a_renewal_is_none() {
    let taken = Participant::leading().elector.request(Mark::after(Duration::from_hours(1)), wall(12));
    let Request::Update(Lease { record, version, .. }) = taken else { panic!("{taken:?}") };
    assert_eq!(version, "6".into());
    let expected = LeaseRecord {
        holder: ME.to_owned(),
        duration: TIMING.lease_duration,
        acquired_at: wall(10),
        renewed_at: wall(12),
        transitions: 4,
    };
    assert_eq!(record, expected, "it was free with three transitions, and is renewed two seconds after it was taken");

    let mut first = Participant::new();
    assert_eq!(first.answered(&Request::Get, LeaseResponse::NotFound), Next::Continue);
    let expected = LeaseRecord { acquired_at: wall(10), renewed_at: wall(10), transitions: 0, ..expected };
    assert_eq!(first.request(10), Request::Create(expected));
}

#[test]
fn a_renewal_that_fails_is_tried_once_more_with_the_lease_as_it_is() {
    let mut leader = Participant::leading();
    let request = leader.request(12);
    assert!(matches!(&request, Request::Update(Lease { version, .. }) if *version == "6".into()));
    assert_eq!(leader.answered(&request, LeaseResponse::Failed), Next::Continue);
    assert!(leader.elector.leads(leader.now), "a failed renewal ends no term");
    assert_eq!(leader.reads(lease("9", ME, TIMING.lease_duration)), Next::Continue);
    assert!(leader.elector.is_on_slow_path());
    let request = leader.request(12);
    assert!(matches!(&request, Request::Update(Lease { version, .. }) if *version == "9".into()), "{request:?}");
    assert_eq!(leader.answered(&request, LeaseResponse::Failed), Next::After(TIMING.retry_period), "not jittered");

    assert_eq!(leader.answered(&leader.request(14), LeaseResponse::Failed), Next::Continue);
    leader.reads(lease("11", "another", TIMING.lease_duration));
    assert!(!leader.elector.leads(leader.now), "another holds it");
    assert_eq!(leader.elector.writes_until(), None);
}

#[test]
fn a_lease_is_released_without_a_holder_for_a_second_and_with_its_transitions() {
    let leader = Participant::leading();
    let released = LeaseRecord {
        holder: String::new(),
        duration: seconds(1),
        acquired_at: wall(20),
        renewed_at: wall(20),
        transitions: 4,
    };
    assert_eq!(leader.elector.release(wall(20)), Some(Lease { record: released, version: "6".into(), object: () }));
    let mut candidate = Participant::new();
    candidate.reads(lease("5", "another", seconds(60)));
    assert_eq!(candidate.elector.release(wall(20)), None, "what another holds is not released");
}

#[test]
fn writes_end_before_leading_could_pass_to_another_and_after_the_renew_deadline() {
    let leader = Participant::leading();
    let renewed = leader.elector.renewed_at().unwrap();
    assert_eq!(leader.elector.leads_until(), Some(renewed + TIMING.renew_deadline));
    let writes_until = leader.elector.writes_until().unwrap();
    assert!(renewed + TIMING.renew_deadline < writes_until && writes_until < renewed + TIMING.lease_duration);
}

#[test]
fn a_lease_that_was_deleted_is_created_when_its_last_holder_writes_no_more() {
    let mut candidate = Participant::new();
    let begun = candidate.now;
    candidate.reads(lease("5", "another", TIMING.lease_duration));
    for (second, is_created) in [(10, false), (18, false), (24, false), (25, true)] {
        candidate.now = begun + seconds(second);
        let next = candidate.answered(&Request::Get, LeaseResponse::NotFound);
        assert_eq!(next == Next::Continue, is_created, "after {second} s: {next:?}");
        assert_eq!(candidate.elector.holder(), None);
    }
    assert!(matches!(candidate.request(0), Request::Create(_)));
    candidate.now = candidate.now + TIMING.retry_period;
    assert_eq!(candidate.request(0), Request::Get, "another may have created it since");
}

#[test]
fn a_deletion_that_was_not_read_for_the_renew_deadline_is_waited_for_again() {
    let mut candidate = Participant::new();
    let begun = candidate.now;
    candidate.reads(lease("5", "another", TIMING.lease_duration));
    for (second, is_created) in [(1, false), (20, false), (29, false), (34, false), (35, true)] {
        candidate.now = begun + seconds(second);
        let next = candidate.answered(&Request::Get, LeaseResponse::NotFound);
        assert_eq!(next == Next::Continue, is_created, "after {second} s: {next:?}");
    }
}

#[test]
fn a_process_that_held_the_lease_before_it_was_deleted_waits_too_unless_it_leads() {
    let mut leader = Participant::leading();
    assert_eq!(leader.answered(&leader.request(12), LeaseResponse::NotFound), Next::Continue);
    assert_eq!(leader.answered(&Request::Get, LeaseResponse::NotFound), Next::Continue);
    assert!(matches!(leader.request(12), Request::Create(_)), "nobody else can have taken it");

    let mut former = Participant::leading();
    former.now = former.now + seconds(60);
    former.elector.step_down();
    let next = former.answered(&Request::Get, LeaseResponse::NotFound);
    assert_ne!(next, Next::Continue, "another may have held it meanwhile");
}

#[test]
fn a_watch_that_is_behind_does_not_bring_a_deleted_lease_back() {
    let mut candidate = Participant::new();
    candidate.reads(lease("5", "another", TIMING.lease_duration));
    candidate.answered(&Request::Get, LeaseResponse::NotFound);
    assert!(!candidate.elector.observe(lease("4", "", seconds(1)), candidate.now));
    assert!(candidate.elector.observe(lease("7", "", seconds(1)), candidate.now), "it was created again, and is free");
    assert!(matches!(candidate.request(0), Request::Update(_)));
}

#[test]
fn the_response_to_a_write_counts_only_under_this_process_s_own_name() {
    let taken = || LeaseResponse::Lease(lease("9", "another", TIMING.lease_duration));
    let mut candidate = Participant::new();
    assert_eq!(candidate.answered(&Request::Get, LeaseResponse::NotFound), Next::Continue);
    let request = candidate.request(10);
    assert!(matches!(request, Request::Create(_)), "{request:?}");
    assert_ne!(candidate.answered(&request, taken()), Next::After(TIMING.retry_period));
    assert_eq!((candidate.elector.writes_until(), candidate.elector.holder()), (None, Some("another")));

    let mut leader = Participant::leading();
    let renewal = leader.request(12);
    assert!(matches!(renewal, Request::Update(_)), "{renewal:?}");
    leader.answered(&renewal, taken());
    assert_eq!((leader.elector.writes_until(), leader.elector.holder()), (None, Some("another")));
}

#[test]
fn writes_end_before_the_duration_in_the_record_which_an_admission_webhook_may_have_changed() {
    for (recorded, expected) in [(15, 14_250), (60, 14_250), (4, 3_800)] {
        let mut leader = Participant::leading();
        let sent = leader.now;
        let response = LeaseResponse::Lease(lease("7", ME, seconds(recorded)));
        leader.answered(&leader.request(12), response);
        let until = sent + Duration::from_millis(expected);
        assert_eq!(leader.elector.writes_until(), Some(until), "{recorded} s");
    }
}

#[test]
fn a_response_that_is_late_counts_as_lost() {
    let mut leader = Participant::leading();
    let (renewal, sent) = (leader.request(12), leader.now);
    leader.now = sent + TIMING.request_timeout() + Duration::from_millis(1);
    let response = LeaseResponse::Lease(lease("7", ME, TIMING.lease_duration));
    let next = leader.elector.answered(&renewal, sent, response, leader.now, &mut leader.rng);
    assert_eq!(next, Next::Continue, "it is read again");
    assert_eq!(leader.elector.last_lease().map(|lease| lease.version.clone()), Some("6".into()));
}

#[test]
fn a_creation_that_lands_after_another_has_led_is_waited_out() {
    let mut candidate = Participant::new();
    candidate.answered(&Request::Get, LeaseResponse::NotFound);
    let creation = candidate.request(10);
    assert!(matches!(creation, Request::Create(_)), "{creation:?}");
    candidate.answered(&creation, LeaseResponse::Failed);
    candidate.reads(lease("5", "another", TIMING.lease_duration));
    // The lease of the other process was deleted, and the creation has landed.
    let next = candidate.reads(lease("7", ME, TIMING.lease_duration));
    assert_ne!(next, Next::Continue, "the other process may still write");
    candidate.now = candidate.now + TIMING.lease_duration;
    assert_eq!(candidate.reads(lease("7", ME, TIMING.lease_duration)), Next::Continue);
}

#[test]
fn a_creation_whose_response_was_lost_is_renewed_at_once_if_nobody_else_was_seen() {
    let mut candidate = Participant::new();
    candidate.answered(&Request::Get, LeaseResponse::NotFound);
    candidate.answered(&candidate.request(10), LeaseResponse::Failed);
    assert_eq!(candidate.reads(lease("1", ME, TIMING.lease_duration)), Next::Continue);
}
