//! Parts of objects with paths of their own: what writes through them keep, and those that are objects themselves.

mod binding;
mod eviction;
mod scale;
