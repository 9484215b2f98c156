mod apply;
mod files;
mod plan;
