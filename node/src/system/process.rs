//! Queries about the PE's own process and its connections.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use rustix::process::{Resource, getrlimit};
use tokio::signal::unix::{SignalKind, signal};

use super::retransmissions::Ends;

/// Identifies the monotonic clock of this process: the host's boot, and the time namespace, which
/// may shift it for a container. Empty if the system does not provide it.
pub fn clock() -> String {
    let Some(boot) = boot() else {
        return String::new();
    };
    // Kernels without time namespaces have one clock for all.
    let namespace = std::fs::read_link("/proc/self/ns/time").unwrap_or_default();
    format!("{boot} {}", namespace.display())
}

/// Returns the number of the host's boot.
pub fn boot() -> Option<String> {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(boot.trim().to_owned())
}

/// Returns the processor's name, or the first description from the kernel; `None` if there is none.
pub fn processor() -> Option<String> {
    let info = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let is_name = |line: &&str| line.starts_with("model name");
    let line = info.lines().find(is_name).or(info.lines().next());
    Some(line.unwrap_or_default().to_owned())
}

/// Returns the host's own name; empty if it has none, or one that is not UTF-8.
pub fn host() -> String {
    let name = rustix::system::uname();
    name.nodename().to_str().unwrap_or_default().to_owned()
}

/// Returns the number of the user that owns the files which this process creates.
pub fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Returns the number of the group that owns the files which this process creates.
pub fn group() -> u32 {
    rustix::process::getegid().as_raw()
}

pub fn cores() -> Option<u32> {
    let cores = std::thread::available_parallelism().ok()?;
    cores.get().try_into().ok()
}

/// Returns whether this process has the rights of the system's administrator.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Returns the process's largest resident set so far, in bytes; 0 if the system does not provide
/// it.
pub fn peak_resident_bytes() -> u64 {
    // Not getrusage: its figure survives exec, and would be the launcher's.
    let kib = status("VmHWM:").and_then(|value| value.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

/// Returns the process's current resident set, in bytes; 0 if the system does not provide it.
pub fn resident_bytes() -> u64 {
    // The kernel writes this file faster than the status.
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let resident = pages.split(' ').nth(1);
    let resident: Option<u64> = resident.and_then(|pages| pages.parse().ok());
    resident.unwrap_or(0) * rustix::param::page_size() as u64
}

/// Returns the time for which this thread was ready to run and other threads had the cores, in
/// nanoseconds; 0 if the kernel does not report it.
pub fn queued_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let queued = text.split_whitespace().nth(1);
    queued.and_then(|ns| ns.parse().ok()).unwrap_or(0)
}

/// Returns whether this process ignores a signal, as it does if it was started so: by `nohup`, or
/// in the background of a shell without job control.
pub fn ignores(signal: i32) -> bool {
    let mask = status("SigIgn:").and_then(|mask| u64::from_str_radix(&mask, 16).ok());
    mask.unwrap_or(0) & (1 << (signal - 1)) != 0
}

/// Returns the first word of a line of `/proc/self/status`.
fn status(name: &str) -> Option<String> {
    // More than the kernel writes, so that one call reads all of it.
    let mut status = [0; 4096];
    let mut file = File::open("/proc/self/status").ok()?;
    let bytes = file.read(&mut status).ok()?;
    let lines = str::from_utf8(&status[..bytes]).ok()?;
    let (_, value) = lines.split_once(name)?;
    Some(value.split_whitespace().next()?.to_owned())
}

/// Makes a write beyond the process's file size limit fail, where SIGXFSZ would end the process. It
/// installs a signal handler, which commands do not inherit.
///
/// # Panics
///
/// Panics outside of a runtime.
pub fn survive_file_size_limit() -> io::Result<()> {
    const SIGXFSZ: i32 = 25;
    // The handler stays when the receiver is gone.
    signal(SignalKind::from_raw(SIGXFSZ)).map(drop)
}

/// Returns the file size limit of the process in bytes (`ulimit -f`), if it has one.
pub fn file_size_limit() -> Option<u64> {
    getrlimit(Resource::Fsize).current
}

/// Returns a connection's ends in the form in which [`unacknowledged`] returns them.
pub fn canonical((local, remote): Ends) -> Ends {
    let plain = |addr: SocketAddr| SocketAddr::new(addr.ip().to_canonical(), addr.port());
    (plain(local), plain(remote))
}

/// Returns the connections of this host with data that was sent, sent again, and is still not
/// acknowledged: the other host is gone, or the way there or back. A connection whose process does
/// not read is not included, since its host acknowledges. Empty if the system does not provide
/// them.
pub fn unacknowledged() -> Vec<Ends> {
    // Reading all connections of a host takes a millisecond for a few thousand.
    let files = ["/proc/self/net/tcp", "/proc/self/net/tcp6"];
    let tables = files.map(|file| std::fs::read_to_string(file).unwrap_or_default());
    let lines = tables.iter().flat_map(|table| table.lines().skip(1));
    lines.filter_map(unacknowledged_in).collect()
}

/// Parses `sl local_address rem_address st tx_queue:rx_queue tr:tm->when retrnsmt ..`, all but the
/// first in hexadecimal.
fn unacknowledged_in(line: &str) -> Option<Ends> {
    const RETRANSMISSION: &str = "01";
    let mut fields = line.split_whitespace().skip(1);
    let (local, remote) = (fields.next()?, fields.next()?);
    let mut fields = fields.skip(2);
    let (timer, _) = fields.next()?.split_once(':')?;
    let repeated = u32::from_str_radix(fields.next()?, 16).ok()?;
    (timer == RETRANSMISSION && repeated > 0)
        .then(|| Some(canonical((address(local)?, address(remote)?))))?
}

/// Parses `0100007F:B0EB`: the words of the address as this machine has them in memory.
fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let word = |at| {
        let word = u32::from_str_radix(ip.get(at..at + 8)?, 16).ok()?;
        Some(word.to_ne_bytes())
    };
    let words: Option<Vec<[u8; 4]>> = (0..ip.len()).step_by(8).map(word).collect();
    let bytes = words?.concat();
    let ip: IpAddr = match *bytes.as_slice() {
        [a, b, c, d] => Ipv4Addr::new(a, b, c, d).into(),
        _ => Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?).into(),
    };
    Some(SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?))
}

