//! The reference implementation: the `protobuf` crate, which uses only `proto/flitcast.proto`.

use std::collections::BTreeSet;
use std::path::Path;

use protobuf::reflect::{
    FieldDescriptor, FileDescriptor, MessageDescriptor, ReflectFieldRef, ReflectValueRef,
    RuntimeFieldType, RuntimeType,
};
use protobuf::{MessageDyn, text_format};

const PROTO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../proto/flitcast.proto");

/// The messages of a version of the protocol.
pub struct Reference(FileDescriptor);

impl Reference {
    /// Reads the messages from the file.
    pub fn new() -> Reference {
        let proto = Path::new(PROTO);
        Reference::read(proto, proto.parent().expect("a file is in a directory"))
    }

    /// Reads the messages of a later version, in which these parts of the text are replaced.
    pub fn later(changes: &[(&str, &str)]) -> Reference {
        let dir = flitcast_tests::scratch();
        let mut text = std::fs::read_to_string(PROTO).expect("it is there");
        for (part, later) in changes {
            assert!(text.contains(part), "{part}");
            text = text.replace(part, later);
        }
        Reference::read(&dir.put("flitcast.proto", text), dir.path())
    }

    fn read(path: &Path, include: &Path) -> Reference {
        let mut parser = protobuf_parse::Parser::new();
        parser.pure().include(include).input(path);
        let files = parser.file_descriptor_set().expect("the file is valid");
        let file = files.file.into_iter().last().expect("it is one file");
        Reference(FileDescriptor::new_dynamic(file, &[]).expect("it imports nothing"))
    }

    #[track_caller]
    fn message(&self, name: &str) -> MessageDescriptor {
        let message = self.0.message_by_package_relative_name(name);
        message.unwrap_or_else(|| panic!("there is no message {name}"))
    }

    /// Returns the field numbers that lead from a message to each of its lists, those inside other
    /// messages too, apart from lists of numbers.
    pub fn lists(&self, name: &str) -> Vec<Vec<u32>> {
        lists_of(&self.message(name))
    }

    /// Returns the names of all fields of a message and of those inside it, each behind its message's.
    #[track_caller]
    pub fn fields(&self, name: &str) -> BTreeSet<String> {
        let mut fields = BTreeSet::new();
        fields_of(&self.message(name), &mut fields);
        fields
    }

    /// Adds the fields of a message that do not have their defaults.
    pub fn add_fields(&self, name: &str, text: &str, found: &mut BTreeSet<String>) {
        set_fields_of(&*self.parse(name, text), found);
    }

    /// Returns the body of the frame that `text` describes.
    #[track_caller]
    pub fn encode(&self, name: &str, text: &str) -> Vec<u8> {
        let bytes = self.parse(name, text).write_to_bytes_dyn();
        bytes.expect("nothing is missing in proto3")
    }

    /// Returns the text of the message that `body` is, on one line.
    #[track_caller]
    pub fn text(&self, name: &str, body: &[u8]) -> String {
        let read = self.message(name).parse_from_bytes(body);
        text_format::print_to_string(&*read.expect("it is protobuf"))
    }

    /// Checks that `body` is the message that `text` describes, in every field, and has no field that
    /// the file does not define.
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

fn lists_of(message: &MessageDescriptor) -> Vec<Vec<u32>> {
    let mut lists = Vec::new();
    for field in message.fields() {
        let number = field.number() as u32;
        let (is_list, of) = match field.runtime_field_type() {
            RuntimeFieldType::Singular(of) => (false, of),
            RuntimeFieldType::Repeated(of) => (true, of),
            RuntimeFieldType::Map(..) => panic!("the protocol has no maps"),
        };
        let (takes_memory, inside) = match of {
            RuntimeType::Message(inside) => (true, lists_of(&inside)),
            RuntimeType::String | RuntimeType::VecU8 => (true, Vec::new()),
            _ => (false, Vec::new()),
        };
        if is_list && takes_memory {
            lists.push(vec![number]);
        }
        lists.extend(inside.into_iter().map(|path| [vec![number], path].concat()));
    }
    lists
}

fn shown(message: &MessageDescriptor, field: &FieldDescriptor) -> String {
    format!("{}.{}", message.name(), field.name())
}

fn fields_of(message: &MessageDescriptor, all: &mut BTreeSet<String>) {
    for field in message.fields() {
        let is_new = all.insert(shown(message, &field));
        let (RuntimeFieldType::Singular(of) | RuntimeFieldType::Repeated(of)) =
            field.runtime_field_type()
        else {
            panic!("the protocol has no maps");
        };
        if let (true, RuntimeType::Message(inside)) = (is_new, of) {
            fields_of(&inside, all);
        }
    }
}

fn set_fields_of(message: &dyn MessageDyn, found: &mut BTreeSet<String>) {
    for field in message.descriptor_dyn().fields() {
        let values: Vec<ReflectValueRef> = match field.get_reflect(message) {
            ReflectFieldRef::Optional(value) => value.value().into_iter().collect(),
            ReflectFieldRef::Repeated(list) => (0..list.len()).map(|at| list.get(at)).collect(),
            ReflectFieldRef::Map(_) => panic!("the protocol has no maps"),
        };
        for value in values {
            found.insert(shown(&message.descriptor_dyn(), &field));
            if let ReflectValueRef::Message(inside) = value {
                set_fields_of(&*inside, found);
            }
        }
    }
}
