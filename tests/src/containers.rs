//! The containers of `deploy/compose.yaml`, built and run as in `deploy/README.md`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::binary::of_cargo;
use crate::run::{begin, begin_within, run_program};
use crate::{Finished, Folder, Running, flitcast, scratch};

/// Time limit of each step except building: many times the usual time.
const LIMIT: Duration = Duration::from_secs(120);
const TARGET: &str = "x86_64-unknown-linux-gnu";
/// User id in the image.
const USER: u32 = 65532;

/// The addresses of `deploy/containers.toml` exist once.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Checks that containers can be run here.
fn check() {
    assert!(
        succeeds(&["docker", "info"]),
        "no Docker daemon answers: install Debian's docker.io and start it"
    );
    assert!(
        compose_program().is_some(),
        "there is no docker-compose and no `docker compose`: install Debian's docker-compose"
    );
}

fn succeeds(words: &[&str]) -> bool {
    let output = Command::new(words[0]).args(&words[1..]).output();
    output.is_ok_and(|output| output.status.success())
}

/// Returns `docker-compose`, or `docker compose`.
fn compose_program() -> Option<&'static [&'static str]> {
    static FOUND: LazyLock<Option<&'static [&'static str]>> = LazyLock::new(|| {
        let all: [&[&str]; 2] = [&["docker-compose"], &["docker", "compose"]];
        let mut all = all.into_iter();
        all.find(|words| succeeds(&[words, &["version"][..]].concat()))
    });
    *FOUND
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Builds the image `flitcast` as in `deploy/README.md`, once, and returns the size of the binary.
fn image() -> u64 {
    static BUILT: LazyLock<u64> = LazyLock::new(|| {
        let script = root().join("deploy/build-image");
        let mut build = Command::new(script);
        for name in of_cargo() {
            build.env_remove(name);
        }
        run_program(&mut build).ok();
        let binary = root().join("target").join(TARGET).join("image/flitcast");
        std::fs::metadata(binary).expect("it was built").len()
    });
    *BUILT
}

/// The containers of all PEs.
pub struct Containers {
    dir: Folder,
    project: String,
    /// Bytes of the binary in the image.
    pub image_bytes: u64,
    _alone: MutexGuard<'static, ()>,
}

