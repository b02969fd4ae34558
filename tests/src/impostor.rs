//! A PE that is played by a test, so that it can do what no PE does. The coordinator
//! starts a process for it that does nothing; the test speaks in its place, to the real
//! coordinator and to real neighbours.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use flitcast_proto::PeId;
use flitcast_proto::calibration::Exchange;
use flitcast_proto::wire::control::{
    Assignment, Doing, FromPe, Pong, Prepare, Register, Report, ToPe,
};
use flitcast_proto::wire::edge::{EdgeFrame, Hello};
use flitcast_proto::wire::{LENGTH_BYTES, MAX_CONTROL_FRAME, MAX_VERSION, MIN_VERSION, flit};
use rustix::process::{Pid, Signal, kill_process};

use crate::processes::eventually;

/// A path of PEs on addresses of this machine's own, of which one is the test's.
#[derive(Debug)]
pub struct Stage {
    dir: tempfile::TempDir,
    pe: u32,
}

/// What the coordinator told the process that does nothing.
#[derive(Debug)]
struct Call {
    pid: i32,
    cluster: u64,
    coordinator: SocketAddr,
}

impl Stage {
    /// P0 - P1 - .. of so many PEs; `pe` is the test's.
    #[track_caller]
    pub fn path(pes: u32, pe: u32) -> Stage {
        Stage::build(pes, pe, None)
    }

    /// The same, `limited` being started by a shell that does `limit` first.
    #[track_caller]
    pub fn limited(pes: u32, pe: u32, limited: u32, limit: &str) -> Stage {
        Stage::build(pes, pe, Some((limited, limit)))
    }

    #[track_caller]
    fn build(pes: u32, pe: u32, limit: Option<(u32, &str)>) -> Stage {
        let dir = crate::scratch();
        let note = dir.path().join("call");
        let play = format!(
            "echo $$ $FLITCAST_CLUSTER $* >{0}.part; mv {0}.part {0}; exec sleep 600",
            note.display()
        );
        let mut text = String::from("name = \"stage\"\ncoordinator = \"127.0.0.1\"\n");
        for index in 0..pes {
            text += &format!(
                "[[pe]]\nname = \"host{index}\"\naddress = \"127.0.7.{}\"\n",
                index + 1
            );
            if index > 0 {
                text += &format!("parent = \"host{}\"\n", index - 1);
            }
            if index == pe {
                text += &format!("run = [\"sh\", \"-c\", \"{play}\"]\n");
            }
            if let Some((limited, limit)) = limit
                && index == limited
            {
                let script = format!("{limit}; exec \\\"$@\\\"");
                text += &format!("run = [\"sh\", \"-c\", \"{script}\", \"sh\"]\n");
            }
        }
        std::fs::write(dir.path().join("cluster.toml"), text).expect("it can be written");
        Stage { dir, pe }
    }

    /// The arguments of a run on it.
    pub fn arguments(&self, line: &str) -> Vec<String> {
        let file = self.dir.path().join("cluster.toml");
        let words = line.split_whitespace().map(str::to_owned);
        words
            .chain(["--cluster".to_owned(), file.display().to_string()])
            .collect()
    }

    /// A path in a folder of its own.
    pub fn path_of(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Registers, as soon as the process that does nothing runs.
    #[track_caller]
    pub fn enter(&self) -> Impostor {
        let note = self.dir.path().join("call");
        let call = eventually("the impostor's process runs", || Call::read(&note));
        let address = SocketAddr::from(([127, 0, 7, self.pe as u8 + 1], 0));
        let listener = TcpListener::bind(address).expect("the loopback has it");
        Impostor::new(call, PeId(self.pe), listener)
    }
}

impl Call {
    fn read(note: &Path) -> Option<Call> {
        let text = std::fs::read_to_string(note).ok()?;
        let words: Vec<&str> = text.split_whitespace().collect();
        let flag = words.iter().position(|word| *word == "--coordinator")?;
        Some(Call {
            pid: words.first()?.parse().ok()?,
            cluster: u64::from_str_radix(words.get(1)?, 16).ok()?,
            coordinator: words.get(flag + 1)?.parse().ok()?,
        })
    }
}

/// The test's PE.
#[derive(Debug)]
pub struct Impostor {
    pid: i32,
    /// Names the cluster.
    pub cluster: u64,
    /// Which PE it is.
    pub pe: PeId,
    /// Where its children call.
    pub listener: TcpListener,
    channel: TcpStream,
    words: Receiver<ToPe>,
}

impl Impostor {
    fn new(call: Call, pe: PeId, listener: TcpListener) -> Impostor {
        let channel = TcpStream::connect(call.coordinator).expect("it listens");
        let (say, words) = mpsc::channel();
        let mut answers = channel.try_clone().expect("it can be");
        let mut incoming = channel.try_clone().expect("it can be");
        thread::spawn(move || {
            while let Ok(body) = read_frame(&mut incoming, MAX_CONTROL_FRAME) {
                match ToPe::parse(&body).expect("the coordinator speaks the protocol") {
                    ToPe::Ping { .. } => {
                        let pong = Pong {
                            quiet_ms: u64::MAX,
                            doing: Doing::Listening,
                            unreached: Vec::new(),
                        };
                        let _ = answers.write_all(&spoken(&FromPe::Pong(pong)));
                    }
                    word => drop(say.send(word)),
                }
            }
        });
        let impostor = Impostor {
            pid: call.pid,
            cluster: call.cluster,
            pe,
            listener,
            channel,
            words,
        };
        impostor.say(&FromPe::Register(Register {
            cluster: impostor.cluster,
            pe,
            min_version: MIN_VERSION,
            max_version: MAX_VERSION,
            listen: impostor
                .listener
                .local_addr()
                .expect("it listens")
                .to_string(),
            pid: call.pid as u32,
            // Its clock is nobody else's.
            clock: String::new(),
        }));
        impostor
    }

