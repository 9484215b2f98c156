//! The identity of this process in a lease.

use std::io;

use rustix::rand::{GetRandomFlags, getrandom};

/// Returns the host name and a random UUID, joined by an underscore. No two processes ever have the same identity.
///
/// # Errors
/// If the operating system gives no random numbers.
///
/// # Upstream
/// `Run` in `cmd/kube-controller-manager/app`.
pub(crate) fn identity() -> io::Result<String> {
    let mut bytes = [0_u8; 16];
    let mut filled = 0;
    while filled < bytes.len() {
        filled += getrandom(&mut bytes[filled..], GetRandomFlags::empty())?;
    }
    let host = rustix::system::uname();
    Ok(format!("{}_{}", host.nodename().to_string_lossy(), uuid(bytes)))
}

/// Makes a random UUID (RFC 9562, version 4) from these bytes.
fn uuid(bytes: [u8; 16]) -> String {
    let number = u128::from_be_bytes(bytes);
    let version = number & !(0xf << 76) | 0x4 << 76;
    let variant = version & !(0x3 << 62) | 0x2 << 62;
    let hex = format!("{variant:032x}");
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_says_that_it_is_random() {
        assert_eq!(uuid([0; 16]), "00000000-0000-4000-8000-000000000000");
        assert_eq!(uuid([0xff; 16]), "ffffffff-ffff-4fff-bfff-ffffffffffff");
    }

    #[test]
    fn no_two_identities_are_equal() {
        assert_ne!(identity().unwrap(), identity().unwrap());
    }
}
