//! The kernel's memory for data on its way to disks.

use std::fs;

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
