//! The connection to the API server: kubeconfig, proxy rules, TLS and HTTP/2 connections.

mod fenced_body;
mod kubeconfig;
mod open_stream;
mod proxy;
mod read_ahead;
mod stack;

pub use kubeconfig::{LoadError, load_config};
pub(super) use stack::is_watch;
pub use stack::{StackError, connect};
