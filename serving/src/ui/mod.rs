//! The status page `/debug/ui`: live state of the manager for operators.
//!
//! ```text
//! ManagerHandle ──every 3 s──▶ Feed ──▶ History            the last ten minutes of each queue
//!                                │
//!                                └──▶ streams of events ──▶ page.js in a browser ──▶ /debug/… of the looked-up object
//! ```
//!
//! # Guarantees
//! - Samples are taken only while `--debug-ui` is on, and take a bounded memory.
//! - A bounded number of streams is open at a time, and all end when the port is closed.
//! - State is collected once for all streams, and not at all without one.
//! - The page loads nothing from elsewhere, and its policy forbids scripts other than its own and strings as markup.

mod feed;
mod history;
mod page;
mod snapshot;

pub(super) use feed::Feed;
pub(super) use page::Page;
