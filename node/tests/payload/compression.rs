//! The sample of a message from which the effect of compression is predicted.

use std::fs;
use std::io;

use crate::support::Scratch;
use flitcast_node::payload::{Content, Outgoing};
use flitcast_proto::Compression;
use flitcast_proto::seeded::SplitMix64;

const MIB: usize = 1 << 20;

fn random(seed: u64, bytes: usize) -> Vec<u8> {
    let mut random = SplitMix64::new(seed);
    let mut all = Vec::new();
    all.resize_with(bytes, || random.next_u64() as u8);
    all
}

/// Returns the estimated bytes of a MiB of a message of these files after compression.
fn packed_bytes(files: &[Vec<u8>]) -> io::Result<u64> {
    let dir = Scratch::new()?;
    for (number, content) in files.iter().enumerate() {
        fs::write(dir.join(&format!("{number:06}")), content)?;
    }
    let content = Content::Entry(dir.path().into());
    let mut message = Outgoing::measure(content, false, &|| {}).expect("all is readable");
    assert_eq!(message.measured.made_of.packed_bytes, 0);
    message.sample_compression(Compression::BEST);
    Ok(message.measured.made_of.packed_bytes)
}

/// The sample is of the whole message, whatever its files are.
#[test]
fn the_sample_is_like_the_message() -> io::Result<()> {
    let noise = random(1, 12 * MIB);
    let zeros = vec![0; 12 * MIB];
    assert_eq!(packed_bytes(std::slice::from_ref(&noise))?, MIB as u64);
    assert!(packed_bytes(std::slice::from_ref(&zeros))? < 16_384);
    let quarter = (MIB / 4) as u64;
    for files in [
        // A quarter of a file, at its end and at its beginning.
        vec![[&zeros[..9 * MIB], &noise[..3 * MIB]].concat()],
        vec![[&noise[..3 * MIB], &zeros[..9 * MIB]].concat()],
        // A quarter of the bytes, in long files and in short ones.
        vec![zeros[..9 * MIB].to_vec(), noise[..3 * MIB].to_vec()],
        noise
            .chunks(MIB)
            .zip(0..)
            .map(|(noise, i)| {
                if i % 4 == 0 {
                    noise.to_vec()
                } else {
                    vec![0; MIB]
                }
            })
            .collect(),
        noise[..3 * MIB]
            .chunks(3000)
            .flat_map(|noise| [noise.to_vec(), vec![0; 9000]])
            .collect(),
    ] {
        let packed = packed_bytes(&files)?;
        let off = packed.abs_diff(quarter);
        assert!(off < quarter / 5, "{} files: {packed} bytes", files.len());
    }
    // Short ones and none.
    assert_eq!(packed_bytes(&[random(2, 5000)])?, MIB as u64);
    assert_eq!(packed_bytes(&[])?, 0);
    Ok(())
}