    /// Says something to the coordinator, which may be gone.
    pub fn say(&self, word: &FromPe) {
        let _ = (&self.channel).write_all(&spoken(word));
    }

    /// What the coordinator says next, pings apart; `None` when it has gone.
    pub fn next_word(&self) -> Option<ToPe> {
        self.words.recv_timeout(Duration::from_secs(60)).ok()
    }

    /// Its place.
    #[track_caller]
    pub fn assignment(&self) -> Assignment {
        match self.next_word() {
            Some(ToPe::Assignment(assignment)) => assignment,
            other => panic!("no assignment but {other:?}"),
        }
    }

    /// Calls the parent and says hello.
    #[track_caller]
    pub fn call_parent(&self, assignment: &Assignment) -> TcpStream {
        let address = assignment.parent_listen.as_ref().expect("it has a parent");
        let mut edge = TcpStream::connect(address).expect("the parent listens");
        edge.set_nodelay(true).expect("it can be set");
        edge.write_all(&self.hello()).expect("the parent hears");
        let body = read_frame(&mut edge, 1000).expect("the parent answers");
        assert!(matches!(EdgeFrame::parse(&body), Ok(EdgeFrame::Hello(_))));
        edge
    }

    /// Waits until the only child has called, and says hello.
    #[track_caller]
    pub fn hear_child(&self) -> TcpStream {
        let (mut edge, _) = self.listener.accept().expect("the child calls");
        edge.set_nodelay(true).expect("it can be set");
        read_frame(&mut edge, 1000).expect("the child says hello");
        edge.write_all(&self.hello()).expect("the child hears");
        edge
    }

    fn hello(&self) -> Vec<u8> {
        written(&EdgeFrame::Hello(Hello {
            cluster: self.cluster,
            pe: self.pe,
            min_version: MIN_VERSION,
            max_version: MAX_VERSION,
        }))
    }

    /// Says that it is ready, with the messages that it sends, and does what is asked of
    /// it before the rounds: its parent's probes are answered, the edge to a child is
    /// measured by guess.
    #[track_caller]
    pub fn get_ready(&self, parent: &mut TcpStream, message_bytes: Vec<u64>) -> Prepare {
        self.say(&FromPe::Ready { message_bytes });
        parent
            .set_read_timeout(Some(Duration::from_millis(10)))
            .expect("it can be set");
        let prepare = loop {
            match self.words.try_recv() {
                Ok(ToPe::Prepare(prepare)) => break prepare,
                Ok(ToPe::ProbeEdge { child, .. }) => {
                    let exchanges = guessed_exchanges();
                    self.say(&FromPe::ProbeResult { child, exchanges });
                }
                Ok(other) => panic!("not before the rounds: {other:?}"),
                Err(_) => {}
            }
            // A frame that has begun comes whole, and soon.
            if parent.peek(&mut [0]).is_ok_and(|n| n > 0) {
                let body = read_patiently(parent);
                answer_probe(parent, &body);
            }
        };
        parent.set_read_timeout(None).expect("it can be set");
        self.say(&FromPe::Prepared);
        prepare
    }

    /// Ends the process that does nothing, as a PE does that is told to leave.
    pub fn leave(&self) {
        let pid = Pid::from_raw(self.pid).expect("process ids are above 0");
        let _ = kill_process(pid, Signal::TERM);
    }

