//! The request log.

use std::collections::VecDeque;
use std::time::Duration;

use http::HeaderMap;

use crate::request::Target;

/// An entry of the request log.
#[derive(Debug, Clone)]
pub struct Request {
    /// Arrival time, since the start of the sandbox.
    pub at: Duration,
    /// HTTP method of the request.
    pub method: String,
    /// Path of the URL.
    pub path: String,
    /// Query of the URL as sent, or empty.
    pub query: String,
    /// Headers as the client sent them.
    pub headers: HeaderMap,
    /// Body as the client sent it.
    pub body: String,
    /// The target, if it is a resource request.
    pub target: Option<Target>,
    /// HTTP code of the response; absent until it is sent, and if the connection was dropped.
    pub status: Option<u16>,
}

#[derive(Debug)]
pub(crate) struct Log {
    requests: VecDeque<Request>,
    forgotten: u64,
    /// Maximum number of logged requests; older ones are dropped.
    limit: usize,
}

impl Log {
    pub(crate) fn new(limit: usize) -> Self {
        Self { requests: VecDeque::new(), forgotten: 0, limit }
    }

    /// Returns an empty log of the same size.
    pub(crate) fn emptied(&self) -> Self {
        Self::new(self.limit)
    }

    /// Logs a request and returns its number.
    pub(crate) fn begin(&mut self, request: impl FnOnce() -> Request) -> u64 {
        if self.limit == 0 {
            return 0;
        }
        self.requests.push_back(request());
        if self.requests.len() > self.limit {
            self.requests.pop_front();
            self.forgotten += 1;
        }
        self.forgotten + self.requests.len() as u64 - 1
    }

    pub(crate) fn answer(&mut self, number: u64, status: u16) {
        let at = number.checked_sub(self.forgotten).and_then(|at| usize::try_from(at).ok());
        if let Some(request) = at.and_then(|at| self.requests.get_mut(at)) {
            request.status = Some(status);
        }
    }

    pub(crate) fn all(&self) -> Vec<Request> {
        self.requests.iter().cloned().collect()
    }

    pub(crate) fn clear(&mut self) {
        self.forgotten += self.requests.len() as u64;
        self.requests.clear();
    }
}
