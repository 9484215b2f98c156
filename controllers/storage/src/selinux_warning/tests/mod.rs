mod apply;
mod event_mapping;
mod events;
mod label;
mod uses;
mod volume;
