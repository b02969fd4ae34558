//! `flitcast ca`: founds an authority in a folder, and issues certificates there.
//!
//! ```text
//! ca.pem  ca.key                      the authority: who has this key makes PEs
//! coordinator.pem  coordinator.key
//! p0.pem  p0.key  p1.pem  p1.key ..
//! issued.txt                          all that was issued
//! revoked.pem                         what was revoked, if anything
//! ```
//!
//! A PE needs `ca.pem`, its own two files, and `revoked.pem` where there is one. A certificate
//! that is issued again takes the place of the old one; who is connected stays so.

mod ledger;
mod revoke;

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use clap::{Args, Subcommand};
use flitcast_node::security::{
    AUTHORITY_FILE, Identity, Name, SecurityError, authority_ends, private_key,
};
use flitcast_proto::PeId;
use flitcast_proto::tree::MAX_PES;
use rcgen::KeyPair;
use rustix::fs::{FlockOperation, flock};
use thiserror::Error;

use crate::site::authority::{Authority, Issued, Validity};
use ledger::Entry;
use revoke::{RevokeArgs, revoke};

const AUTHORITY_KEY_FILE: &str = "ca.key";
const DAY: Duration = Duration::from_secs(24 * 3600);
/// What a certificate may be good for: above ten years nobody remembers it.
const MOST_DAYS: u32 = 3660;

const EXAMPLES: &str = "\
Examples:
  flitcast ca init credentials --pes 8
  flitcast scatter --cluster cluster.toml --credentials credentials --size 1MiB
  flitcast ca issue credentials p3 coordinator
  flitcast ca revoke credentials p3";

/// Arguments of `flitcast ca`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct CaArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Found an authority in a new folder, and issue certificates for a cluster.
    Init(InitArgs),
    /// Issue certificates, anew for those that have some: the old ones stay good until
    /// they expire or are revoked.
    Issue(IssueArgs),
    /// Revoke all certificates that somebody has had until now.
    Revoke(RevokeArgs),
}

#[derive(Debug, Args)]
struct InitArgs {
    /// The folder, which is not there yet or is empty.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Issue certificates for the coordinator and for P0 and so on, so many PEs.
    #[arg(long, value_name = "N")]
    pes: Option<u32>,
    /// How long the authority is good for, and with it all that it issues.
    #[arg(long, value_name = "DAYS", default_value_t = 3650)]
    authority_days: u32,
    /// How long the certificates are good for: at most as long as the authority.
    #[arg(long, value_name = "DAYS", default_value_t = 90)]
    days: u32,
}

#[derive(Debug, Args)]
struct IssueArgs {
    /// The authority's folder.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// For whom: coordinator, p0, p1 and so on.
    #[arg(value_name = "NAME", required_unless_present = "pes")]
    names: Vec<String>,
    /// For the coordinator and for P0 and so on, so many PEs.
    #[arg(long, value_name = "N", conflicts_with = "names")]
    pes: Option<u32>,
    /// How long the certificates are good for: at most as long as the authority.
    #[arg(long, value_name = "DAYS", default_value_t = 90)]
    days: u32,
}

