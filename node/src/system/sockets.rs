//! What is asked of sockets beyond what the standard library knows.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::sockopt;

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