impl Containers {
    /// Creates the folders and credentials of all PEs, without starting anything.
    #[track_caller]
    pub fn prepare() -> Containers {
        check();
        let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let image_bytes = image();
        let dir = scratch();
        dir.run("ca init @/credentials --pes 8").ok();
        for pe in 0..8 {
            std::fs::create_dir(dir.join(format!("p{pe}"))).expect("it can be");
        }
        let containers = Containers {
            // The name is the same in each run: the addresses exist once, and each run removes what
            // a killed run has left.
            project: "flitcast-test".to_owned(),
            dir,
            image_bytes,
            _alone: alone,
        };
        if rustix::process::geteuid().is_root() {
            give_away(containers.dir.path());
        }
        // Removes the containers of an earlier run that was killed.
        containers.down();
        containers
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Returns `deploy/compose.toml`, in which commands on this machine start the PEs.
    #[track_caller]
    pub fn cluster_file(&self) -> PathBuf {
        let deploy = root().join("deploy");
        let text = std::fs::read_to_string(deploy.join("compose.toml")).expect("it is there");
        let (file, project) = (deploy.join("compose.yaml"), &self.project);
        let file = format!("{file:?}\noptions = [\"--project-name={project}\"]");
        let credentials = format!("{:?}", self.path("credentials"));
        let here = [
            ("\"compose.yaml\"", file),
            ("\"../out/credentials\"", credentials),
        ];
        let text = here.into_iter().fold(text, |text, (there, here)| {
            assert!(text.contains(there), "{text}");
            text.replace(there, &here)
        });
        self.dir.put("compose.toml", text)
    }

    /// Runs a command on this machine that must succeed.
    #[track_caller]
    pub fn commanded(&self, line: &str) -> Finished {
        let mut command = Command::new(flitcast());
        command
            .args(line.split_whitespace())
            .arg("--cluster")
            .arg(self.cluster_file());
        command.envs(self.environment());
        begin(command).finish().ok()
    }

    /// Returns the variables for `compose.yaml`.
    fn environment(&self) -> Vec<(&'static str, OsString)> {
        let mut all = vec![("FLITCAST_OUT", self.dir.as_os_str().to_owned())];
        if !rustix::process::geteuid().is_root() {
            let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
            let user = format!("{}:{}", user.as_raw(), group.as_raw());
            all.push(("FLITCAST_USER", user.into()));
        }
        all
    }

    /// Returns compose with these words.
    #[track_caller]
    fn compose(&self, words: &[&str]) -> Command {
        let program = compose_program().expect("it was looked for");
        let mut command = Command::new(program[0]);
        command.args(&program[1..]);
        let file = root().join("deploy/compose.yaml");
        command
            .arg("-f")
            .arg(file)
            .args(["-p", &self.project])
            .args(words);
        command.envs(self.environment()).stdin(Stdio::null());
        command
    }

    /// Runs compose, which must succeed.
    #[track_caller]
    pub fn done(&self, words: &[&str]) -> String {
        output_of(&run_program(&mut self.compose(words)).ok())
    }

    pub fn container(&self, pe: u32) -> String {
        let found = run_program(&mut self.compose(&["ps", "-q", &format!("p{pe}")]));
        let id = found.stdout.trim();
        assert!(
            !id.is_empty(),
            "no container of P{pe}: {}",
            output_of(&found)
        );
        id.to_owned()
    }

    /// Returns the name of one of its networks.
    pub fn network(&self, name: &str) -> String {
        format!("{}_{name}", self.project)
    }

    /// Starts a command of the coordinator, while the PEs run.
    #[track_caller]
    pub fn command(&self, line: &str) -> Coordinated {
        let mut words = vec!["run", "--rm", "-T", "--no-deps", "gather"];
        words.extend(line.split_whitespace());
        words.extend("--cluster /cluster.toml --credentials /credentials".split(' '));
        Coordinated(begin_within(LIMIT, self.compose(&words)))
    }

    /// Removes everything, except a network that the daemon refuses to remove although no container
    /// is left: sometimes it counts endpoints incorrectly until it is restarted (moby 20.10). The
    /// next run reuses that network.
    fn down(&self) {
        let mut down = self.compose(&["down", "--remove-orphans", "--timeout", "2"]);
        let down = run_program(&mut down);
        if down.code == Some(0) || thread::panicking() {
            return;
        }
        let output = output_of(&down);
        let label = format!("label=com.docker.compose.project={}", self.project);
        let left = docker(&["ps", "--all", "--quiet", "--filter", &label]);
        let is_miscounted = output.contains("has active endpoints");
        assert!(is_miscounted && left.trim().is_empty(), "{output}\n{left}");
    }
}

impl Drop for Containers {
    fn drop(&mut self) {
        self.down();
    }
}

/// Runs `docker` with these words, which must succeed.
#[track_caller]
pub fn docker(words: &[&str]) -> String {
    output_of(&run_program(Command::new("docker").args(words)).ok())
}

fn output_of(finished: &Finished) -> String {
    format!("{}{}", finished.stdout, finished.stderr)
}

/// Changes the owner to the user of the image, who does not exist on this machine.
fn give_away(path: &Path) {
    std::os::unix::fs::chown(path, Some(USER), Some(USER)).expect("root can");
    if path.is_dir() {
        for entry in std::fs::read_dir(path).expect("it can be listed") {
            give_away(&entry.expect("it can be listed").path());
        }
    }
}

/// A running command in the coordinator's container.
pub struct Coordinated(Running);

impl Coordinated {
    /// Waits for a line on stderr that contains `part`.
    #[track_caller]
    pub fn wait_for(&mut self, part: &str) {
        self.0.wait_for(&[part]);
    }

    /// Waits for the end; returns the exit status and all of stderr.
    #[track_caller]
    pub fn finish(mut self) -> (Option<i32>, String) {
        let finished = self.0.coordinator_ends();
        (finished.code, finished.stderr)
    }
}
