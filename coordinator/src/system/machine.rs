//! What kind of machine this is.

use std::fs;

/// Its name, its kernel and its architecture.
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

/// The processor's name, or what else the kernel says of it first; `None` where it does not tell.
pub fn processor() -> Option<String> {
    let info = fs::read_to_string("/proc/cpuinfo").ok()?;
    let is_name = |line: &&str| line.starts_with("model name");
    let line = info.lines().find(is_name).or(info.lines().next());
    Some(line.unwrap_or_default().to_owned())
}
