//! A PE operated by a test, so that it can misbehave. The coordinator starts an idle process for
//! it; the test communicates in its place with the real coordinator and real neighbours.

use std::io::Write as _;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use flitcast_proto::PeId;
use flitcast_proto::exchange::Exchange;
use flitcast_proto::wire::admission::Admission;
use flitcast_proto::wire::control::{
    Assignment, Doing, FromPe, Pong, Prepare, Ready, Register, Report, ToPe,
};
use flitcast_proto::wire::edge::{EdgeFrame, Hello, Probe};
use flitcast_proto::wire::{
    LENGTH_BYTES, MAX_CONTROL_FRAME, MAX_VERSION, MIN_VERSION, Secret, flit, pb,
};
use prost::Message as _;
use rustix::process::{Pid, Signal, kill_process};

use crate::Folder;
use crate::edge::{Edge, framed, read_body};
use crate::processes::eventually;
use crate::wire_examples::written;

/// A path of PEs on separate addresses of this machine; the test operates one of them.
pub struct Stage {
    dir: Folder,
    pe: u32,
}

/// The parameters that the idle process received from the coordinator.
struct Call {
    pid: i32,
    admission: Admission,
    coordinator: SocketAddr,
}

impl Stage {
    /// Creates the path P0 - P1 - .. of `pes` PEs, of which the test operates `pe`.
    #[track_caller]
    pub fn path(pes: u32, pe: u32) -> Stage {
        Stage::build(pes, pe, None)
    }

    /// Creates a path in which a shell starts `limited` after running `limit`.
    #[track_caller]
    pub fn limited(pes: u32, pe: u32, limited: u32, limit: &str) -> Stage {
        Stage::build(pes, pe, Some((limited, limit)))
    }

    #[track_caller]
    fn build(pes: u32, pe: u32, limit: Option<(u32, &str)>) -> Stage {
        let dir = crate::scratch();
        let note = dir.join("call");
        let play = format!(
            "cat >{0}.admission; echo $$ $* >{0}.part; mv {0}.part {0}; exec sleep 600",
            note.display()
        );
        let mut text = String::from("name = \"stage\"\ncoordinator = \"127.0.0.1\"\n");
        for index in 0..pes {
            let address = format!("127.0.7.{}", index + 1);
            text += &format!("[[pe]]\nname = \"p{index}\"\naddress = \"{address}\"\n");
            if index > 0 {
                text += &format!("parent = \"p{}\"\n", index - 1);
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
        dir.put("cluster.toml", text);
        Stage { dir, pe }
    }

    pub fn arguments(&self, line: &str) -> Vec<String> {
        self.dir.words(&format!("{line} --cluster @/cluster.toml"))
    }

    pub fn path_of(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Returns the secret of the launch, once the idle process runs.
    #[track_caller]
    pub fn secret(&self) -> [u8; Secret::BYTES] {
        let frame = std::fs::read(self.path_of("call.admission")).expect("it is there");
        let admission = pb::Admission::decode(&frame[LENGTH_BYTES..]).expect("it is one");
        admission.secret[..].try_into().expect("it has that many")
    }

    /// Registers as soon as the idle process runs.
    #[track_caller]
    pub fn enter(&self) -> Impostor {
        self.enter_speaking(MIN_VERSION, MAX_VERSION)
    }

    /// Registers with these versions of the protocol.
    #[track_caller]
    pub fn enter_speaking(&self, min_version: u32, max_version: u32) -> Impostor {
        let listener = TcpListener::bind(self.address()).expect("the loopback has it");
        self.enter_as(listener, (min_version, max_version))
    }

    /// Registers with this listener, to which the PE's children will connect.
    pub fn enter_at(&self, listener: TcpListener) -> Impostor {
        self.enter_as(listener, (MIN_VERSION, MAX_VERSION))
    }

    #[track_caller]
    fn enter_as(&self, listener: TcpListener, versions: (u32, u32)) -> Impostor {
        let note = self.dir.join("call");
        let call = eventually("the impostor's process runs", || Call::read(&note));
        Impostor::new(call, PeId(self.pe), listener, versions)
    }

    /// Returns the PE's address, with any port.
    pub fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 7, self.pe as u8 + 1], 0))
    }
}

