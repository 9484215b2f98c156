//! Connections and their credentials as they change, against TLS servers and proxies on this machine.

#![expect(clippy::unwrap_used, reason = "a test fails where its helper does")]

mod proxies;
mod rotation;
mod server;
mod sick_server;
mod socks;