    /// Does what the coordinator asks until it is to leave: reports a round as over.
    pub fn serve(&self) {
        while let Some(word) = self.next_word() {
            match word {
                ToPe::Collect { round } | ToPe::Abort { round, .. } => {
                    let report = Report {
                        round,
                        complete: true,
                        started_ns: 0,
                        arrivals: Vec::new(),
                        collisions: 0,
                        peak_buffered_flits: 0,
                        peak_resident_bytes: 1 << 20,
                        own_start: None,
                        late_frames: 0,
                        spans: Vec::new(),
                    };
                    self.say(&FromPe::Report(report));
                }
                _ => break,
            }
        }
        self.leave();
    }

    /// Passes frames on between parent and child, in both directions, until one of them
    /// ends: `on_up` sees each frame that goes to the parent, and says what goes there
    /// instead, `None` being the end of the connection.
    pub fn relay(
        &self,
        parent: &TcpStream,
        child: &TcpStream,
        mut on_up: impl FnMut(Vec<u8>) -> Option<Vec<u8>> + Send + 'static,
    ) {
        let copy = |stream: &TcpStream| stream.try_clone().expect("it can be");
        let (mut from_parent, mut to_child) = (copy(parent), copy(child));
        thread::spawn(move || {
            let _ = io::copy(&mut from_parent, &mut to_child);
        });
        let (mut from_child, mut to_parent) = (copy(child), copy(parent));
        thread::spawn(move || {
            while let Ok(body) = read_frame(&mut from_child, 2 << 20) {
                let frame = [&(body.len() as u32).to_be_bytes()[..], &body].concat();
                let Some(frame) = on_up(frame) else { break };
                if to_parent.write_all(&frame).is_err() {
                    break;
                }
            }
            let _ = to_parent.shutdown(std::net::Shutdown::Write);
        });
    }
}

impl Drop for Impostor {
    fn drop(&mut self) {
        let _ = self.channel.shutdown(std::net::Shutdown::Both);
    }
}

/// A word as a frame.
pub fn spoken(word: &FromPe) -> Vec<u8> {
    let mut frame = Vec::new();
    word.put(&mut frame);
    frame
}

/// An edge's frame, length and all.
pub fn written(frame: &EdgeFrame) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame.put(&mut bytes);
    bytes
}

/// Whether a frame, its length included, is a flit.
pub fn is_flit(frame: &[u8]) -> bool {
    flit::is_flit(&frame[LENGTH_BYTES..])
}

/// Reads a frame's body.
pub fn read_frame(stream: &mut TcpStream, limit: usize) -> io::Result<Vec<u8>> {
    let mut prefix = [0; LENGTH_BYTES];
    stream.read_exact(&mut prefix)?;
    let length = u32::from_be_bytes(prefix) as usize;
    assert!(length <= limit, "a frame of {length} bytes");
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    Ok(body)
}

fn read_patiently(stream: &mut TcpStream) -> Vec<u8> {
    stream.set_read_timeout(None).expect("it can be set");
    let body = read_frame(stream, 2 << 20).expect("it is whole");
    stream
        .set_read_timeout(Some(Duration::from_millis(10)))
        .expect("it can be set");
    body
}

/// Exchanges over an edge of 10 us each way and a nanosecond a byte.
fn guessed_exchanges() -> Vec<Exchange> {
    let sizes = [(0, 0), (65_536, 0), (262_144, 0), (0, 65_536), (0, 262_144)];
    let exchange = |(down_bytes, up_bytes)| Exchange {
        down_bytes,
        up_bytes,
        sent_ns: 1_000_000,
        received_ns: 1_010_000 + down_bytes,
        answered_ns: 1_010_000 + down_bytes,
        returned_ns: 1_020_000 + down_bytes + up_bytes,
    };
    let several = sizes.iter().cycle().take(5 * sizes.len());
    several.map(|&bytes| exchange(bytes)).collect()
}

fn answer_probe(stream: &mut TcpStream, body: &[u8]) {
    let Ok(EdgeFrame::Probe(probe)) = EdgeFrame::parse(body) else {
        return;
    };
    for _ in 0..probe.flits {
        read_patiently(stream);
    }
    let payload = vec![0; probe.reply_flit_bytes as usize];
    let mut prefix = Vec::new();
    flit::put_prefix(None, None, payload.len(), &mut prefix);
    let mut answer = [prefix, payload]
        .concat()
        .repeat(probe.reply_flits as usize);
    answer.extend(written(&EdgeFrame::ProbeReply {
        received_ns: 1,
        answered_ns: 1,
    }));
    stream.write_all(&answer).expect("the parent hears");
}