/// Returns the number of written bytes that the kernel keeps in memory before it starts to write to
/// disks.
pub fn dirty_bytes() -> f64 {
    let setting = |name: &str| {
        let text = fs::read_to_string(format!("/proc/sys/vm/{name}")).ok()?;
        text.trim().parse::<f64>().ok()
    };
    let bytes = setting("dirty_background_bytes").filter(|&bytes| bytes > 0.0);
    let available = || {
        let [bytes] = meminfo(["MemAvailable:"])?;
        Some(bytes * setting("dirty_background_ratio")? / 100.0)
    };
    bytes.or_else(available).unwrap_or(1e9)
}

/// Returns the number of written bytes of all programs that no disk has yet.
pub fn unwritten_bytes() -> Option<f64> {
    let bytes = meminfo(["Dirty:", "Writeback:"])?;
    Some(bytes.iter().sum())
}

/// Returns the values of these lines of `/proc/meminfo` in bytes.
fn meminfo<const N: usize>(names: [&str; N]) -> Option<[f64; N]> {
    let info = fs::read_to_string("/proc/meminfo").ok()?;
    let mut bytes = [0.0; N];
    for (bytes, name) in bytes.iter_mut().zip(names) {
        let line = info.lines().find_map(|line| line.strip_prefix(name))?;
        let kib: f64 = line.split_whitespace().next()?.parse().ok()?;
        *bytes = kib * 1024.0;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_endian = "little")]
    fn lines_of_the_kernel_are_parsed() {
        let v4 = "   3: 0100007F:B0EB 0200007F:1F90 01 00000200:00000000 01:00000014 00000002     0 0 1 1 0";
        let ends = ["127.0.0.1:45291", "127.0.0.2:8080"].map(|end| end.parse().unwrap());
        let expected = Some((ends[0], ends[1]));
        assert_eq!(unacknowledged_in(v4), expected);
        let mapped = v4.replace("0100007F", "0000000000000000FFFF00000100007F");
        let mapped = mapped.replace("0200007F", "0000000000000000FFFF00000200007F");
        assert_eq!(unacknowledged_in(&mapped), expected);
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
