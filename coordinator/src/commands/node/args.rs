//! The command lines of `flitcast node` and `flitcast health` as they are typed.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use flitcast_node::limits::Timeouts;

use crate::options::timeouts;

/// Arguments of `flitcast node`.
#[derive(Debug, Args)]
pub struct NodeArgs {
    /// Which PE to play; of a job of Slurm, SLURM_PROCID says it.
    #[arg(long, value_name = "I", required_unless_present = "join")]
    pub pe: Option<u32>,
    /// Join the command that listens there, or will: the `coordinator` of a cluster file with
    /// [launch] kind = "join". Or `slurm`, under srun: a command with --cluster slurm in the
    /// script of the job (slurm:PORT, if both say so).
    #[arg(
        long,
        value_name = "HOST:PORT",
        help_heading = "Joining",
        conflicts_with_all = ["coordinator", "timeouts"]
    )]
    pub join: Option<String>,
    /// How long to try until the coordinator is there [default: 60s].
    #[arg(
        long,
        value_name = "TIME",
        help_heading = "Joining",
        requires = "join",
        conflicts_with = "stay"
    )]
    pub wait: Option<String>,
    /// Join the next command when one is over, until this is stopped.
    #[arg(long, help_heading = "Joining", requires = "join")]
    pub stay: bool,
    /// Run the commands of `flitcast map`: whoever has the coordinator's certificate then has
    /// this user's rights on this host.
    #[arg(long, help_heading = "Joining", requires = "join")]
    pub commands: bool,
    /// Show no certificate, and ask for none; the command needs its --insecure as well. The PE
    /// then plays synthetic messages only: it reads and writes no files and runs no commands.
    #[arg(
        long,
        help_heading = "Joining",
        requires = "join",
        conflicts_with = "credentials"
    )]
    pub insecure: bool,
    /// With --join slurm: which PE each task plays, in turn; else the one of its number.
    #[arg(
        long,
        value_name = "I,J,..",
        hide = true,
        requires = "join",
        value_delimiter = ','
    )]
    pub pes: Vec<u32>,
    /// Who starts it keeps it: what makes it one of the cluster is on its standard input, and
    /// when that ends, it leaves.
    #[arg(long, hide = true, requires = "stay", conflicts_with = "insecure")]
    pub kept: bool,
    /// Say every second in this file what the PE does, for `flitcast health`.
    #[arg(long, value_name = "FILE", help_heading = "Joining", requires = "join")]
    pub health: Option<PathBuf>,
    /// Where the PE's children reach it [default: the address that the cluster file gives,
    /// and any port].
    #[arg(long, value_name = "ADDR:PORT")]
    pub listen: Option<SocketAddr>,
    /// Tell what is counted at http://ADDR/metrics, for Prometheus, as long as this runs; in
    /// the clear, to anybody who reaches the address. 127.0.0.1:9464, say.
    #[arg(long, value_name = "ADDR:PORT", help_heading = "Seeing it run")]
    pub metrics: Option<SocketAddr>,
    /// The folder with ca.pem and its certificate and key, p3.pem and p3.key for P3 (see
    /// `flitcast ca`).
    #[arg(long, value_name = "DIR")]
    pub credentials: Option<PathBuf>,
    /// Where the coordinator listens that has started this process.
    #[arg(
        long,
        value_name = "ADDR",
        hide = true,
        required_unless_present = "join"
    )]
    pub coordinator: Option<SocketAddr>,
    /// How long to wait for what, as in `flitcast scatter --timeouts`; who joins is told.
    #[arg(long, value_name = "TIMES", hide = true, value_parser = parse_timeouts)]
    pub timeouts: Option<Timeouts>,
}

/// Arguments of `flitcast health`.
#[derive(Debug, Args)]
pub struct HealthArgs {
    /// The file that a `flitcast node --join .. --health FILE` writes.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

fn parse_timeouts(text: &str) -> Result<Timeouts, String> {
    timeouts::parse(text).map_err(|faults| {
        let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
        faults.join("; ")
    })
}