impl Call {
    fn read(note: &Path) -> Option<Call> {
        let text = std::fs::read_to_string(note).ok()?;
        let words: Vec<&str> = text.split_whitespace().collect();
        let flag = words.iter().position(|word| *word == "--coordinator")?;
        let admission = std::fs::read(note.with_extension("admission")).ok()?;
        Some(Call {
            pid: words.first()?.parse().ok()?,
            admission: Admission::parse(&admission).ok()?,
            coordinator: words.get(flag + 1)?.parse().ok()?,
        })
    }
}

/// The PE operated by the test.
pub struct Impostor {
    pid: i32,
    pub admission: Admission,
    pub pe: PeId,
    /// Listener for its children.
    pub listener: TcpListener,
    channel: TcpStream,
    commands: Receiver<ToPe>,
}

impl Impostor {
    fn new(call: Call, pe: PeId, listener: TcpListener, versions: (u32, u32)) -> Impostor {
        let channel = TcpStream::connect(call.coordinator).expect("it listens");
        let (sender, commands) = mpsc::channel();
        let mut answers = channel.try_clone().expect("it can be");
        let mut incoming = channel.try_clone().expect("it can be");
        thread::spawn(move || {
            while let Ok(body) = read_body(&mut incoming) {
                assert!(body.len() <= MAX_CONTROL_FRAME, "{} bytes", body.len());
                match ToPe::parse(&body).expect("the coordinator speaks the protocol") {
                    ToPe::Ping { .. } => {
                        let pong = Pong {
                            quiet_ms: u64::MAX,
                            files_quiet_ms: u64::MAX,
                            doing: Doing::Listening,
                            unreached: Vec::new(),
                            counts: Default::default(),
                        };
                        let _ = answers.write_all(&framed_reply(&FromPe::Pong(pong)));
                    }
                    command => drop(sender.send(command)),
                }
            }
        });
        let impostor = Impostor {
            pid: call.pid,
            admission: call.admission,
            pe,
            listener,
            channel,
            commands,
        };
        let register = impostor.register(versions);
        impostor.send(&FromPe::Register(register));
        impostor
    }

    /// Returns the registration with these versions.
    pub fn register(&self, (min_version, max_version): (u32, u32)) -> Register {
        let listen = self.listener.local_addr().expect("it listens");
        Register {
            cluster: self.admission.cluster,
            secret: self.admission.secret,
            pe: self.pe,
            min_version,
            max_version,
            listen: listen.to_string(),
            pid: self.pid as u32,
            // The PE shares its clock with no other process.
            clock: String::new(),
            processor: String::new(),
            cores: 0,
            host: String::new(),
        }
    }

    /// Sends a message to the coordinator, which may have ended.
    pub fn send(&self, reply: &FromPe) {
        let _ = (&self.channel).write_all(&framed_reply(reply));
    }

    /// Sends the body of a frame to the coordinator, whatever it is.
    pub fn send_body(&self, body: &[u8]) {
        let _ = (&self.channel).write_all(&framed(body));
    }

    /// Returns the coordinator's next message except pings; `None` if it has ended.
    pub fn next_command(&self) -> Option<ToPe> {
        self.commands.recv_timeout(Duration::from_secs(60)).ok()
    }

    #[track_caller]
    pub fn assignment(&self) -> Assignment {
        match self.next_command() {
            Some(ToPe::Assignment(assignment)) => assignment,
            other => panic!("no assignment but {other:?}"),
        }
    }

    /// Connects to the parent and exchanges hellos.
    #[track_caller]
    pub fn call_parent(&self, assignment: &Assignment) -> Edge {
        let address = assignment.parent_listen.as_ref().expect("it has a parent");
        let mut edge = Edge::new(TcpStream::connect(address).expect("the parent listens"));
        edge.send(&EdgeFrame::Hello(self.hello()));
        assert!(matches!(edge.receive(), EdgeFrame::Hello(_)));
        edge
    }

    /// Waits until the only child has connected, and exchanges hellos.
    pub fn accept_child(&self) -> Edge {
        let (stream, _) = self.listener.accept().expect("the child calls");
        let mut edge = Edge::new(stream);
        assert!(matches!(edge.receive(), EdgeFrame::Hello(_)));
        edge.send(&EdgeFrame::Hello(self.hello()));
        edge
    }

    /// Returns the first frame on an edge.
    pub fn hello(&self) -> Hello {
        Hello {
            cluster: self.admission.cluster,
            secret: self.admission.secret,
            pe: self.pe,
            min_version: MIN_VERSION,
            max_version: MAX_VERSION,
            lane: 0,
        }
    }

