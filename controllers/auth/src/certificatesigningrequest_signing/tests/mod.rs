mod apply;
mod files;
mod hostile;
mod plan;
