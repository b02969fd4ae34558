//! What a PE asks the operating system about its own process and its connections.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Names the monotonic clock that this process reads: the host's boot, and the time
/// namespace, which may shift it for a container. Empty where the system does not
/// tell.
pub fn clock() -> String {
    let Some(boot) = boot() else {
        return String::new();
    };
    // Kernels without time namespaces have one clock for all.
    let namespace = std::fs::read_link("/proc/self/ns/time").unwrap_or_default();
    format!("{boot} {}", namespace.display())
}

/// Names the host's boot.
pub fn boot() -> Option<String> {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(boot.trim().to_owned())
}

/// The processor's name, or what else the kernel says of it first; `None` where it does not tell.
pub fn processor() -> Option<String> {
    let info = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let is_name = |line: &&str| line.starts_with("model name");
    let line = info.lines().find(is_name).or(info.lines().next());
    Some(line.unwrap_or_default().to_owned())
}

/// The cores that this process may run on.
pub fn cores() -> Option<u32> {
    let cores = std::thread::available_parallelism().ok()?;
    cores.get().try_into().ok()
}

/// Whether this process may do what only the system's administrator may.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The process's largest resident set so far, in bytes; 0 where the system does
/// not tell.
pub fn peak_resident_bytes() -> u64 {
    // Not getrusage: its figure survives exec, and would be the launcher's.
    status_bytes("VmHWM:")
}

/// The process's resident set now, in bytes; 0 where the system does not tell.
pub fn resident_bytes() -> u64 {
    status_bytes("VmRSS:")
}

fn status_bytes(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let value = status.lines().find_map(|line| line.strip_prefix(name));
    let kib = value.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

/// Both ends of a TCP connection, this one's first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connection {
    local: SocketAddr,
    remote: SocketAddr,
}

impl Connection {
    /// However the addresses are written.
    pub fn new(local: SocketAddr, remote: SocketAddr) -> Connection {
        let plain = |addr: SocketAddr| SocketAddr::new(addr.ip().to_canonical(), addr.port());
        Connection {
            local: plain(local),
            remote: plain(remote),
        }
    }
}

/// The connections of this host on which something was sent, was sent again, and is
/// still not acknowledged: the other host is gone, or the way there or back. One whose
/// process does not read is not among them, since its host answers all the same. None
/// where the system does not tell.
pub fn unacknowledged() -> Vec<Connection> {
    // A look at all connections of a host takes a millisecond for a few thousand.
    let files = ["/proc/self/net/tcp", "/proc/self/net/tcp6"];
    let tables = files.map(|file| std::fs::read_to_string(file).unwrap_or_default());
    let lines = tables.iter().flat_map(|table| table.lines().skip(1));
    lines.filter_map(unacknowledged_in).collect()
}

/// `sl local_address rem_address st tx_queue:rx_queue tr:tm->when retrnsmt ..`, all but
/// the first in hexadecimal.
fn unacknowledged_in(line: &str) -> Option<Connection> {
    const RETRANSMISSION: &str = "01";
    let mut fields = line.split_whitespace().skip(1);
    let (local, remote) = (fields.next()?, fields.next()?);
    let mut fields = fields.skip(2);
    let (timer, _) = fields.next()?.split_once(':')?;
    let repeated = u32::from_str_radix(fields.next()?, 16).ok()?;
    (timer == RETRANSMISSION && repeated > 0)
        .then(|| Some(Connection::new(address(local)?, address(remote)?)))?
}

/// `0100007F:B0EB`: the words of the address as this machine has them in memory.
fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let words: Option<Vec<[u8; 4]>> = (0..ip.len())
        .step_by(8)
        .map(|at| {
            let word = u32::from_str_radix(ip.get(at..at + 8)?, 16).ok()?;
            Some(word.to_ne_bytes())
        })
        .collect();
    let bytes = words?.concat();
    let ip: IpAddr = match *bytes.as_slice() {
        [a, b, c, d] => Ipv4Addr::new(a, b, c, d).into(),
        _ => Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?).into(),
    };
    Some(SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_endian = "little")]
    fn lines_of_the_kernel_are_understood() {
        let v4 = "   3: 0100007F:B0EB 0200007F:1F90 01 00000200:00000000 01:00000014 00000002     0 0 1 1 0";
        let expected = Connection::new(
            "127.0.0.1:45291".parse().unwrap(),
            "127.0.0.2:8080".parse().unwrap(),
        );
        assert_eq!(unacknowledged_in(v4), Some(expected));
        let mapped = v4.replace("0100007F", "0000000000000000FFFF00000100007F");
        let mapped = mapped.replace("0200007F", "0000000000000000FFFF00000200007F");
        assert_eq!(unacknowledged_in(&mapped), Some(expected));
        for calm in [
            v4.replace("00000002 ", "00000000 "),
            v4.replace("01:00000014", "04:00000014"),
            "nonsense".to_owned(),
            String::new(),
        ] {
            assert_eq!(unacknowledged_in(&calm), None, "{calm}");
        }
    }

    #[test]
    fn the_kernel_writes_lines_like_that() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let ours = listener.local_addr().expect("it has an address");
        let table = std::fs::read_to_string("/proc/self/net/tcp").expect("Linux has it");
        let (head, lines) = table.split_once('\n').expect("it has a head");
        let names: Vec<&str> = head.split_whitespace().collect();
        assert_eq!(names[4..8], ["tx_queue", "rx_queue", "tr", "tm->when"]);
        assert_eq!(names[8], "retrnsmt");
        let mut locals = lines.lines().map(|line| {
            let local = line.split_whitespace().nth(1).and_then(address);
            local.unwrap_or_else(|| panic!("{line}"))
        });
        assert!(locals.any(|local| local == ours), "{table}");
    }
}
