//! The meaning of a response for its request: one table, and the outcome of several attempts.

use std::time::Duration;

use kcm_api::Status;
use kcm_informers::is_storage_failure;

use super::error::Cause;
use super::error_class::{is_failed_webhook, is_final};

/// A kind of request, as far as the meaning of its response depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestKind {
    Read,
    /// The creation of an object under a name that the request carries: of two, the second is refused.
    Create,
    /// The creation of an object whose name the API server generates.
    CreateUnnamed,
    /// A write that the API server refuses once it has landed: an update or a patch with a resource version, and a
    /// deletion with a precondition.
    Guarded,
    /// A write that has the same effect when it lands twice, such as a merge patch or an apply, also with a uid: a uid
    /// refuses neither the second landing nor a first that comes late.
    Idempotent,
    /// A write that may do more when it lands twice: a JSON patch, a deletion without preconditions, a binding.
    Cumulative,
    /// An eviction, which carries the uid of the pod.
    Eviction,
}

/// The result of one attempt of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResponseKind {
    Success,
    /// A success whose body cannot be decoded.
    Undecodable,
    /// The request was not sent.
    NotSent,
    /// The connection broke before the response was complete.
    Broken,
    /// There was no response before the timeout, or before the fence closed.
    TimedOut,
    /// 429, with its `Retry-After`.
    TooManyRequests(Option<Duration>),
    /// An admission webhook could not be called.
    FailedWebhook,
    /// 5xx because storage did not respond to the API server, without `Retry-After`.
    StorageFailed,
    /// 500 without a reason and without `Retry-After`: the API server has ended the request, for example because an
    /// admission plugin failed. Errors of storage have a reason, or are [`StorageFailed`](Self::StorageFailed).
    Aborted,
    /// 5xx except 501, with its `Retry-After`.
    ServerError(Option<Duration>),
    /// A refusal that holds for every attempt of the request: a conflict, a missing or an invalid object.
    Refused,
    /// A refusal that may hold for this attempt alone: a missing permission, a quota, a closed fence.
    Denied,
}

impl ResponseKind {
    pub(crate) fn of_status(status: &Status, retry_after: Option<Duration>) -> Self {
        match status.code {
            429 => Self::TooManyRequests(retry_after),
            501 => Self::Denied,
            _ if is_failed_webhook(status) => Self::FailedWebhook,
            500.. if retry_after.is_none() && is_storage_failure(status) => Self::StorageFailed,
            500 if retry_after.is_none() && status.reason.is_empty() => Self::Aborted,
            500.. => Self::ServerError(retry_after),
            _ if is_final(status) => Self::Refused,
            _ => Self::Denied,
        }
    }

    /// The answer to an attempt that failed with `cause`.
    pub(crate) fn of_failure(cause: &Cause, retry_after: Option<Duration>) -> Self {
        match cause {
            Cause::Status(status) => Self::of_status(status, retry_after),
            Cause::Transport(_) => Self::Broken,
            Cause::NotSent(_) | Cause::Encode(_) => Self::NotSent,
            Cause::Fenced(_) | Cause::Undeclared { .. } => Self::Denied,
            Cause::Decode(_) | Cause::TooLarge { .. } => Self::Undecodable,
            Cause::Timeout(_) | Cause::GivenUp(_) => Self::TimedOut,
        }
    }
}

/// The effect of a request, as far as the result of an attempt shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// The request took effect.
    Landed,
    /// This attempt took no effect and never will.
    None,
    /// No attempt can take effect any more; an earlier one may have.
    Settled,
    /// The request took effect, but its response cannot be read.
    Unread,
    /// This attempt may have taken effect, or still does until its deadline.
    Open,
    /// This attempt may have taken effect, and no longer can.
    Ended,
    /// As [`Open`](Self::Open), but nothing happens twice: the API server refuses the same write once it has landed.
    Harmless,
}

/// The time at which a request is sent again, if it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// It is not sent again: the caller decides.
    Never,
    /// After the next of the pauses for broken connections.
    Reconnect,
    /// After the time that the API server asked for.
    After(Duration),
}

/// The meaning of the result of one attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Meaning {
    pub(crate) effect: Effect,
    pub(crate) repeat: Repeat,
}

