//! A description of the machine, and its load.

use flitcast_node::system::process::cores;

/// Returns the name, the kernel and the architecture.
pub fn described() -> String {
    let system = rustix::system::uname();
    let [node, name, release, machine] = [
        system.nodename(),
        system.sysname(),
        system.release(),
        system.machine(),
    ]
    .map(|part| part.to_string_lossy());
    format!("{node}, {name} {release} {machine}")
}

/// Returns the number of threads of other programs that run or wait for a processor now, per core;
/// 0 if the system does not provide it. The processes of a run must be idle.
pub fn load_of_others() -> f64 {
    let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let running = stat
        .lines()
        .find_map(|line| line.strip_prefix("procs_running "));
    let running: f64 = running.and_then(|count| count.parse().ok()).unwrap_or(0.0);
    // This thread is one of them.
    (running - 1.0).max(0.0) / f64::from(cores().unwrap_or(1))
}
