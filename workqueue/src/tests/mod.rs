//! Properties of the queue's state, which is compared with a naive model.

mod model;
mod properties;
