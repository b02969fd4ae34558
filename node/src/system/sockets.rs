//! Socket options beyond the standard library.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::sockopt;
use tokio::net::{TcpSocket, TcpStream};

/// Creates a socket that is to listen at this address, or to connect to it.
///
/// On loopback its connections keep to Reno. A congestion control that paces, as BBR does, makes
/// messages of 1 MiB and more take an eighth to a fifth longer there, and there are no losses that it
/// could avoid. The option has to be set first: a connection that has begun to pace continues to.
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
pub async fn connect(address: &str) -> io::Result<TcpStream> {
    match address.parse() {
        Ok(address) => tcp_socket(address)?.connect(address).await,
        Err(_) => TcpStream::connect(address).await,
    }
}

/// Enables TCP keep-alive: the system probes the other end every second without a received byte, and
/// fails the connection after as many unanswered probes as `limit` has seconds, at least two: one alone
/// can be late on a busy machine.
pub fn keep_alive(socket: impl AsFd, limit: Duration) -> io::Result<()> {
    let questions = limit.as_secs_f64().ceil().clamp(2.0, 127.0) as u32;
    let socket = socket.as_fd();
    let each = Duration::from_secs(1);
    sockopt::set_tcp_keepidle(socket, each)?;
    sockopt::set_tcp_keepintvl(socket, each)?;
    sockopt::set_tcp_keepcnt(socket, questions)?;
    Ok(sockopt::set_socket_keepalive(socket, true)?)
}

/// Fails the connection when the other host, or the way there, has been gone for `limit`. A stopped
/// process does not fail it, since its host still answers.
pub fn fail_with_host(socket: impl AsFd, limit: Duration) -> io::Result<()> {
    keep_alive(&socket, limit)?;
    let limit = u32::try_from(limit.as_millis()).unwrap_or(u32::MAX);
    // Unacknowledged bytes suppress the keep-alive probes.
    Ok(sockopt::set_tcp_user_timeout(socket.as_fd(), limit)?)
}

/// Returns the number of received bytes that were not read.
pub fn unread_bytes(socket: impl AsFd) -> io::Result<u64> {
    Ok(rustix::io::ioctl_fionread(socket)?)
}

/// Sets the number of written and unacknowledged bytes that a socket buffers; an accepted connection
/// inherits it from its listener.
pub fn set_send_buffer(socket: impl AsFd, bytes: usize) -> io::Result<()> {
    Ok(sockopt::set_socket_send_buffer_size(socket, bytes)?)
}

/// Returns whether an error means that the process at the other end has closed the connection.
pub fn is_closed(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionReset | UnexpectedEof)
}

/// Returns whether an error means that the other host, or the way there, is gone.
pub fn is_unreachable(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    matches!(
        errno,
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
