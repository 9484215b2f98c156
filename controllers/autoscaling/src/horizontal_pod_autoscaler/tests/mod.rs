//! Tests of the horizontal pod autoscaler.

mod apply;
mod behavior;
mod calculator;
mod evaluate;
mod event_mapping;
mod failure_message;
mod fixtures;
mod gather;
mod limit;
mod plan;
mod requests;
mod responses;
mod selectors;
mod spec;
mod status;
