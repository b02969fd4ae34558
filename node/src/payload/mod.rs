//! What a message is made of: files, or synthetic bytes.
//!
//! A message made of files is a sequence of entries (`FileEntry` in
//! `proto/flitcast.proto`), each followed by the bytes of its regular file:
//!
//! ```text
//! input -- read_input_dir / deal --> Content -- measure --> bytes, before any socket
//!                                       `------ Packer  --> the message --> Unpacker -> output
//! ```
//!
//! [`Content`] and the [`Packer`] walk the same way (`scan`), so that what was
//! measured is what is sent. All this is synchronous; [`Source`] and [`Sink`] run it
//! on blocking threads, a block ahead of or behind the round that moves the flits.
//! Sockets do not belong here.

mod cold;
mod cursor;
mod entry;
mod error;
mod folders;
mod gauge;
mod holes;
mod input;
mod others;
mod pack;
mod receipt;
mod removal;
mod scan;
mod staging;
mod stream;
mod synthetic;
mod unpack;

pub use entry::{Entry, Refusal};
pub use error::PayloadError;
pub use folders::{WORK_PREFIX, create_durable};
pub use gauge::{file_system, measure_files};
pub use input::{
    deal, measure_all, own_input, pieces_input, pieces_of, read_input_dir, scatter_input,
    whole_input,
};
pub use others::Others;
pub use pack::Packer;
pub use receipt::{Receipt, Standing};
pub use removal::remove;
pub use scan::{Content, Measured};
pub use staging::{is_hidden_beside, sweep};
pub use stream::{
    FileSink, FileSource, OutputFolder, Sink, Source, delivered_at, destination, output_fault,
};
pub use synthetic::Synthetic;
pub use unpack::Unpacker;
