//! Tests of the horizontal pod autoscaler.

mod apply;
mod behavior;
mod calculator;
mod evaluate;
mod fixtures;
mod plan;
mod requests;
mod responses;
mod selectors;
mod status;
mod wiring;
