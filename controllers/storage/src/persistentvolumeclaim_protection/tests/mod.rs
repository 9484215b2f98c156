mod apply;
mod condition;
mod event_mapping;
mod plan;
mod rows;
