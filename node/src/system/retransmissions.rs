//! The number of packets that TCP has sent again on a PE's connections, as the kernel counts them for
//! each (`tcpi_total_retrans` of `struct tcp_info`).
//!
//! The query uses netlink, as `ss -ti` does (sock_diag(7)): it is a sequence of bytes, which needs no
//! `unsafe` code and no permission.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, sendto,
    socket_with,
};

/// Both ends of a connection: this one's address, and the other's.
pub type Ends = (SocketAddr, SocketAddr);

/// The counts so far.
#[derive(Debug)]
pub struct Retransmissions {
    /// `None` if the kernel cannot be queried: then none are counted.
    kernel: Option<OwnedFd>,
    counted: Vec<(Ends, u32)>,
}

impl Retransmissions {
    /// Counts the retransmissions of these connections from now on.
    pub fn of(connections: impl IntoIterator<Item = Ends>) -> Retransmissions {
        let kernel = socket_with(
            AddressFamily::NETLINK,
            SocketType::DGRAM,
            SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
            Some(netlink::SOCK_DIAG),
        );
        let kernel = kernel.inspect_err(|error| {
            tracing::debug!(%error, "retransmissions cannot be counted");
        });
        let mut all = Retransmissions {
            kernel: kernel.ok(),
            counted: connections.into_iter().map(|ends| (ends, 0)).collect(),
        };
        all.take();
        all
    }

    /// Returns the number of retransmissions since the last call.
    pub fn take(&mut self) -> u64 {
        let Some(kernel) = &self.kernel else {
            return 0;
        };
        let mut new = 0;
        for (number, (ends, counted)) in (0..).zip(&mut self.counted) {
            // A closed connection has no count any more.
            if let Some(now) = total(kernel, number, *ends) {
                new += u64::from(now.wrapping_sub(*counted));
                *counted = now;
            }
        }
        new
    }
}

/// `SOCK_DIAG_BY_FAMILY`: the type of the query and of the answer.
const BY_FAMILY: u16 = 20;
/// `INET_DIAG_INFO`: the attribute with the connection's `struct tcp_info`.
const INFO: u16 = 2;
/// Offset of the count in `struct tcp_info`, since Linux 2.6.
const TOTAL_RETRANS: usize = 100;
/// Length of `struct nlmsghdr`, the header of each message.
const HEADER_BYTES: usize = 16;
/// Length of `struct inet_diag_msg`, which precedes an answer's attributes.
const CONNECTION_BYTES: usize = 72;

/// Returns the kernel's count for a connection; `None` if the connection does not exist.
fn total(kernel: &OwnedFd, number: u32, ends: Ends) -> Option<u32> {
    let to_kernel = netlink::SocketAddrNetlink::new(0, 0);
    let (question, flags) = (question(number, ends), SendFlags::empty());
    sendto(kernel, &question, flags, &to_kernel).ok()?;
    let mut answer = [0; 4096];
    loop {
        // The kernel answers before the send returns.
        let (bytes, _) = recv(kernel, &mut answer, RecvFlags::DONTWAIT).ok()?;
        let answer = &answer[..bytes];
        if u32_at(answer, 8)? == number {
            return retransmitted(answer);
        }
    }
}

/// Returns a query for one connection: `struct nlmsghdr` and `struct inet_diag_req_v2`.
fn question(number: u32, (local, peer): Ends) -> Vec<u8> {
    const REQUEST: u16 = 1;
    const TCP: u8 = 6;
    let (local, peer) = (canonical(local), canonical(peer));
    let (family, interface) = match local {
        SocketAddr::V4(_) => (AddressFamily::INET, 0),
        SocketAddr::V6(local) => (AddressFamily::INET6, local.scope_id()),
    };
    let mut query = vec![family.as_raw() as u8, TCP, 1 << (INFO - 1), 0];
    // In any state, and with any cookie.
    query.extend(u32::MAX.to_ne_bytes());
    query.extend(local.port().to_be_bytes());
    query.extend(peer.port().to_be_bytes());
    query.extend(address(local.ip()));
    query.extend(address(peer.ip()));
    query.extend(interface.to_ne_bytes());
    query.extend([u8::MAX; 8]);

    let bytes = (HEADER_BYTES + query.len()) as u32;
    let mut all = bytes.to_ne_bytes().to_vec();
    all.extend(BY_FAMILY.to_ne_bytes());
    all.extend(REQUEST.to_ne_bytes());
    all.extend(number.to_ne_bytes());
    all.extend(0_u32.to_ne_bytes());
    all.extend(query);
    all
}

