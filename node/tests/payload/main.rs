//! Files and folders as messages: packed, cut off anywhere, continued, and unpacked.

mod archive;
mod compression;
mod files;
mod holes;
mod hostile;
mod prefixes;
mod support;
mod update;
