//! JSON files of a running cluster, written and read only by Flitcast.

use std::fs;
use std::path::Path;

use anyhow::anyhow;
use flitcast_proto::PeId;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::text::phrases::at;
use crate::text::whole_file::write_whole;

/// Maximum bytes of a file: some hundred bytes and two paths, and a few hundred bytes for each PE.
const LONGEST: u64 = 64 * 1024 + 4096 * crate::options::pes::MAX_LOCAL_PES as u64;

/// Writes a file as a whole or not at all.
pub fn write(path: &Path, state: &impl Serialize) -> anyhow::Result<()> {
    Ok(write_whole(path, |out| {
        serde_json::to_writer_pretty(&mut *out, state)?;
        writeln!(out)
    })?)
}

/// Reads a file that [`write`] has written.
pub fn read<T: DeserializeOwned>(path: &Path) -> anyhow::Result<T> {
    let shown = path.display();
    let malformed = |why: String| anyhow!("{shown}: {why}; `flitcast down` takes it away");
    let length = fs::metadata(path).map_err(at(path))?.len();
    if length > LONGEST {
        return Err(malformed(format!("it has {length} bytes")));
    }
    let text = fs::read(path).map_err(at(path))?;
    serde_json::from_slice(&text)
        .map_err(|error| malformed(format!("this flitcast has not written it: {error}")))
}

/// A PE, serialized as its number.
#[derive(Serialize, Deserialize)]
#[serde(remote = "PeId")]
pub struct PeNumber(pub u32);

/// Serialization of a time as seconds since 1970.
pub mod since {
    use std::time::{Duration, SystemTime};

    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    /// The start of the year 10000, beyond all dates that can be formatted.
    const END: u64 = 253_402_300_800;

    pub fn serialize<S: Serializer>(time: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
        let since = time.duration_since(SystemTime::UNIX_EPOCH);
        serializer.serialize_u64(since.unwrap_or_default().as_secs())
    }

    /// Deserializes a time from a number.
    ///
    /// # Errors
    ///
    /// Returns an error if the value is not an integer or is too large.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<SystemTime, D::Error> {
        match u64::deserialize(from)? {
            seconds if seconds < END => Ok(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)),
            seconds => Err(D::Error::custom(format!("{seconds} s is no time"))),
        }
    }
}
