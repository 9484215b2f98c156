//! What was asked, and what was answered.

use std::collections::VecDeque;
use std::time::Duration;

use http::HeaderMap;

use crate::request::Target;

/// A request as it came over the service.
#[derive(Debug, Clone)]
pub struct Request {
    /// When it came, since the sandbox was made.
    pub at: Duration,
    /// HTTP method.
    pub method: String,
    /// Path of the URL.
    pub path: String,
    /// Query of the URL as sent, empty where there is none.
    pub query: String,
    /// Headers as sent.
    pub headers: HeaderMap,
    /// Body as sent.
    pub body: String,
    /// What it asked for, where that is a resource.
    pub target: Option<Target>,
    /// Code of the answer; absent while there is none, and where the connection was dropped.
    pub status: Option<u16>,
}

#[derive(Debug)]
pub(crate) struct Log {
    requests: VecDeque<Request>,
    forgotten: u64,
    /// How many requests are remembered; older ones are forgotten.
    limit: usize,
}

impl Log {
    pub(crate) fn new(limit: usize) -> Self {
        Self { requests: VecDeque::new(), forgotten: 0, limit }
    }

    /// Notes a request and returns its number.
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
