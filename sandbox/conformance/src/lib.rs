//! The behaviour of the API as a table: requests, and their responses from kube-apiserver and from the sandbox.
//!
//! The rows are data, in `scenarios/*.yaml`, and were written from responses of kube-apiserver. One runner
//! plays them against both over a [`kube::Client`]: this crate's tests against a fresh `kcm_sandbox_apiserver::Sandbox`
//! for each row, the e2e suite against kube-apiserver with nothing but etcd beside it. If the sandbox deliberately
//! responds differently, the row states the difference, and the runner checks it; [`differences()`] lists them all.
//!
//! # The format
//!
//! A file is a list of rows; a row has a `name`, which is a claim, and `steps`, which are taken in order in a
//! namespace of the row's own. A step is one of three:
//!
//! | key | what it does |
//! | --- | --- |
//! | `send: METHOD PATH` | sends a request: `as` says what the body is (`json` (patch), `merge`, `strategic`, `apply`, or any content type; without it `application/json`), `headers` adds headers, `body` is an object, `text` a body as it stands |
//! | `watch: PATH` | opens a watch and keeps it under the name `id`; takes `headers` |
//! | `events: […]` | the next events of the watch `of` |
//!
//! `id` and `of` are left out if a row has one watch. A request with `eventually: true` is repeated until its response
//! is as expected. A body may start from an object of `fixtures.yaml`: `{ <use>: pod, … }` lays the rest over it
//! as a JSON merge patch.
//!
//! The expected response to a request:
//!
//! | key | what must hold |
//! | --- | --- |
//! | `code` | the status code is this |
//! | `answer` | the body is JSON and holds at least this |
//! | `plain` | the body is this text |
//! | `answered` | the headers have these values |
//! | `warnings` | the messages of the `Warning` headers, in order; without it there is none |
//!
//! An error in JSON must be a `Status` of that code, even if the row does not expect it.
//!
//! In an `answer` an object holds at least the fields that are given, a list has exactly the elements that are given,
//! and a text may be a matcher: `<any>`, `<absent>`, `<string>` (not empty), `<number>`, `<uid>`, `<time>`,
//! `<version>` (of a resource), `<like a*b>` (`*` is any text), `<not x>`; any other text stands for itself.
//! `{ <exact>: … }` allows no further fields within, `{ <has>: […] }` is a list that has elements like these,
//! `{ <set>: […] }` one of exactly these in any order.
//!
//! An event is `TYPE: object`: the object is matched as an `answer`, and a text alone is its name;
//! `END: null` is the end of the stream. Events are compared one by one, none may come between: a row that wants to
//! show that something is no event writes something that is, and expects that next.
//!
//! `{{name}}` stands for a value: `ns` is the row's namespace; `core`, `apps`, `batch`, `policy` and `autoscaling`
//! are the paths of that namespace in those groups; and `save: { name: /json/pointer }` takes more from a response.
//!
//! `differs: { why: …, … }` in a step says how the sandbox responds, instead of all that the step expects; `skip: true`
//! in it ends the row there. `pending: true` marks a row that the sandbox does not meet yet; such a row must fail.

mod compare;
mod differences;
mod rows;
mod run;
mod values;

pub use compare::Mismatch;
pub use differences::{Difference, differences};
pub use rows::{Scenario, all, collected, from_fixture, read_yaml};
pub use run::{Failure, Side, run};
/// A value of YAML with its position.
pub use serde_saphyr::Spanned as Positioned;
