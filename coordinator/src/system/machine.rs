//! A description of the machine.

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
