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
//! measured is what is sent. All here is synchronous; whoever plays a PE calls it
//! from a blocking thread. Neither sockets nor flits belong here.

mod entry;
mod error;
mod input;
mod pack;
mod scan;
mod staging;
mod unpack;

pub use entry::Refusal;
pub use error::PayloadError;
pub use input::{deal, read_input_dir};
pub use pack::Packer;
pub use scan::Content;
pub use staging::{is_staging_name, sweep};
pub use unpack::Unpacker;
