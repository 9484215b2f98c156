//! The parser and the checker beside cel-go's.

mod check;
mod mutations;
mod parse;
