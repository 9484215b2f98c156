mod decide;
mod pods;
