//! A cluster whose PEs the test starts: they join, each on a separate address.

use std::net::IpAddr;
use std::path::PathBuf;
use std::process::Command;

use rustix::process::Signal;

use crate::net::own_net;

use crate::run::begin;
use crate::{Folder, Running, flitcast, scratch, start};

/// A cluster file of PEs that join, and their credentials.
pub struct Joining {
    pub dir: Folder,
    net: String,
    /// Parent of each PE except P0.
    parents: Vec<u32>,
}

impl Joining {
    /// Creates a cluster of P0 and a PE below each of these parents.
    #[track_caller]
    pub fn new(parents: &[u32], wait: &str) -> Joining {
        let joining = Joining {
            dir: scratch(),
            net: own_net(),
            parents: parents.to_vec(),
        };
        let mut text = format!(
            "name = \"joined\"\ncoordinator = \"{}\"\n[launch]\nkind = \"join\"\nwait = \"{wait}\"\n",
            joining.at()
        );
        for pe in 0..=parents.len() {
            let address = format!("{}.{}", joining.net, pe + 1);
            text += &format!("[[pe]]\nname = \"h{pe}\"\naddress = \"{address}\"\n");
            if pe > 0 {
                text += &format!("parent = \"h{}\"\n", parents[pe - 1]);
            }
        }
        joining.dir.put("cluster.toml", text);
        joining.found("ca");
        joining
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Returns the address with this last number: P_i has the one that ends with i + 1, and
    /// addresses from 101 on are unused.
    pub fn address(&self, host: u8) -> IpAddr {
        let address = format!("{}.{host}", self.net);
        address.parse().expect("it is one")
    }

    /// Makes P`pe` connect to its parent at another address, at which the test listens.
    pub fn reroute(&self, pe: u32, parent_address: IpAddr) {
        let text = self.dir.read("cluster.toml");
        let parent = format!("parent = \"h{}\"\n", self.parents[pe as usize - 1]);
        let name = format!("name = \"h{pe}\"");
        let (before, own) = text.split_once(&name).expect("it is there");
        let way = format!("{parent}parent_address = \"{parent_address}\"\n");
        let own = own.replacen(&parent, &way, 1);
        self.dir.put("cluster.toml", format!("{before}{name}{own}"));
    }

    /// Returns the coordinator's listen address. Coordinators in Slurm jobs listen on port 7117 of all
    /// addresses, so this is another port.
    pub fn at(&self) -> String {
        format!("{}.100:7116", self.net)
    }

    /// Creates the credentials of an authority.
    #[track_caller]
    pub fn found(&self, name: &str) {
        let pes = self.parents.len() + 1;
        self.dir.run(&format!("ca init @/{name} --pes {pes}")).ok();
    }

    fn words(&self, line: &str) -> Vec<String> {
        self.dir.words(&line.replace("DIR", "@"))
    }

    /// Starts a command on the cluster; `DIR` is its folder.
    #[track_caller]
    pub fn command(&self, line: &str) -> Running {
        start(self.words(&format!("{line} --cluster DIR/cluster.toml")))
    }

    /// Starts a command with the credentials.
    #[track_caller]
    pub fn guarded(&self, line: &str) -> Running {
        self.command(&format!("{line} --credentials DIR/ca"))
    }

    /// Starts a PE that joins.
    #[track_caller]
    pub fn node(&self, pe: u32, line: &str) -> Running {
        let at = self.at();
        start(self.words(&format!("node --pe {pe} --join {at} {line}")))
    }

    /// Starts a PE with separate files, as on another host: only this PE sees `host3/name` at the
    /// path `name`. Needs root.
    #[track_caller]
    pub fn node_apart(&self, pe: u32, name: &str, line: &str) -> Running {
        let (own, shown) = (self.path(&format!("host{pe}/{name}")), self.path(name));
        for folder in [&own, &shown] {
            std::fs::create_dir_all(folder).expect("it can be made");
        }
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c"]);
        command.arg("mount --bind \"$0\" \"$1\" && shift && exec \"$@\"");
        command.args([&own, &shown]).arg(flitcast());
        let at = self.at();
        let line = format!("node --pe {pe} --join {at} --credentials DIR/ca --files DIR {line}");
        command.args(self.words(&line));
        begin(command)
    }

    /// Starts all of them, with their credentials and the cluster's folder lent; `{pe}` is each one's number.
    #[track_caller]
    pub fn nodes(&self, line: &str) -> Vec<Running> {
        let pes = 0..=self.parents.len() as u32;
        let start = |pe: u32| {
            let line = line.replace("{pe}", &pe.to_string());
            self.node(pe, &format!("--credentials DIR/ca --files DIR {line}"))
        };
        pes.map(start).collect()
    }
}

/// Ends processes that stay, by SIGTERM; their exit status must be 0.
#[track_caller]
pub fn dismiss(nodes: Vec<Running>) {
    for node in &nodes {
        node.signal(Signal::TERM);
    }
    leave(nodes);
}

/// Waits until processes that do not stay have left.
#[track_caller]
pub fn leave(nodes: impl IntoIterator<Item = Running>) {
    for node in nodes {
        node.finish().ok();
    }
}
