//! The files that people and programs write: what stands in them, and all that is wrong with it.

pub mod edge_file;
pub mod matrix_file;
pub mod profile;
pub mod runtime_dir;
pub mod toml_file;
pub mod tree_file;
pub mod user_file;
