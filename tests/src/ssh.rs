//! Hosts with ssh servers on this machine: each has a network namespace, an address, an OpenSSH
//! server and a separate home of root. Needs root, `ip` and `sshd`.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::{FlockOperation, flock};
use rustix::process::Signal;

use crate::lab::namespaces;
use crate::processes::{Process, eventually, process_of, until};
use crate::run::{begin, run_program};
use crate::{Folder, Running, flitcast, scratch};

/// Address of this machine in the network of the hosts.
const COORDINATOR: &str = "10.118.0.254";

/// The hosts have the same names and addresses each time.
static TURN: Mutex<()> = Mutex::new(());

/// Hosts that are up. Dropping them takes them down, once no process runs on them.
pub struct Hosts {
    dir: Folder,
    servers: Vec<Option<Child>>,
    _locked: File,
    _turn: MutexGuard<'static, ()>,
}

impl Hosts {
    /// Starts the hosts `fcssh0`, `fcssh1` and so on.
    #[track_caller]
    pub fn up(count: usize) -> Hosts {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let lock = std::env::temp_dir().join("flitcast-ssh-tests.lock");
        let locked = File::create(lock).expect("the temporary directory can be written to");
        flock(&locked, FlockOperation::LockExclusive).expect("it is a file of this machine");
        // Removes what a killed run has left.
        remove();
        let mut hosts = Hosts {
            dir: scratch(),
            servers: Vec::new(),
            _locked: locked,
            _turn: turn,
        };
        hosts.write_keys();
        ip(&format!(
            "netns add fcssh-switch
            -n fcssh-switch link add bridge type bridge stp_state 0 mcast_snooping 0
            -n fcssh-switch link set bridge up
            link add fcssh type veth peer name coordinator netns fcssh-switch
            address add {COORDINATOR}/24 dev fcssh
            link set fcssh up
            -n fcssh-switch link set coordinator master bridge up"
        ));
        for host in 0..count {
            let (name, address) = (format!("fcssh{host}"), address(host));
            ip(&format!(
                "netns add {name}
                -n {name} link set lo up
                -n fcssh-switch link add {name} type veth peer name eth0 netns {name}
                -n fcssh-switch link set {name} master bridge up
                -n {name} address add {address}/24 dev eth0
                -n {name} link set eth0 up"
            ));
            fs::create_dir(hosts.home(host)).expect("it can be made");
            hosts.servers.push(None);
            hosts.serve(host);
        }
        hosts
    }

    /// Returns a path that is the same here and on all hosts.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Returns the path on this machine of a host's `/root`.
    pub fn home(&self, host: usize) -> PathBuf {
        self.path(&format!("home{host}"))
    }

    /// Writes the keys of all servers and of their only user, and the configuration of the servers.
    fn write_keys(&self) {
        for name in ["host_key", "user_key", "other_key"] {
            let mut command = Command::new("ssh-keygen");
            command.args(["-q", "-t", "ed25519", "-N", "", "-f"]);
            done(command.arg(self.path(name)));
        }
        let dir = self.dir.display();
        let server = format!(
            "HostKey {dir}/host_key\nAuthorizedKeysFile {dir}/user_key.pub\nStrictModes no\n\
             UsePAM no\nPidFile none\nPasswordAuthentication no\n"
        );
        self.dir.put("sshd_config", server);
        // If root's password were locked, its keys would not be accepted.
        self.dir.put("shadow", "root:*:19000:0:99999:7:::\n");
        let key = self.dir.read("host_key.pub");
        self.dir.put("known_hosts", format!("10.118.0.* {key}"));
    }

    /// Writes a cluster file with a PE on each of these hosts, P0 first, each below the PE with
    /// half its number; `launch` has further keys of `[launch]`. A small copy of the program is
    /// copied to the hosts, unless it names another one.
    pub fn cluster(&self, on: &[usize], launch: &str) -> PathBuf {
        self.cluster_with_key(on, launch, "user_key", |pe| pe / 2)
    }

    /// Writes a cluster file in which each PE is below the one before.
    pub fn cluster_in_line(&self, on: &[usize], launch: &str) -> PathBuf {
        self.cluster_with_key(on, launch, "user_key", |pe| pe - 1)
    }

    /// Writes a cluster file for a user with another key.
    pub fn cluster_with_another_key(&self, on: &[usize]) -> PathBuf {
        self.cluster_with_key(on, "", "other_key", |pe| pe / 2)
    }

    fn cluster_with_key(
        &self,
        on: &[usize],
        launch: &str,
        key: &str,
        parent: impl Fn(usize) -> usize,
    ) -> PathBuf {
        let dir = self.dir.display();
        let hosts = 0..self.servers.len();
        let hosts = hosts.map(|host| format!("Host fcssh{host}\n  HostName {}\n", address(host)));
        let config = format!(
            "{}Host *\n  User root\n  IdentityFile {dir}/{key}\n  IdentitiesOnly yes\n  \
             UserKnownHostsFile {dir}/known_hosts\n",
            hosts.collect::<String>()
        );
        self.dir.put("ssh_config", config);
        let binary = match launch.contains("binary = ") {
            true => String::new(),
            false => self.lean(),
        };
        let mut text = format!(
            "coordinator = '{COORDINATOR}'\n[launch]\nkind = 'ssh'\nconfig = 'ssh_config'\n{binary}\n{launch}\n"
        );
        for (pe, &host) in on.iter().enumerate() {
            let address = address(host);
            text.push_str(&format!(
                "[[pe]]\nname = 'pe {pe}'\nssh = 'fcssh{host}'\naddress = '{address}'\n"
            ));
            if pe > 0 {
                text.push_str(&format!("parent = 'pe {}'\n", parent(pe)));
            }
        }
        self.dir.put("cluster.toml", text)
    }

