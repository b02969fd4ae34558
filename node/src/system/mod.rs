//! What is the operating system's own: timers, `/proc`, limits of processes, what TCP counts.
//! It is Linux's; whoever brings Flitcast elsewhere starts here.

pub mod children;
pub mod clock;
pub mod descriptors;
pub mod lock;
pub mod memory;
pub mod process;
pub mod processes;
pub mod retransmissions;
pub mod sockets;
