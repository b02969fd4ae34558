//! Code that depends on the operating system, in addition to `flitcast_node::system`: permissions,
//! random numbers, other processes, the terminal, the machine. It is for Linux; a port starts here and
//! there.

pub mod interrupts;
pub mod machine;
pub mod process;
pub mod spool;
pub mod terminal;
