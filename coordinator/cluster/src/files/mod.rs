//! The formats of files that users and programs write, and the errors in them.

pub mod edge_file;
pub mod matrix_file;
pub mod profile;
pub mod runtime_dir;
pub mod toml_file;
pub mod tree_file;
pub mod user_file;