/// Returns an IPv4 address that a socket shows as IPv6 in its IPv4 form.
fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        IpAddr::V4(ip) => SocketAddr::new(ip.into(), address.port()),
        IpAddr::V6(_) => address,
    }
}

fn address(ip: IpAddr) -> [u8; 16] {
    match ip {
        IpAddr::V4(ip) => {
            let mut bytes = [0; 16];
            bytes[..4].copy_from_slice(&ip.octets());
            bytes
        }
        IpAddr::V6(ip) => ip.octets(),
    }
}

/// Returns the count in an answer; `None` if there is none, or the answer is invalid.
fn retransmitted(answer: &[u8]) -> Option<u32> {
    if u16_at(answer, 4)? != BY_FAMILY {
        return None;
    }
    let mut rest = answer.get(HEADER_BYTES + CONNECTION_BYTES..)?;
    loop {
        let bytes = usize::from(u16_at(rest, 0)?);
        let attribute = rest.get(4..bytes)?;
        if u16_at(rest, 2)? == INFO {
            return u32_at(attribute, TOTAL_RETRANS);
        }
        rest = rest.get(bytes.next_multiple_of(4)..)?;
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes
        .get(at..)?
        .first_chunk()
        .copied()
        .map(u16::from_ne_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes
        .get(at..)?
        .first_chunk()
        .copied()
        .map(u32::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    fn connected(address: &str) -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind(address).expect("loopback is there");
        let called = listener.local_addr().expect("it is bound");
        let caller = TcpStream::connect(called).expect("it listens");
        let (answerer, _) = listener.accept().expect("it was called");
        (caller, answerer)
    }

    fn ends(stream: &TcpStream) -> Ends {
        let (local, peer) = (stream.local_addr(), stream.peer_addr());
        (local.expect("it is bound"), peer.expect("it is connected"))
    }

    /// Nothing is lost on loopback; the network lab tests that losses are counted.
    #[test]
    fn the_kernel_finds_connections_of_both_families_and_no_others() {
        for address in ["127.0.0.1:0", "[::1]:0", "[::ffff:127.0.0.1]:0"] {
            let (mut caller, mut answerer) = connected(address);
            caller.write_all(&[7; 100]).expect("it is connected");
            answerer.read_exact(&mut [0; 100]).expect("it was sent");
            let both = [ends(&caller), ends(&answerer)];
            let mut all = Retransmissions::of(both);
            assert_eq!(all.take(), 0);
            let kernel = all.kernel.as_ref().expect("it can be asked");
            for ends in both {
                assert_eq!(total(kernel, 5, ends), Some(0), "{ends:?}");
            }
            let (local, peer) = both[0];
            let nobody = SocketAddr::new(peer.ip(), 1);
            assert_eq!(total(kernel, 6, (local, nobody)), None);
        }
    }

    /// Returns an answer with these attributes, each padded as the kernel does.
    fn answer(kind: u16, attributes: &[(u16, &[u8])]) -> Vec<u8> {
        let mut all = vec![0; HEADER_BYTES + CONNECTION_BYTES];
        all[4..6].copy_from_slice(&kind.to_ne_bytes());
        for (name, value) in attributes {
            all.extend((4 + value.len() as u16).to_ne_bytes());
            all.extend(name.to_ne_bytes());
            all.extend(*value);
            all.resize(all.len().next_multiple_of(4), 0);
        }
        all
    }

    #[test]
    fn the_count_is_found_behind_other_attributes_and_in_nothing_else() {
        let mut info = [0; 232];
        info[TOTAL_RETRANS..][..4].copy_from_slice(&41_u32.to_ne_bytes());
        let whole = answer(BY_FAMILY, &[(8, &[1]), (15, b"reno\0"), (INFO, &info)]);
        assert_eq!(retransmitted(&whole), Some(41));
        // Another kernel version may return fewer or more fields.
        let short = answer(BY_FAMILY, &[(INFO, &info[..TOTAL_RETRANS])]);
        assert_eq!(retransmitted(&short), None);
        assert_eq!(retransmitted(&answer(BY_FAMILY, &[(8, &[1])])), None);
        // An error (2), and truncated answers.
        assert_eq!(retransmitted(&answer(2, &[(INFO, &info)])), None);
        for end in 0..whole.len() - info.len() + TOTAL_RETRANS {
            assert_eq!(retransmitted(&whole[..end]), None, "{end}");
        }
        // A length of 0 must not cause an endless loop.
        let mut empty = whole.clone();
        empty[HEADER_BYTES + CONNECTION_BYTES..][..2].fill(0);
        assert_eq!(retransmitted(&empty), None);
    }
}
