//! What is asked of sockets beyond what the standard library knows.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::sockopt;
use tokio::net::{TcpSocket, TcpStream};

/// One that is to listen at this address, or to connect to it.
///
/// On loopback its connections keep to Reno. A way of the system's that paces what is sent, as BBR
/// does, has messages of 1 MiB and more take an eighth to a fifth longer there, and nothing is lost that it could
/// save. It has to be told before: a connection that has begun to pace goes on with it.
///
/// # Errors
///
/// The process may open no more.
pub fn tcp_socket(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    if address.ip().to_canonical().is_loopback()
        && let Err(error) = sockopt::set_tcp_congestion(&socket, "reno")
    {
        tracing::debug!(%error, "the system's congestion control stays");
    }
    Ok(socket)
}

/// Connects to an address, or to a host and port by name.
///
/// # Errors
///
/// Nobody is there, or nobody has that name.
pub async fn connect(address: &str) -> io::Result<TcpStream> {
    match address.parse() {
        Ok(address) => tcp_socket(address)?.connect(address).await,
        Err(_) => TcpStream::connect(address).await,
    }
}

/// From now on the system asks the other end for a sign of life every second that nothing comes
/// from there, and fails the connection after so many questions without an answer.
///
/// # Errors
///
/// It is no TCP socket.
pub fn keep_alive(socket: impl AsFd, questions: u32) -> io::Result<()> {
    let socket = socket.as_fd();
    let each = Duration::from_secs(1);
    sockopt::set_tcp_keepidle(socket, each)?;
    sockopt::set_tcp_keepintvl(socket, each)?;
    sockopt::set_tcp_keepcnt(socket, questions)?;
    Ok(sockopt::set_socket_keepalive(socket, true)?)
}

/// Bytes that have come and were not read.
///
/// # Errors
///
/// It is no socket.
pub fn unread_bytes(socket: impl AsFd) -> io::Result<u64> {
    Ok(rustix::io::ioctl_fionread(socket)?)
}

/// How many bytes a socket holds that were written and not acknowledged; a connection has it from
/// its listener.
///
/// # Errors
///
/// It is no socket.
pub fn set_send_buffer(socket: impl AsFd, bytes: usize) -> io::Result<()> {
    Ok(sockopt::set_socket_send_buffer_size(socket, bytes)?)
}

/// Whether an error says that the other host, or the way there, is gone.
pub fn is_unreachable(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error().map(Errno::from_raw_os_error),
        Some(Errno::TIMEDOUT | Errno::HOSTUNREACH | Errno::NETUNREACH)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn neither_end_of_a_connection_on_loopback_paces() {
        let socket = tcp_socket(([127, 0, 0, 1], 0).into()).unwrap();
        socket.bind(([127, 0, 0, 1], 0).into()).unwrap();
        let listener = socket.listen(1).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (caller, called) = tokio::join!(connect(&address), listener.accept());
        for end in [caller.unwrap(), called.unwrap().0] {
            assert_eq!(sockopt::tcp_congestion(&end).unwrap(), "reno");
        }
    }
}