/// Returns the meaning of `answer` for a request of that kind. `in_doubt` is `true` if an earlier attempt may have
/// taken effect.
///
/// # Upstream
/// client-go repeats every request whose response is 429 or 5xx with a `Retry-After` in seconds. Here the caller gets
/// the 429 of an eviction: a disruption budget does not allow the eviction. client-go does not repeat after a broken
/// connection.
pub(crate) const fn meaning(kind: RequestKind, answer: ResponseKind, in_doubt: bool) -> Meaning {
    use RequestKind::{Create, CreateUnnamed, Cumulative, Eviction, Guarded, Idempotent, Read};

    let reconnect = if repeats_safely(kind) { Repeat::Reconnect } else { Repeat::Never };
    let open = match kind {
        Read => Effect::None,
        Create | CreateUnnamed | Guarded | Idempotent | Cumulative | Eviction => Effect::Open,
    };
    let (effect, repeat) = match answer {
        ResponseKind::Success => (Effect::Landed, Repeat::Never),
        ResponseKind::Undecodable => (if matches!(kind, Read) { Effect::None } else { Effect::Unread }, Repeat::Never),
        // A request that was never sent is no concern of a repetition, unless it is one itself.
        ResponseKind::NotSent => (Effect::None, if in_doubt { reconnect } else { Repeat::Never }),
        ResponseKind::Broken => (open, reconnect),
        ResponseKind::TimedOut => (open, Repeat::Never),
        ResponseKind::TooManyRequests(retry_after) => {
            (Effect::None, if matches!(kind, Eviction) { Repeat::Never } else { asked(retry_after) })
        }
        ResponseKind::FailedWebhook | ResponseKind::Denied => (Effect::None, Repeat::Never),
        ResponseKind::Aborted => {
            let ended = if matches!(kind, Read) { Effect::None } else { Effect::Ended };
            (harmless_or(kind, ended), Repeat::Never)
        }
        ResponseKind::StorageFailed => (harmless_or(kind, open), reconnect),
        ResponseKind::ServerError(retry_after) => (harmless_or(kind, open), asked(retry_after)),
        ResponseKind::Refused => (Effect::Settled, Repeat::Never),
    };
    Meaning { effect, repeat }
}

/// Returns `true` if a request of that kind, sent again, has no effect beyond the first.
pub(crate) const fn repeats_safely(kind: RequestKind) -> bool {
    use RequestKind::{Create, CreateUnnamed, Cumulative, Eviction, Guarded, Idempotent, Read};
    match kind {
        Create | Guarded | Idempotent | Eviction => true,
        Read | CreateUnnamed | Cumulative => false,
    }
}

const fn harmless_or(kind: RequestKind, open: Effect) -> Effect {
    if matches!(kind, RequestKind::Guarded | RequestKind::Eviction) { Effect::Harmless } else { open }
}

const fn asked(retry_after: Option<Duration>) -> Repeat {
    match retry_after {
        Some(after) => Repeat::After(after),
        None => Repeat::Never,
    }
}

