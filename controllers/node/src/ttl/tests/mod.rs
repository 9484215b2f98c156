mod apply;
mod event_mapping;
mod simulation;
mod step;