    /// Creates a small copy of the program, without debug information, and returns its key for
    /// `[launch]`. `strip` is part of the linker's package.
    fn lean(&self) -> String {
        let lean = self.path("flitcast");
        if !lean.exists() {
            let mut command = Command::new("strip");
            done(command.arg("-o").args([lean.as_path(), flitcast()]));
        }
        format!("binary = '{}'", lean.display())
    }

    /// Starts a host's server and waits until it listens.
    #[track_caller]
    pub fn serve(&mut self, host: usize) {
        let (home, dir) = (self.home(host), self.dir.path());
        // A separate view of the file system: its own /root and its own /run.
        let script = "mount --bind \"$1\" /root && mount --bind \"$2/shadow\" /etc/shadow \
             && mount -t tmpfs tmpfs /run && mkdir /run/sshd \
             && exec /usr/sbin/sshd -D -e -f \"$2/sshd_config\"";
        let log = self.path(&format!("sshd{host}.log"));
        let stderr = File::create(&log).expect("it can be made");
        let mut command = Command::new("ip");
        command
            .args(["netns", "exec", &format!("fcssh{host}")])
            .args(["unshare", "--mount", "sh", "-c", script, "sh"])
            .args([&home, dir])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(stderr);
        self.servers[host] = Some(command.spawn().expect("there is `ip`"));
        eventually("an ssh server listens", || {
            let text = fs::read_to_string(&log).unwrap_or_default();
            let server = self.servers[host].as_mut()?;
            let ended = server.try_wait().expect("it is our child");
            assert!(ended.is_none(), "no ssh server: {text}");
            text.contains("Server listening on 0.0.0.0").then_some(())
        });
    }

    /// Limits the sending rate of all hosts, in the notation of `tc`, so that there is time for a
    /// fault.
    pub fn send_at(&self, rate: &str) {
        for host in 0..self.servers.len() {
            let queue = format!("root tbf rate {rate} burst 32kb latency 100ms");
            let line = format!("-n fcssh{host} qdisc add dev eth0 {queue}");
            done(Command::new("tc").args(line.split(' ')));
        }
    }

    /// Starts `flitcast` with the files of a user on a host: the command sees that host's home.
    #[track_caller]
    pub fn command_on(&self, host: usize, words: &[String]) -> Running {
        let mut command = Command::new("unshare");
        let script = "mount --bind \"$0\" /root && exec \"$@\"";
        command.args(["--mount", "sh", "-c", script]);
        command.arg(self.home(host)).arg(flitcast()).args(words);
        begin(command)
    }

    /// Kills a host's server and all its connections.
    pub fn stop_serving(&mut self, host: usize) {
        if let Some(mut server) = self.servers[host].take() {
            let _ = server.kill();
            let _ = server.wait();
        }
        for process in processes_on(host) {
            if process.arguments[0].starts_with("sshd") {
                process.signal(Signal::KILL);
            }
        }
    }

    /// Returns the processes on the hosts that are not ssh servers.
    pub fn running(&self) -> Vec<Process> {
        let all = (0..self.servers.len()).flat_map(processes_on);
        let is_server = |line: &str| line.starts_with("sshd") || line.contains("/usr/sbin/sshd");
        all.filter(|process| !is_server(&process.arguments.join(" ")))
            .collect()
    }

    /// Waits until no process runs on the hosts any more.
    #[track_caller]
    pub fn are_quiet(&self) {
        until("nothing runs on the hosts", || self.running().is_empty());
    }

    #[track_caller]
    pub fn pe(&self, pe: u32) -> Process {
        process_of(self.running(), pe)
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.are_quiet();
        }
        remove();
        for server in self.servers.iter_mut().flatten() {
            let _ = server.wait();
        }
    }
}

pub fn address(host: usize) -> String {
    format!("10.118.0.{}", host + 1)
}

/// Returns all processes of a host, by its namespace.
fn processes_on(host: usize) -> Vec<Process> {
    processes_in(&format!("fcssh{host}"))
}

fn processes_in(namespace: &str) -> Vec<Process> {
    let pids = run_program(Command::new("ip").args(["netns", "pids", namespace])).stdout;
    let pids = pids.lines().filter_map(|line| line.trim().parse().ok());
    let all = pids.filter_map(Process::find);
    // A process that has just ended has no command line.
    all.filter(|process| process.arguments != [""]).collect()
}

/// Removes all namespaces of these hosts and their processes.
fn remove() {
    for namespace in namespaces() {
        if namespace.starts_with("fcssh") {
            for process in processes_in(&namespace) {
                process.signal(Signal::KILL);
            }
            run_program(Command::new("ip").args(["netns", "del", &namespace]));
        }
    }
    run_program(Command::new("ip").args(["link", "del", "fcssh"]));
}

/// Runs `ip` with the words of each line.
#[track_caller]
fn ip(lines: &str) {
    for line in lines.lines() {
        done(Command::new("ip").args(line.split_whitespace()));
    }
}

#[track_caller]
fn done(command: &mut Command) {
    run_program(command).ok();
}

/// Returns the only copy of the program on a host, if there is one.
pub fn program(home: &Path, directory: &str) -> Option<PathBuf> {
    let entries = fs::read_dir(home.join(directory)).ok()?;
    let mut programs = entries.map(|entry| entry.expect("it can be listed").path());
    let first = programs.next();
    assert_eq!(programs.next(), None, "and no other");
    first
}