    /// Reports ready, with the messages that it sends, and serves requests until the rounds: probes
    /// of the parent are answered, and guessed values are reported for the edge to a child.
    #[track_caller]
    pub fn get_ready(&self, parent: &mut Edge, message_bytes: Vec<u64>) -> Prepare {
        self.send(&FromPe::Ready(Ready {
            message_bytes,
            ..Ready::default()
        }));
        let patience = |parent: &Edge, patience| {
            let set = parent.incoming.stream.set_read_timeout(patience);
            set.expect("it can be set");
        };
        let prepare = loop {
            match self.commands.try_recv() {
                Ok(ToPe::Prepare(prepare)) => break prepare,
                Ok(ToPe::MeasureFiles) => self.send(&FromPe::FilesMeasured(None)),
                Ok(ToPe::MeasureHost { .. }) => {
                    let found = String::new();
                    self.send(&FromPe::HostMeasured { found });
                }
                Ok(ToPe::ProbeEdge { child, .. }) => {
                    let exchanges = guessed_exchanges();
                    self.send(&FromPe::ProbeResult { child, exchanges });
                }
                Ok(other) => panic!("not before the rounds: {other:?}"),
                Err(_) => {}
            }
            patience(parent, Some(Duration::from_millis(10)));
            let has_begun = parent.incoming.stream.peek(&mut [0]).is_ok_and(|n| n > 0);
            patience(parent, None);
            // A frame that has started will be complete soon.
            if has_begun && let EdgeFrame::Probe(probe) = parent.receive() {
                answer_probe(parent, probe);
            }
        };
        self.send(&FromPe::Prepared);
        prepare
    }

    /// Returns the PE's address, as the coordinator sees it.
    pub fn address(&self) -> SocketAddr {
        self.channel.local_addr().expect("it is connected")
    }

    pub fn coordinator(&self) -> SocketAddr {
        self.channel.peer_addr().expect("it is connected")
    }

    /// Ends the idle process, like a PE that receives a stop command.
    pub fn leave(&self) {
        let pid = Pid::from_raw(self.pid).expect("process ids are above 0");
        let _ = kill_process(pid, Signal::TERM);
    }

    /// Serves the coordinator's requests until the end: reports each round as complete.
    pub fn serve(&self) {
        while let Some(command) = self.next_command() {
            match command {
                ToPe::Collect { round } | ToPe::Abort { round, .. } => {
                    let report = Report {
                        complete: true,
                        peak_resident_bytes: 1 << 20,
                        ..Report::blank(round, Vec::new())
                    };
                    self.send(&FromPe::Report(report));
                }
                _ => break,
            }
        }
        self.leave();
    }
}

impl Drop for Impostor {
    fn drop(&mut self) {
        let _ = self.channel.shutdown(std::net::Shutdown::Both);
    }
}

/// Encodes a message as a frame.
pub fn framed_reply(reply: &FromPe) -> Vec<u8> {
    written(|out| reply.put(out))
}

/// Returns exchanges over an edge of 10 us in each direction and a nanosecond per byte.
fn guessed_exchanges() -> Vec<Exchange> {
    let sizes = [(0, 0), (65_536, 0), (262_144, 0), (0, 65_536), (0, 262_144)];
    let exchange = |(down_bytes, up_bytes)| Exchange {
        down_bytes,
        up_bytes,
        extra_flits: 0,
        sent_ns: 1_000_000,
        received_ns: 1_010_000 + down_bytes,
        answered_ns: 1_010_000 + down_bytes,
        returned_ns: 1_020_000 + down_bytes + up_bytes,
    };
    let several = sizes.iter().cycle().take(5 * sizes.len());
    several.map(|&bytes| exchange(bytes)).collect()
}

fn answer_probe(parent: &mut Edge, probe: Probe) {
    for _ in 0..probe.flits {
        parent.incoming.frame().expect("the burst is whole");
    }
    let payload = vec![0; probe.reply_flit_bytes as usize];
    let mut flit = written(|out| flit::put_prefix(None, None, payload.len(), out));
    flit.extend(payload);
    for _ in 0..probe.reply_flits {
        parent.outgoing.send(&flit).expect("the parent hears");
    }
    parent.send(&EdgeFrame::ProbeReply {
        received_ns: 1,
        answered_ns: 1,
    });
}
