mod apply;
mod event_mapping;
mod step;
