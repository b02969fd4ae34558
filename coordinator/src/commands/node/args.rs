//! The command lines of `flitcast node` and `flitcast health`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use flitcast_node::limits::Timeouts;

use flitcast_cluster::options::timeouts;

/// Arguments of `flitcast node`.
#[derive(Debug, Args)]
pub struct NodeArgs {
    /// The PE to run; in a Slurm job SLURM_PROCID defines it.
    #[arg(long, value_name = "I", required_unless_present = "join")]
    pub pe: Option<u32>,
    /// Join the command at this address, now or later: the `coordinator` of a cluster file
    /// with [launch] kind = "join". Or `slurm`, under srun: a command with --cluster slurm in the
    /// script of the job (slurm:PORT, if both use it).
    #[arg(
        long,
        value_name = "HOST:PORT",
        help_heading = "Joining",
        conflicts_with_all = ["coordinator", "timeouts"]
    )]
    pub join: Option<String>,
    /// Time to try until the coordinator listens [default: 60s].
    #[arg(
        long,
        value_name = "TIME",
        help_heading = "Joining",
        requires = "join",
        conflicts_with = "stay"
    )]
    pub wait: Option<String>,
    /// Join the next command when one has ended. The process runs until it is stopped.
    #[arg(long, help_heading = "Joining", requires = "join")]
    pub stay: bool,
    /// Run the commands of `flitcast map`: a holder of the coordinator's certificate then has this
    /// user's rights on this host.
    #[arg(long, help_heading = "Joining", requires = "join")]
    pub commands: bool,
    /// Read and write files below this folder, as this user: a holder of
    /// the coordinator's certificate can then read, write and replace its files. May be given several
    /// times [default: none, synthetic messages only].
    #[arg(long, value_name = "DIR", help_heading = "Joining", requires = "join")]
    pub files: Vec<PathBuf>,
    /// Show no certificate, and require none; the command needs its --insecure as well. The PE then
    /// sends and receives synthetic messages only: it reads and writes no files and runs no commands.
    #[arg(
        long,
        help_heading = "Joining",
        requires = "join",
        conflicts_with = "credentials"
    )]
    pub insecure: bool,
    /// With --join slurm: the PE of each task, in turn [default: the task's number].
    #[arg(
        long,
        value_name = "I,J,..",
        hide = true,
        requires = "join",
        value_delimiter = ','
    )]
    pub pes: Vec<u32>,
    /// Run under a daemon: the credentials are on standard input, and the process ends when standard
    /// input ends.
    #[arg(long, hide = true, requires = "stay", conflicts_with = "insecure")]
    pub kept: bool,
    /// File for `flitcast health`, to which the PE writes its state every second.
    #[arg(long, value_name = "FILE", help_heading = "Joining", requires = "join")]
    pub health: Option<PathBuf>,
    /// The address at which the PE's children reach it [default: the address that the cluster file
    /// gives, and any port].
    #[arg(long, value_name = "ADDR:PORT")]
    pub listen: Option<SocketAddr>,
    /// Serve Prometheus metrics at http://ADDR/metrics while the command runs, for example at
    /// 127.0.0.1:9464; unencrypted, without authentication.
    #[arg(long, value_name = "ADDR:PORT", help_heading = "Seeing it run")]
    pub metrics: Option<SocketAddr>,
    /// The folder with ca.pem and its certificate and key, p3.pem and p3.key for P3 (see
    /// `flitcast ca`).
    #[arg(long, value_name = "DIR")]
    pub credentials: Option<PathBuf>,
    /// Address of the coordinator that has started this process.
    #[arg(
        long,
        value_name = "ADDR",
        hide = true,
        required_unless_present = "join"
    )]
    pub coordinator: Option<SocketAddr>,
    /// Time limits, as in `flitcast scatter --timeouts`; a PE that joins receives them from the
    /// coordinator.
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
    timeouts::parse(text).map_err(|faults| faults.join("; "))
}
