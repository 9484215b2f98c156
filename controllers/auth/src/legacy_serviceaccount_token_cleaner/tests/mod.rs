mod apply;
mod decide;
mod pods;
