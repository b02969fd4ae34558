//! The other implementation: the `protobuf` crate, which knows of our messages only
//! what `proto/flitcast.proto` says.

use std::path::Path;

use protobuf::reflect::{FileDescriptor, MessageDescriptor};
use protobuf::{MessageDyn, text_format};

const PROTO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../proto/flitcast.proto");

/// The messages of a version of the protocol.
pub struct Reference(FileDescriptor);

impl Reference {
    /// As the file has them.
    pub fn new() -> Reference {
        let proto = Path::new(PROTO);
        Reference::read(proto, proto.parent().expect("a file is in a directory"))
    }

    /// As a later version may have them: `change` edits the file's text.
    #[track_caller]
    pub fn later(change: impl FnOnce(String) -> String) -> Reference {
        let dir = flitcast_tests::scratch();
        let text = std::fs::read_to_string(PROTO).expect("it is there");
        let changed = change(text.clone());
        assert_ne!(text, changed, "the change finds its place");
        let path = dir.path().join("flitcast.proto");
        std::fs::write(&path, changed).expect("it can be written");
        Reference::read(&path, dir.path())
    }

    fn read(path: &Path, include: &Path) -> Reference {
        let mut parser = protobuf_parse::Parser::new();
        let parsed = parser
            .pure()
            .include(include)
            .input(path)
            .file_descriptor_set();
        let mut files = parsed.expect("the file is valid").file;
        let file = files.pop().expect("it is one file");
        Reference(FileDescriptor::new_dynamic(file, &[]).expect("it imports nothing"))
    }

    #[track_caller]
    fn message(&self, name: &str) -> MessageDescriptor {
        let message = self.0.message_by_package_relative_name(name);
        message.unwrap_or_else(|| panic!("there is no message {name}"))
    }

    /// The body of the frame that `text` describes.
    #[track_caller]
    pub fn encode(&self, name: &str, text: &str) -> Vec<u8> {
        let message = self.parse(name, text);
        message
            .write_to_bytes_dyn()
            .expect("nothing is missing in proto3")
    }

    /// That `body` is the message that `text` describes, in every field, and has no
    /// field that the file does not know.
    #[track_caller]
    pub fn assert_reads(&self, name: &str, body: &[u8], text: &str) {
        let read = self.message(name).parse_from_bytes(body);
        let read = read.unwrap_or_else(|error| panic!("{text}: {error}"));
        let expected = self.parse(name, text);
        let print = text_format::print_to_string_pretty;
        assert_eq!(print(&*read), print(&*expected));
    }

    #[track_caller]
    fn parse(&self, name: &str, text: &str) -> Box<dyn MessageDyn> {
        let mut message = self.message(name).new_instance();
        let parsed = text_format::merge_from_str(&mut *message, text);
        parsed.unwrap_or_else(|error| panic!("{text}: {error}"));
        message
    }
}
