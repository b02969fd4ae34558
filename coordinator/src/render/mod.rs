//! Output of a command's results: tables, JSON, pages and pictures.

pub mod certificates;
pub mod colours;
pub mod exit;
pub mod json;
pub mod page;
pub mod pictures;
pub mod report;
pub mod rows;
pub mod tree;
