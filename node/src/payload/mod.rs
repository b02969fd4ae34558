//! Messages: made of files, or synthetic.
//!
//! A message made of files is a sequence of entries (`FileEntry` in
//! `proto/flitcast.proto`), each followed by the bytes of its regular file:
//!
//! ```text
//! input -- read_input_dir / deal --> Content -- measure --> bytes, before any socket
//!                                       `------ Packer  --> the message --> Unpacker -> output
//! ```
//!
//! [`Content`] and the [`Packer`] use the same walk (`scan`), so each reading sends what was
//! measured ([`Outgoing`]). All this is synchronous; [`Source`] and [`Sink`] run it on blocking
//! threads, a block ahead of or behind the round that moves the flits. No sockets are used here.

mod archived;
mod cursor;
mod deal;
mod direct;
mod durability;
mod entry;
mod error;
mod extents;
mod folders;
mod gauge;
mod hidden;
mod inode;
mod input;
mod leftovers;
mod others;
mod outgoing;
mod pack;
mod pattern;
mod present;
mod receipt;
mod removal;
mod scan;
mod selection;
mod staging;
mod stream;
mod synthetic;
mod unpack;

pub use deal::{deal, deal_shards, list, measure_shards, select, shards_of};
pub use entry::{Content, Entry};
pub use error::{PayloadError, Refusal};
pub use folders::{above, create_durable};
pub use gauge::{file_system, free_bytes, measure_files};
pub use hidden::{
    HiddenName, KEPT_WORK_PREFIX, UNFINISHED_PREFIX, WORK_PREFIX, pe_of, record_name,
};
pub use input::{
    meant_pe, measure_all, own_input, pattern_input, pieces_input, pieces_of, read_input_dir,
    scatter_input, whole_input,
};
pub use leftovers::{
    OutputLock, Sweep, discard, in_the_way, records_in, sweep, sweep_output, unlocked,
};
pub use others::{Others, destination, output_entry};
pub use outgoing::{Measured, Outgoing};
pub use pack::Packer;
pub use pattern::Pattern;
pub use present::{Listing, check_version, prefix_digest, removed, version_at};
pub use receipt::{DestinationState, Receipt};
pub use removal::remove;
pub use selection::Selection;
pub use staging::Target;
pub use stream::{FileSink, FileSource, OutputFolder, Sink, Source, delivered_at, output_fault};
pub use synthetic::Synthetic;
pub use unpack::{Unpacker, prefix_bytes};
