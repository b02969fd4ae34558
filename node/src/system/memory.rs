//! Settings of the kernel's memory management.

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
        let info = fs::read_to_string("/proc/meminfo").ok()?;
        let line = info
            .lines()
            .find(|line| line.starts_with("MemAvailable:"))?;
        let kib: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
        Some(kib * 1024.0 * setting("dirty_background_ratio")? / 100.0)
    };
    bytes.or_else(available).unwrap_or(1e9)
}
