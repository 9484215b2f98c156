//! The token of one service account: when it is requested, and the requests that wait for it.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use kcm_framework::api::ObjectKey;
use kcm_framework::client::{ApiClient, CredentialsError};
use kcm_framework::clock::Clock;
use kcm_framework::error_chain;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::token::Token;
use super::token_requests::{TokenError, TokenRequests};

/// The delays before a token is requested again; a request that needs it fails after the last.
const PAUSES: [Duration; 3] = [Duration::from_millis(500), Duration::from_secs(1), Duration::from_secs(2)];

/// The longest time for which requests fail without another request for a token.
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// The delay before the renewal of a valid token that failed once is tried again.
const RENEWAL_PAUSE: Duration = Duration::from_secs(10);

/// Time for which a request without a valid token waits for one.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// The token of one service account.
pub(super) struct TokenSource {
    requests: Arc<TokenRequests>,
    state: Arc<Mutex<State>>,
    /// The task that requests a token. It is not part of a request that needs the token, which may be given up, and
    /// ends with the source.
    task: Mutex<JoinSet<()>>,
}

/// State of the token, and of the requests for it.
#[derive(Default)]
struct State {
    token: Option<Token>,
    /// Number of failed renewals in a row.
    failed_renewals: u32,
    /// `Some` while there is no token because the last round of requests failed.
    refusal: Option<Refusal>,
    /// The last round of requests for a token.
    round: Option<Round>,
}

/// Rounds of requests for a token that failed, one after another.
#[derive(Debug, Clone)]
struct Refusal {
    rounds: u32,
    /// Before when no other round begins.
    until: Instant,
    error: Arc<TokenError>,
}

/// A round of requests for a token, of which an account has one at a time.
struct Round {
    begun: Instant,
    /// Closed when the round has ended, also by a panic.
    ended: watch::Receiver<()>,
}

/// The next step of a request of the account.
enum Next {
    Use(Token),
    /// Uses the token, which another round replaces.
    Renew(Token),
    Fail(Arc<TokenError>),
    /// Waits for the end of a round.
    Wait(watch::Receiver<()>),
    /// Begins a round, and waits for its end.
    Begin,
}

impl TokenSource {
    pub(super) fn new(account: ObjectKey, api: ApiClient, clock: Arc<dyn Clock>) -> Self {
        let requests = Arc::new(TokenRequests::new(account, api, clock));
        Self { requests, state: Arc::default(), task: Mutex::default() }
    }

    pub(super) fn account(&self) -> &ObjectKey {
        self.requests.account()
    }

    /// Returns the token. A request waits for it only if there is no valid token.
    pub(super) async fn token(&self) -> Result<Token, CredentialsError> {
        let mut ended = {
            let mut state = self.state.lock();
            match state.next(Instant::now()) {
                Next::Use(token) => return Ok(token),
                Next::Renew(token) => {
                    self.begin(&mut state);
                    return Ok(token);
                }
                Next::Fail(error) => return Err(CredentialsError::new(error)),
                Next::Wait(ended) => ended,
                Next::Begin => self.begin(&mut state),
            }
        };
        // No value is ever sent: the wait ends when the round does.
        let has_ended = timeout(LONGEST_WAIT, ended.changed()).await.is_ok();
        let (state, now) = (self.state.lock(), Instant::now());
        if let Some(token) = state.valid_token(now) {
            return Ok(token.clone());
        }
        let error = match &state.refusal {
            Some(refusal) if has_ended => Arc::clone(&refusal.error),
            Some(_) | None => Arc::new(state.silence(now).unwrap_or(TokenError::Ended)),
        };
        Err(CredentialsError::new(error))
    }

    /// Begins a round of requests for a token in a task of its own.
    fn begin(&self, state: &mut State) -> watch::Receiver<()> {
        let (sender, ended) = watch::channel(());
        let (requests, shared) = (Arc::clone(&self.requests), Arc::clone(&self.state));
        // After a round that failed, one request shows whether the next would fail too.
        let pauses = if state.refusal.is_none() { PAUSES.as_slice() } else { &[] };
        let mut task = self.task.lock();
        while task.try_join_next().is_some() {}
        task.spawn(async move {
            run_round(&requests, &shared, pauses).await;
            drop(sender);
        });
        state.round = Some(Round { begun: Instant::now(), ended: ended.clone() });
        ended
    }

    /// The header of the valid token, if there is one.
    pub(super) fn held(&self) -> Option<HeaderValue> {
        Some(self.state.lock().valid_token(Instant::now())?.header.clone())
    }

    /// Returns the reason why the account has no token.
    pub(super) fn problem(&self) -> Option<String> {
        let state = self.state.lock();
        let reason = match &state.refusal {
            Some(refusal) => error_chain(&*refusal.error),
            None => error_chain(&state.silence(Instant::now())?),
        };
        Some(format!("the service account {} has no token: {reason}", self.account()))
    }

