//! A message of each kind of the protocol, in which no field has its default: `golden/wire.txt` has their texts,
//! and `golden/wire_values.txt` the bodies of their frames and the values that are read from these. Frames on
//! edges come first, then the messages of PEs, and those of the coordinator, with an empty line between them.

/// Returns the bodies of frames on edges, of PEs and of the coordinator.
pub fn bodies() -> [Vec<Vec<u8>>; 3] {
    let mut kinds = include_str!("../golden/wire_values.txt").split("\n\n");
    [(); 3].map(|()| {
        let lines = kinds.next().expect("there are three kinds").lines();
        let bodies = lines.map(|line| line.split(' ').next().and_then(from_hex));
        bodies
            .map(|body| body.expect("a line begins with digits"))
            .collect()
    })
}

/// Returns the frame that `put` appends.
pub fn written(put: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut frame = Vec::new();
    put(&mut frame);
    frame
}

/// Formats bytes in hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn from_hex(line: &str) -> Option<Vec<u8>> {
    let pairs = line.as_bytes().chunks(2);
    let byte = |pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    pairs.map(byte).collect()
}
