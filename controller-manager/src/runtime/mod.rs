//! The life of the process: its thread, the signals that stop it, and the run of the manager.

mod client_certificate;
pub(crate) mod https_port;
pub(crate) mod main_thread;
mod moderation;
pub(crate) mod process_metrics;
mod profiler;
pub(crate) mod run;
mod signals;