/// Returns the `Retry-After` of a response, if it is a number of seconds.
pub(crate) fn retry_after(header: Option<&str>) -> Option<Duration> {
    header.and_then(|seconds| seconds.trim().parse().ok()).map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::super::status::read_status;
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// The whole table: for each answer the meaning for each kind, in the order of `KINDS`.
    #[test]
    fn every_answer_has_one_meaning_for_every_kind_of_request() {
        use Effect::{Ended, Harmless, Landed, None as NoEffect, Open, Settled, Unread};
        use Repeat::{After, Never, Reconnect};
        use RequestKind::{Create, CreateUnnamed, Cumulative, Eviction, Guarded, Idempotent, Read};

        const KINDS: [RequestKind; 7] = [Read, Create, CreateUnnamed, Guarded, Idempotent, Cumulative, Eviction];
        let after = After(SECOND);
        let all = |effect, repeat| [(effect, repeat); 7];
        #[rustfmt::skip]
        let table: [(ResponseKind, [(Effect, Repeat); 7]); 14] = [
            (ResponseKind::Success, all(Landed, Never)),
            (ResponseKind::Undecodable, [
                (NoEffect, Never), (Unread, Never), (Unread, Never), (Unread, Never), (Unread, Never), (Unread, Never),
                (Unread, Never),
            ]),
            (ResponseKind::NotSent, all(NoEffect, Never)),
            (ResponseKind::Broken, [
                (NoEffect, Never), (Open, Reconnect), (Open, Never), (Open, Reconnect), (Open, Reconnect), (Open, Never),
                (Open, Reconnect),
            ]),
            (ResponseKind::TimedOut, [
                (NoEffect, Never), (Open, Never), (Open, Never), (Open, Never), (Open, Never), (Open, Never),
                (Open, Never),
            ]),
            (ResponseKind::TooManyRequests(None), all(NoEffect, Never)),
            (ResponseKind::TooManyRequests(Some(SECOND)), [
                (NoEffect, after), (NoEffect, after), (NoEffect, after), (NoEffect, after), (NoEffect, after),
                (NoEffect, after), (NoEffect, Never),
            ]),
            (ResponseKind::FailedWebhook, all(NoEffect, Never)),
            (ResponseKind::StorageFailed, [
                (NoEffect, Never), (Open, Reconnect), (Open, Never), (Harmless, Reconnect), (Open, Reconnect),
                (Open, Never), (Harmless, Reconnect),
            ]),
            (ResponseKind::Aborted, [
                (NoEffect, Never), (Ended, Never), (Ended, Never), (Harmless, Never), (Ended, Never), (Ended, Never),
                (Harmless, Never),
            ]),
            (ResponseKind::ServerError(None), [
                (NoEffect, Never), (Open, Never), (Open, Never), (Harmless, Never), (Open, Never), (Open, Never),
                (Harmless, Never),
            ]),
            (ResponseKind::ServerError(Some(SECOND)), [
                (NoEffect, after), (Open, after), (Open, after), (Harmless, after), (Open, after), (Open, after),
                (Harmless, after),
            ]),
            (ResponseKind::Refused, all(Settled, Never)),
            (ResponseKind::Denied, all(NoEffect, Never)),
        ];
        for (answer, meanings) in table {
            for (kind, (effect, repeat)) in KINDS.into_iter().zip(meanings) {
                assert_eq!(meaning(kind, answer, false), Meaning { effect, repeat }, "{answer:?} to {kind:?}");
                let repeat = match (answer, kind) {
                    // The server went away between two attempts.
                    (ResponseKind::NotSent, Create | Guarded | Idempotent | Eviction) => Reconnect,
                    _ => repeat,
                };
                assert_eq!(
                    meaning(kind, answer, true),
                    Meaning { effect, repeat },
                    "{answer:?} to a repeated {kind:?}"
                );
            }
        }
    }

    #[test]
    fn an_error_without_a_time_may_be_of_storage_of_admission_or_of_a_proxy() {
        let read = |body: &[u8]| read_status(StatusCode::INTERNAL_SERVER_ERROR, None, body);
        let status = |code, message: &str| Status { code, message: message.to_owned(), ..Status::default() };
        for (status, answer) in [
            (status(500, "etcdserver: request timed out"), ResponseKind::StorageFailed),
            (status(503, "service unavailable"), ResponseKind::ServerError(None)),
            (status(500, "the plugin failed"), ResponseKind::Aborted),
            (read(br#"{"kind":"Status","message":"the plugin failed"}"#), ResponseKind::Aborted),
            (read(br#"{"kind":"Status","reason":"InternalError"}"#), ResponseKind::ServerError(None)),
            (read(b"upstream failed"), ResponseKind::ServerError(None)),
        ] {
            assert_eq!(ResponseKind::of_status(&status, None), answer, "{status:?}");
        }
    }

    #[test]
    fn statuses_are_answers() {
        let status = |code, reason: &str, message: &str| Status {
            code,
            reason: reason.to_owned(),
            message: message.to_owned(),
            ..Status::default()
        };
        let webhook = "Internal error occurred: failed calling webhook \"a\": x";
        for (status, answer) in [
            (status(429, "TooManyRequests", ""), ResponseKind::TooManyRequests(Some(SECOND))),
            (status(500, "InternalError", webhook), ResponseKind::FailedWebhook),
            (status(500, "InternalError", "etcdserver: no leader"), ResponseKind::ServerError(Some(SECOND))),
            (status(503, "ServiceUnavailable", ""), ResponseKind::ServerError(Some(SECOND))),
            (status(504, "Timeout", ""), ResponseKind::ServerError(Some(SECOND))),
            (status(501, "", ""), ResponseKind::Denied),
            (status(400, "BadRequest", ""), ResponseKind::Refused),
            (status(404, "NotFound", ""), ResponseKind::Refused),
            (status(409, "Conflict", ""), ResponseKind::Refused),
            (status(409, "AlreadyExists", ""), ResponseKind::Refused),
            (status(422, "Invalid", ""), ResponseKind::Refused),
            (status(401, "Unauthorized", ""), ResponseKind::Denied),
            (status(403, "Forbidden", "x is forbidden: exceeded quota"), ResponseKind::Denied),
            (status(410, "Expired", ""), ResponseKind::Denied),
        ] {
            assert_eq!(ResponseKind::of_status(&status, Some(SECOND)), answer, "{status:?}");
        }
    }

    #[test]
    fn only_a_number_of_seconds_is_a_time_to_wait() {
        assert_eq!(retry_after(Some("2")), Some(2 * SECOND));
        assert_eq!(retry_after(Some("0")), Some(Duration::ZERO));
        for header in [None, Some(""), Some("soon"), Some("1.5"), Some("-1"), Some("Wed, 21 Oct 2026 07:28:00 GMT")] {
            assert_eq!(retry_after(header), None, "{header:?}");
        }
    }
}
