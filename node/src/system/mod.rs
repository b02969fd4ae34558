//! Code that depends on the operating system: timers, `/proc`, process limits, TCP statistics. It is
//! for Linux; a port starts here.

pub mod children;
pub mod clock;
pub mod cores;
pub mod descriptors;
pub mod lent;
pub mod lock;
pub mod process;
pub mod processes;
pub mod regular;
pub mod retransmissions;
pub mod sockets;
