//! The socket of the HTTPS port.

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, listen, socket_with, sockopt};

/// Number of connections that the operating system keeps until they are accepted.
const BACKLOG: i32 = 1024;

/// Binds `address`; `0.0.0.0` and `::` are every address of both IP families.
///
/// # Errors
/// If the operating system refuses the address.
///
/// # Upstream
/// Go's `net.Listen` sets `SO_REUSEADDR` on every listener, so that on Linux `--permit-address-sharing` adds nothing; a
/// wildcard address takes both IP families there too.
pub(super) fn listen_on(address: SocketAddr, shares_port: bool) -> io::Result<TcpListener> {
    if !address.ip().is_unspecified() {
        return open(address, shares_port);
    }
    let every = SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), address.port());
    match open(every, shares_port) {
        // The kernel has no IPv6.
        Err(error) if is_missing_family(&error) && address.is_ipv4() => open(address, shares_port),
        opened => opened,
    }
}

fn is_missing_family(error: &io::Error) -> bool {
    let codes = [rustix::io::Errno::AFNOSUPPORT, rustix::io::Errno::ADDRNOTAVAIL];
    codes.iter().any(|code| error.raw_os_error() == Some(code.raw_os_error()))
}

fn open(address: SocketAddr, shares_port: bool) -> io::Result<TcpListener> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket: OwnedFd = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)?;
    if address.is_ipv6() {
        sockopt::set_ipv6_v6only(&socket, !address.ip().is_unspecified())?;
    }
    sockopt::set_socket_reuseaddr(&socket, true)?;
    if shares_port {
        sockopt::set_socket_reuseport(&socket, true)?;
    }
    bind(&socket, &address)?;
    listen(&socket, BACKLOG)?;
    Ok(socket.into())
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpStream};

    use super::*;

    #[test]
    fn a_wildcard_address_takes_both_families() {
        let listener = listen_on((Ipv4Addr::UNSPECIFIED, 0).into(), false).expect("a port is free");
        let port = listener.local_addr().expect("it is bound").port();
        TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("it listens on IPv4");
        if TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_ok() {
            TcpStream::connect((Ipv6Addr::LOCALHOST, port)).expect("it listens on IPv6");
        }
    }

    #[test]
    fn a_port_is_shared_only_if_all_of_its_listeners_say_so() {
        let shared = listen_on((Ipv4Addr::LOCALHOST, 0).into(), true).expect("a port is free");
        let address = shared.local_addr().expect("it is bound");
        assert!(listen_on(address, true).is_ok());
        let refused = listen_on(address, false).expect_err("the port is taken");
        assert_eq!(refused.kind(), io::ErrorKind::AddrInUse);
    }
}
