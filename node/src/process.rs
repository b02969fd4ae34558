//! What a PE asks and tells the operating system about its own process.

/// Names the monotonic clock that this process reads: the host's boot, and the time
/// namespace, which may shift it for a container. Empty where the system does not
/// tell.
pub fn clock() -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
    let Ok(boot) = boot else {
        return String::new();
    };
    // Kernels without time namespaces have one clock for all.
    let namespace = std::fs::read_link("/proc/self/ns/time").unwrap_or_default();
    format!("{} {}", boot.trim(), namespace.display())
}

/// The process's largest resident set so far, in bytes; 0 where the system does
/// not tell.
pub fn peak_resident_bytes() -> u64 {
    // Not getrusage: its figure survives exec, and would be the launcher's.
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = peak.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}
