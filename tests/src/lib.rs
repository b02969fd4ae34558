//! What the whole-system tests share: building the binary, running it, comparing trees of files.
