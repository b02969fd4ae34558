//! What a PE asks and tells the operating system about its own process.

/// The process's largest resident set so far, in bytes; 0 where the system does
/// not tell.
pub fn peak_resident_bytes() -> u64 {
    // Not getrusage: its figure survives exec, and would be the launcher's.
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = peak.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}
