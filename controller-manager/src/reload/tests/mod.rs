//! Reloads of a manager with the built-in controllers.

mod enabled;
mod soak;
