//! `flitcast ca revoke`: revokes all certificates of a process.

use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{anyhow, ensure};
use clap::Args;
use flitcast_node::security::{Name, REVOKED_FILE, Revoked, revoked, serial};

use flitcast_cluster::site::ca::{authority_in, locked, put, read};
use flitcast_cluster::text::words;

const EXAMPLES: &str = "\
Example: the key of P3 has got into other hands.
  flitcast ca revoke credentials p3
  flitcast ca issue credentials p3

revoked.pem lists what is revoked, and belongs beside ca.pem on every host. It is read by each
command, by each process when it is started, and by one that joins and stays each time it joins.";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct RevokeArgs {
    /// Folder of the authority
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Names of the certificates: coordinator, p0, p1 and so on
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,
}

/// Revokes all certificates of the names, and prints that.
pub fn revoke(
    args: &RevokeArgs,
    out: &mut dyn io::Write,
) -> Result<io::Result<()>, Vec<anyhow::Error>> {
    let mut faults = Vec::new();
    let names = super::named(&args.names, &mut faults);
    if !faults.is_empty() {
        return Err(faults);
    }
    let listed = revoke_all(&args.folder, &names).map_err(|fault| vec![fault])?;
    let (names, folder) = (words::names(&names), args.folder.display());
    Ok(writeln!(
        out,
        "in {folder}: all certificates of {names} are revoked; {REVOKED_FILE} lists {listed}, and belongs beside ca.pem on every host"
    ))
}

/// Revokes the certificates and returns the number of entries of the revocation list.
fn revoke_all(folder: &Path, names: &[Name]) -> anyhow::Result<usize> {
    let _lock = locked(folder)?;
    let authority = authority_in(folder)?;
    let now = SystemTime::now();
    let mut list = revoked(folder)?;
    let issued = read(folder)?;
    for &name in names {
        let had = issued.iter().filter(|entry| entry.name == name);
        let serials: Vec<Vec<u8>> = had
            .filter(|entry| entry.until > now)
            .map(|entry| entry.serial.clone())
            // Needed for an authority that is older than its ledger.
            .chain(serial(folder, name)?)
            .collect();
        ensure!(
            !serials.is_empty(),
            "{name} has no certificate that was issued here and is still good"
        );
        for serial in serials {
            if !list.iter().any(|known| known.serial == serial) {
                list.push(Revoked { serial, since: now });
            }
        }
    }
    let made = authority.revoke(&list, now);
    let pem =
        made.map_err(|error| anyhow!("cannot make the list of revoked certificates: {error}"))?;
    put(folder, REVOKED_FILE, &pem, 0o644)?;
    Ok(list.len())
}
