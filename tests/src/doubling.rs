//! A network that duplicates frames: every PE of a cluster is reached through a listener of the
//! test, which forwards each frame once or twice. The test also forwards the PE's registration to
//! the coordinator, so that the PE's children connect to that listener.

use std::io::{self, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

use flitcast_proto::seeded::SplitMix64;
use flitcast_proto::wire::control::FromPe;

use crate::Folder;
use crate::edge::{framed, read_body};
use crate::impostor::spoken;

/// Percentage of frames that are duplicated.
const PERCENT: u64 = 50;

/// Starts a PE with the test's `--coordinator`, and writes the right one to a file.
const SCRIPT: &str = "\
note=$1; door=$2; shift 2
before=
for word; do
    shift
    if [ \"$before\" = --coordinator ]; then echo \"$word\" >\"$note\"; word=$door; fi
    before=$word
    set -- \"$@\" \"$word\"
done
exec \"$@\"
";

/// A cluster on this machine whose edges duplicate frames.
#[derive(Debug)]
pub struct Doubling {
    dir: Folder,
    doubled: Arc<AtomicU64>,
}

impl Doubling {
    /// Creates a cluster with a PE for each entry, which is the index of its parent, and P0.
    #[track_caller]
    pub fn of(parents: &[u32], seed: u64) -> Doubling {
        let dir = crate::scratch();
        let doubled = Arc::<AtomicU64>::default();
        let script = dir.put("play", SCRIPT);
        let mut text = String::from("name = \"doubling\"\ncoordinator = \"127.0.0.1\"\n");
        for pe in 0..=parents.len() {
            let note = dir.join(format!("note{pe}"));
            let door = TcpListener::bind("127.0.0.1:0").expect("a port is free");
            let address = door.local_addr().expect("it listens");
            text += &format!(
                "[[pe]]\nname = \"p{pe}\"\naddress = \"127.0.0.1\"\n\
                 run = [\"sh\", {:?}, {:?}, \"{address}\"]\n",
                script.display().to_string(),
                note.display().to_string(),
            );
            if pe > 0 {
                text += &format!("parent = \"p{}\"\n", parents[pe - 1]);
            }
            let chance = SplitMix64::new(seed ^ (pe as u64) << 32);
            let doubled = doubled.clone();
            thread::spawn(move || introduce(&door, &note, chance, &doubled));
        }
        dir.put("cluster.toml", text);
        Doubling { dir, doubled }
    }

    /// Returns the cluster file.
    pub fn file(&self) -> PathBuf {
        self.dir.join("cluster.toml")
    }

    /// Returns the number of frames that were duplicated so far.
    pub fn doubled(&self) -> u64 {
        self.doubled.load(Relaxed)
    }
}

/// Forwards a PE's channel to the coordinator, and replaces its listen address by that of the test.
fn introduce(door: &TcpListener, note: &Path, chance: SplitMix64, doubled: &Arc<AtomicU64>) {
    let Ok((mut pe, _)) = door.accept() else {
        return;
    };
    let coordinator = std::fs::read_to_string(note).expect("the script has left it");
    let mut coordinator = TcpStream::connect(coordinator.trim()).expect("the coordinator listens");
    let body = read_body(&mut pe).expect("a PE registers");
    let Ok(FromPe::Register(mut register)) = FromPe::parse(&body) else {
        panic!("a PE's first word is not its name");
    };
    let inside = register.listen.parse().expect("an address and a port");
    let outside = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    register.listen = outside.local_addr().expect("it listens").to_string();
    let doubled = doubled.clone();
    thread::spawn(move || let_in(&outside, inside, chance, &doubled));
    let word = spoken(&FromPe::Register(register));
    coordinator.write_all(&word).expect("the coordinator hears");
    let copy = |stream: &TcpStream| stream.try_clone().expect("it can be");
    let (from, to) = (copy(&coordinator), copy(&pe));
    thread::spawn(move || carry(from, to));
    carry(pe, coordinator);
}

fn carry(mut from: TcpStream, mut to: TcpStream) {
    let _ = io::copy(&mut from, &mut to);
    let _ = to.shutdown(std::net::Shutdown::Write);
}

/// Forwards connections to and from a PE.
fn let_in(
    outside: &TcpListener,
    inside: SocketAddr,
    mut chance: SplitMix64,
    doubled: &Arc<AtomicU64>,
) {
    while let Ok((child, _)) = outside.accept() {
        let pe = TcpStream::connect(inside).expect("the PE listens");
        for (from, to) in [(&child, &pe), (&pe, &child)] {
            let copy = |stream: &TcpStream| stream.try_clone().expect("it can be");
            let (from, to) = (copy(from), copy(to));
            let (seed, doubled) = (chance.below(u64::MAX), doubled.clone());
            thread::spawn(move || {
                let _ = pass_on(from, &to, SplitMix64::new(seed), &doubled);
                let _ = to.shutdown(std::net::Shutdown::Write);
            });
        }
    }
}

fn pass_on(
    mut from: TcpStream,
    mut to: &TcpStream,
    mut chance: SplitMix64,
    doubled: &AtomicU64,
) -> io::Result<()> {
    to.set_nodelay(true)?;
    loop {
        let mut frame = framed(&read_body(&mut from)?);
        if chance.below(100) < PERCENT {
            doubled.fetch_add(1, Relaxed);
            frame = frame.repeat(2);
        }
        to.write_all(&frame)?;
    }
}