/// What is wrong with such a command.
#[derive(Debug, Error)]
pub enum CaError {
    /// There is something in the folder.
    #[error("{}: there is something here already; an authority is founded in an empty folder", .0.display())]
    Taken(PathBuf),
    /// A name that nobody has.
    #[error("`{0}` is nobody: write coordinator, or p and a PE's number")]
    Nobody(String),
    /// Too many, or none.
    #[error("--pes {0}: from 1 to {MAX_PES}")]
    Pes(u32),
    /// Too long, or no time at all.
    #[error("{option} {days}: from 1 to {MOST_DAYS}")]
    Days {
        /// Which option.
        option: &'static str,
        /// As typed.
        days: u32,
    },
    /// The authority's files are not good.
    #[error(transparent)]
    Security(#[from] SecurityError),
    /// The certificate cannot be made.
    #[error("cannot make the certificate of {name}: {source}")]
    Issue {
        /// Whose.
        name: String,
        /// Why not.
        source: rcgen::Error,
    },
    /// A list cannot be made.
    #[error("cannot make the list of revoked certificates: {source}")]
    List {
        /// Why not.
        source: rcgen::Error,
    },
    /// There is nothing to be revoked.
    #[error("{0} has no certificate that was issued here and is still good")]
    NotIssued(String),
    /// Two at the same time would lose what one of them notes.
    #[error("{}: another `flitcast ca` is at work here: try again when it is done", .0.display())]
    Busy(PathBuf),
    /// The ledger was changed by hand.
    #[error("{}:{line}: this is no line that `flitcast ca` has written", path.display())]
    Ledger {
        /// The ledger.
        path: PathBuf,
        /// Which line.
        line: usize,
    },
    /// A file cannot be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A file cannot be written.
    #[error("{}: {source}", path.display())]
    Write {
        /// Which.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

/// Does it, and says on `out` what was done.
///
/// # Errors
///
/// All that is wrong with the command line, or what went wrong.
pub fn run(args: CaArgs, out: &mut dyn Write) -> Result<io::Result<()>, Vec<CaError>> {
    match args.what {
        What::Init(args) => init(&args, out),
        What::Issue(args) => issue(&args, out),
        What::Revoke(args) => revoke(&args, out),
    }
}

fn init(args: &InitArgs, out: &mut dyn Write) -> Result<io::Result<()>, Vec<CaError>> {
    let mut faults = Vec::new();
    check_days("--authority-days", args.authority_days, &mut faults);
    check_days("--days", args.days, &mut faults);
    let names = args.pes.map_or(Vec::new(), |pes| all(pes, &mut faults));
    let is_taken =
        std::fs::read_dir(&args.folder).is_ok_and(|mut entries| entries.next().is_some());
    if is_taken {
        faults.push(CaError::Taken(args.folder.clone()));
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    let founded = found(&args.folder, args.authority_days);
    let authority = founded.map_err(|fault| vec![fault])?;
    let issued = issue_all(&args.folder, &authority, &names, args.days);
    let until = issued.map_err(|fault| vec![fault])?;
    Ok(say(out, &args.folder, &names, until, authority.ends()))
}

/// Founds an authority in a folder that is not there yet, and issues certificates for the
/// coordinator and so many PEs; all for so many days.
///
/// # Errors
///
/// It cannot be done.
pub fn make(folder: &Path, pes: u32, days: u32) -> Result<(), CaError> {
    let authority = found(folder, days)?;
    let pes = (0..pes).map(|pe| Name::Pe(PeId(pe)));
    let names: Vec<Name> = std::iter::once(Name::Coordinator).chain(pes).collect();
    issue_all(folder, &authority, &names, days).map(drop)
}

fn issue(args: &IssueArgs, out: &mut dyn Write) -> Result<io::Result<()>, Vec<CaError>> {
    let mut faults = Vec::new();
    check_days("--days", args.days, &mut faults);
    let names = match args.pes {
        Some(pes) => all(pes, &mut faults),
        None => {
            let names = args.names.iter().map(|text| name(text));
            let names: Vec<_> = names
                .filter_map(|n| n.map_err(|f| faults.push(f)).ok())
                .collect();
            names
        }
    };
    if !faults.is_empty() {
        return Err(faults);
    }
    let issued = locked(&args.folder).and_then(|_lock| {
        let authority = authority_in(&args.folder)?;
        let until = issue_all(&args.folder, &authority, &names, args.days)?;
        Ok((until, authority.ends()))
    });
    let (until, ends) = issued.map_err(|fault| vec![fault])?;
    Ok(say(out, &args.folder, &names, until, ends))
}

fn check_days(option: &'static str, days: u32, faults: &mut Vec<CaError>) {
    if !(1..=MOST_DAYS).contains(&days) {
        faults.push(CaError::Days { option, days });
    }
}

/// The coordinator and so many PEs.
fn all(pes: u32, faults: &mut Vec<CaError>) -> Vec<Name> {
    if pes == 0 || pes as usize > MAX_PES {
        faults.push(CaError::Pes(pes));
        return Vec::new();
    }
    let pes = (0..pes).map(|pe| Name::Pe(PeId(pe)));
    std::iter::once(Name::Coordinator).chain(pes).collect()
}

fn name(text: &str) -> Result<Name, CaError> {
    let name = match text.strip_prefix(['p', 'P']) {
        Some(number) => number.parse().ok().map(|pe| Name::Pe(PeId(pe))),
        None => (text == "coordinator").then_some(Name::Coordinator),
    };
    name.ok_or_else(|| CaError::Nobody(text.chars().take(40).collect()))
}

fn found(folder: &Path, days: u32) -> Result<Authority, CaError> {
    let (authority, own) =
        Authority::found(Validity::of(days * DAY)).map_err(|source| CaError::Issue {
            name: "the authority".to_owned(),
            source,
        })?;
    std::fs::create_dir_all(folder).map_err(|source| CaError::Write {
        path: folder.to_owned(),
        source,
    })?;
    write(folder, &own, AUTHORITY_FILE, AUTHORITY_KEY_FILE)?;
    Ok(authority)
}

fn authority_in(folder: &Path) -> Result<Authority, CaError> {
    let path = folder.join(AUTHORITY_KEY_FILE);
    let key = private_key(&path)?;
    let key = KeyPair::try_from(&key).map_err(|_| SecurityError::Malformed {
        path,
        why: "it is no key of an authority that `flitcast ca init` has founded".to_owned(),
    })?;
    Ok(Authority::of_key(key, authority_ends(folder)?))
}

/// Nobody else issues or revokes there meanwhile.
fn locked(folder: &Path) -> Result<File, CaError> {
    let failed = |source| CaError::Read {
        path: folder.join(AUTHORITY_KEY_FILE),
        source,
    };
    let lock = File::open(folder.join(AUTHORITY_KEY_FILE)).map_err(failed)?;
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(lock),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(CaError::Busy(folder.to_owned())),
        Err(error) => Err(failed(error.into())),
    }
}

fn issue_all(
    folder: &Path,
    authority: &Authority,
    names: &[Name],
    days: u32,
) -> Result<SystemTime, CaError> {
    let mut until = authority.ends();
    for &name in names {
        let issued = authority.issue(name, Validity::of(days * DAY));
        let issued = issued.map_err(|source| CaError::Issue {
            name: name.to_string(),
            source,
        })?;
        until = issued.until;
        let serial = issued.serial.clone();
        ledger::note(
            folder,
            &Entry {
                name,
                serial,
                until,
            },
        )?;
        write(folder, &issued, &name.certificate_file(), &name.key_file())?;
        // What cannot be used is told now: a key that is not the certificate's, say.
        Identity::load(folder, name)?;
    }
    Ok(until)
}

/// Writes both files, the key first: nobody but their owner ever has it, and a certificate is
/// for all to see.
fn write(folder: &Path, issued: &Issued, certificate: &str, key: &str) -> Result<(), CaError> {
    put(folder, key, &issued.key.serialize_pem(), 0o600)?;
    put(folder, certificate, &issued.pem, 0o644)
}

/// Writes a file, whole or not at all.
fn put(folder: &Path, name: &str, text: &str, mode: u32) -> Result<(), CaError> {
    let path = folder.join(name);
    let written = tempfile::NamedTempFile::new_in(folder).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        // A temporary file is its owner's alone.
        rustix::fs::fchmod(file.as_file(), rustix::fs::Mode::from_raw_mode(mode))?;
        file.as_file().sync_all()?;
        Ok(file.persist(&path)?)
    });
    written
        .map(drop)
        .map_err(|source| CaError::Write { path, source })
}

fn say(
    out: &mut dyn Write,
    folder: &Path,
    names: &[Name],
    until: SystemTime,
    ends: SystemTime,
) -> io::Result<()> {
    let folder = folder.display();
    let (until, ends) = (
        humantime::format_rfc3339_seconds(until),
        humantime::format_rfc3339_seconds(ends),
    );
    match names {
        [] => writeln!(
            out,
            "an authority in {folder}; `flitcast ca issue {folder} --pes N` issues certificates"
        ),
        [one] => writeln!(
            out,
            "in {folder}: a certificate for {one}, good until {until}"
        ),
        [first, .., last] => writeln!(
            out,
            "in {folder}: certificates for {} from {first} to {last}, good until {until}",
            names.len()
        ),
    }?;
    writeln!(
        out,
        "the authority itself ends at {ends}, and all that it has issued"
    )
}
