//! Parts of objects with paths of their own: what writes through them keep, and those that are objects themselves.

mod binding;
mod eviction;
pub(crate) mod keep;
mod scale;

pub(crate) use binding::precondition_failed;