    /// Drops a token that the API server has refused, unless there is a newer one.
    pub(super) fn refused(&self, token: &Token) {
        if self.state.lock().token.take_if(|held| held.header == token.header).is_some() {
            // The request is sent again, so that its caller may never see the refusal.
            tracing::warn!(account = %self.account(), "Server rejected a service account token; requesting another");
        }
    }
}

/// Requests a token until there is one, a renewal has failed, or a request has failed after the last of `pauses`.
async fn run_round(requests: &TokenRequests, state: &Mutex<State>, pauses: &[Duration]) {
    let mut pauses = pauses.iter();
    loop {
        let error = match requests.send().await {
            Ok(token) => {
                tracing::debug!(account = %requests.account(), "Requested a token");
                state.lock().received(token);
                return;
            }
            Err(error) => error,
        };
        let retry_after = state.lock().renewal_failed(Instant::now());
        let is_renewal = retry_after.is_some();
        let retry_after = retry_after.or_else(|| pauses.next().copied());
        tracing::warn!(
            account = %requests.account(), error = &error as &(dyn std::error::Error + 'static), ?retry_after,
            "Cannot get a service account token"
        );
        match retry_after {
            // The next request of the account after this time tries again.
            Some(_) if is_renewal => return,
            Some(pause) => sleep(pause).await,
            None => return state.lock().refused(error, Instant::now()),
        }
    }
}

impl State {
    fn valid_token(&self, now: Instant) -> Option<&Token> {
        self.token.as_ref().filter(|token| now < token.expires_at)
    }

    /// The round that has not ended.
    fn current_round(&self) -> Option<&Round> {
        // An error says that the round has dropped its end.
        self.round.as_ref().filter(|round| round.ended.has_changed().is_ok())
    }

    /// Decides what a request does about its token.
    fn next(&self, now: Instant) -> Next {
        let round = self.current_round();
        match (self.valid_token(now), round, &self.refusal) {
            (Some(token), None, _) if now >= token.renew_at => Next::Renew(token.clone()),
            (Some(token), _, _) => Next::Use(token.clone()),
            (None, Some(round), _) => Next::Wait(round.ended.clone()),
            (None, None, Some(refusal)) if now < refusal.until => Next::Fail(Arc::clone(&refusal.error)),
            (None, None, _) => Next::Begin,
        }
    }

    fn received(&mut self, token: Token) {
        (self.token, self.refusal, self.failed_renewals) = (Some(token), None, 0);
    }

    /// Postpones the next renewal of a valid token; returns for how long.
    fn renewal_failed(&mut self, now: Instant) -> Option<Duration> {
        let token = self.token.as_mut().filter(|token| now < token.expires_at)?;
        let pause = renewal_pause_after(self.failed_renewals);
        self.failed_renewals = self.failed_renewals.saturating_add(1);
        token.renew_at = now + pause;
        Some(pause)
    }

    /// A round has failed, and there is no valid token.
    fn refused(&mut self, error: TokenError, now: Instant) {
        let rounds = self.refusal.as_ref().map_or(1, |refusal| refusal.rounds.saturating_add(1));
        self.refusal = Some(Refusal { rounds, until: now + pause_after(rounds), error: Arc::new(error) });
    }

    /// The error of an account without a valid token whose request for a token has had no response for long.
    fn silence(&self, now: Instant) -> Option<TokenError> {
        let waited = now - self.current_round()?.begun;
        (waited >= LONGEST_WAIT && self.valid_token(now).is_none()).then_some(TokenError::Silent(waited))
    }
}

/// Returns the time for which requests fail at once after a number of failed rounds of token requests. The first round
/// may have been too early. After that, the time doubles from a second to a minute.
fn pause_after(rounds: u32) -> Duration {
    match rounds.checked_sub(2) {
        None => Duration::ZERO,
        Some(doubled) => Duration::from_secs(1 << doubled.min(6)).min(LONGEST_PAUSE),
    }
}

/// Returns the time before the next renewal of a valid token, after a number of renewals that had failed before. It
/// doubles up to a minute.
fn renewal_pause_after(failures: u32) -> Duration {
    (RENEWAL_PAUSE * (1 << failures.min(3))).min(LONGEST_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_between_rounds_double_up_to_a_minute() {
        for (rounds, seconds) in [(0, 0), (1, 0), (2, 1), (3, 2), (4, 4), (7, 32), (8, 60), (u32::MAX, 60)] {
            assert_eq!(pause_after(rounds), Duration::from_secs(seconds), "{rounds}");
        }
    }

    #[test]
    fn pauses_between_renewals_double_up_to_a_minute() {
        for (failures, seconds) in [(0, 10), (1, 20), (2, 40), (3, 60), (u32::MAX, 60)] {
            assert_eq!(renewal_pause_after(failures), Duration::from_secs(seconds), "{failures}");
        }
    }
}
