//! The connection to the API server: kubeconfig, proxy rules, TLS and HTTP/2 connections.

mod authorization;
mod client_authority;
mod connector;
mod fenced_body;
mod fenced_socket;
mod http2_connection;
mod kubeconfig;
mod open_stream;
mod pools;
mod proxy;
mod read_ahead;
mod stack;
mod tls_files;

pub use authorization::ExecPluginMetrics;
pub use client_authority::ClientAuthority;
pub use kubeconfig::{LoadError, load_config};
pub(super) use pools::is_watch;
pub(super) use proxy::ProxyError;
pub use stack::{StackError, connect, connect_seeded, connect_with_metrics};
