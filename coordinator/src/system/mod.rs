//! What is the operating system's own, beyond what `flitcast_node::system` has for both: rights,
//! random numbers, other processes, the terminal, the machine. It is Linux's; whoever brings
//! Flitcast elsewhere starts here and there.

pub mod folder;
pub mod machine;
pub mod process;
pub mod random;
pub mod terminal;
