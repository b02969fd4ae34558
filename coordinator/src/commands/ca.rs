//! `flitcast ca`: creates an authority in a folder, and issues and revokes certificates there.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{anyhow, ensure};
use clap::{Args, Subcommand};
use flitcast_node::dates;
use flitcast_node::security::{Name, REVOKED_FILE, Revoked, revoked, serial};
use flitcast_proto::PeId;
use flitcast_proto::tree::MAX_PES;

use flitcast_cluster::site::ca::{authority_in, found, issue_all, locked, name, put, read};
use flitcast_cluster::text::faults::Faults;
use flitcast_cluster::text::phrases;

/// Maximum validity in days, ten years: a longer period would be forgotten.
const MOST_DAYS: u32 = 3660;

const EXAMPLES: &str = "\
Examples:
  flitcast ca init credentials --pes 8
  flitcast scatter --cluster cluster.toml --credentials credentials --size 1MiB
  flitcast ca issue credentials p3 coordinator
  flitcast ca revoke credentials p3";

const REVOKE_EXAMPLES: &str = "\
Example: the key of P3 has got into other hands.
  flitcast ca revoke credentials p3
  flitcast ca issue credentials p3

revoked.pem lists what is revoked, and belongs beside ca.pem on every host. It
is read by each command, by each process when it is started, and by one that
joins and stays each time it joins.";

/// Arguments of `flitcast ca`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct CaArgs {
    #[command(subcommand)]
    what: CaCommand,
}

#[derive(Debug, Subcommand)]
enum CaCommand {
    /// Create an authority in a new folder, and certificates for a cluster
    Init(InitArgs),
    /// Issue certificates. Older certificates of the same names stay valid until they expire or are
    /// revoked
    Issue(IssueArgs),
    /// Revoke all certificates of these names
    Revoke(RevokeArgs),
}

#[derive(Debug, Args)]
struct InitArgs {
    /// Folder that does not exist or is empty
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Issue certificates for the coordinator and N PEs from P0 on
    #[arg(long, value_name = "N")]
    pes: Option<u32>,
    /// Validity of the authority, and with it of all certificates that it issues
    #[arg(long, value_name = "DAYS", default_value_t = 3650)]
    authority_days: u32,
    /// Validity of the certificates: at most that of the authority
    #[arg(long, value_name = "DAYS", default_value_t = 90)]
    days: u32,
}

#[derive(Debug, Args)]
struct IssueArgs {
    /// Folder of the authority
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Names of the certificates: coordinator, p0, p1 and so on
    #[arg(value_name = "NAME", required_unless_present = "pes")]
    names: Vec<String>,
    /// Issue certificates for the coordinator and N PEs from P0 on
    #[arg(long, value_name = "N", conflicts_with = "names")]
    pes: Option<u32>,
    /// Validity of the certificates: at most that of the authority
    #[arg(long, value_name = "DAYS", default_value_t = 90)]
    days: u32,
}

#[derive(Debug, Args)]
#[command(after_help = REVOKE_EXAMPLES)]
struct RevokeArgs {
    /// Folder of the authority
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Names of the certificates: coordinator, p0, p1 and so on
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,
}

pub fn run(args: CaArgs, out: &mut dyn Write) -> Result<io::Result<()>, Faults> {
    match args.what {
        CaCommand::Init(args) => init(&args, out),
        CaCommand::Issue(args) => issue(&args, out),
        CaCommand::Revoke(args) => revoke(&args, out),
    }
}

fn init(args: &InitArgs, out: &mut dyn Write) -> Result<io::Result<()>, Faults> {
    let mut faults = Faults::default();
    check_days("--authority-days", args.authority_days, &mut faults);
    check_days("--days", args.days, &mut faults);
    let names = args.pes.map_or(Vec::new(), |pes| all(pes, &mut faults));
    let folder = args.folder.display();
    if std::fs::read_dir(&args.folder).is_ok_and(|mut entries| entries.next().is_some()) {
        let why = "the folder is not empty; create an authority in an empty folder";
        faults.add(anyhow!("{folder}: {why}"));
    }
    faults.check()?;
    let authority = found(&args.folder, args.authority_days)?;
    let until = issue_all(&args.folder, &authority, &names, args.days)?;
    Ok(report(out, &args.folder, &names, until, authority.ends()))
}

fn issue(args: &IssueArgs, out: &mut dyn Write) -> Result<io::Result<()>, Faults> {
    let mut faults = Faults::default();
    check_days("--days", args.days, &mut faults);
    let names = match args.pes {
        Some(pes) => all(pes, &mut faults),
        None => named(&args.names, &mut faults),
    };
    faults.check()?;
    let lock = locked(&args.folder)?;
    let authority = authority_in(&args.folder)?;
    let until = issue_all(&args.folder, &authority, &names, args.days)?;
    drop(lock);
    Ok(report(out, &args.folder, &names, until, authority.ends()))
}

fn revoke(args: &RevokeArgs, out: &mut dyn Write) -> Result<io::Result<()>, Faults> {
    let mut faults = Faults::default();
    let names = named(&args.names, &mut faults);
    faults.check()?;
    let listed = revoke_all(&args.folder, &names)?;
    let (names, folder) = (phrases::names(&names), args.folder.display());
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
        let had = issued.iter();
        let had = had.filter(|entry| entry.name == name && entry.until > now);
        let had = had.map(|entry| entry.serial.clone());
        // The second is needed for an authority that is older than its ledger.
        let serials: Vec<Vec<u8>> = had.chain(serial(folder, name)?).collect();
        ensure!(
            !serials.is_empty(),
            "{name} has no certificate that was issued here and is still valid"
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

fn check_days(option: &str, days: u32, faults: &mut Faults) {
    if !(1..=MOST_DAYS).contains(&days) {
        faults.add(anyhow!("{option} {days}: from 1 to {MOST_DAYS}"));
    }
}

fn named(texts: &[String], faults: &mut Faults) -> Vec<Name> {
    let names = texts.iter().map(|text| name(text));
    names.filter_map(|name| faults.take(name)).collect()
}

fn all(pes: u32, faults: &mut Faults) -> Vec<Name> {
    if pes == 0 || pes as usize > MAX_PES {
        faults.0.push(anyhow!("--pes {pes}: from 1 to {MAX_PES}"));
        return Vec::new();
    }
    let pes = (0..pes).map(|pe| Name::Pe(PeId(pe)));
    std::iter::once(Name::Coordinator).chain(pes).collect()
}

fn report(
    out: &mut dyn Write,
    folder: &Path,
    names: &[Name],
    until: SystemTime,
    ends: SystemTime,
) -> io::Result<()> {
    let folder = folder.display();
    let [until, ends] = [until, ends].map(dates::text);
    match names {
        [] => writeln!(
            out,
            "an authority in {folder}; `flitcast ca issue {folder} --pes N` issues certificates"
        ),
        [one] => writeln!(
            out,
            "in {folder}: a certificate for {one}, valid until {until}"
        ),
        [first, .., last] => writeln!(
            out,
            "in {folder}: certificates for {} from {first} to {last}, valid until {until}",
            names.len()
        ),
    }?;
    writeln!(
        out,
        "the authority itself is valid until {ends}, and all that it has issued at most as long"
    )
}
