//! What a message is made of: files, or synthetic bytes.
