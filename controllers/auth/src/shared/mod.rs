//! Views and settings that several controllers of the area share.

mod account;
mod root_ca;
pub(crate) mod x509;

pub(crate) use account::{ServiceAccount, TOKEN_SECRET_FIELDS};
pub(crate) use root_ca::{ROOT_CA_FILE, SECTION, root_ca};
