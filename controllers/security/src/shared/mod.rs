//! What several controllers of the area read.

mod account;
mod root_ca;

pub(crate) use account::{ServiceAccount, TOKEN_SECRET_FIELDS};
pub(crate) use root_ca::{ROOT_CA_ROW, root_ca};
