//! Subresources: the fields that their writes preserve, and those with their own kinds.

mod binding;
mod eviction;
mod scale;
