//! Valid inputs from which fuzzing starts.

use flitcast_proto::items::Message;
use flitcast_proto::wire::admission::{Admission, IssuedCredentials};
use flitcast_proto::wire::seal::FrameSealer;
use flitcast_proto::wire::{LENGTH_BYTES, Secret, flit};
use flitcast_proto::{PeId, RoundId};

use crate::edge::framed;
use crate::wire_examples::{bodies, written};

fn texts(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

/// Returns frames on edges, with their lengths.
fn edge_frames() -> Vec<Vec<u8>> {
    edges().iter().map(|body| framed(body)).collect()
}

fn flit_frames() -> Vec<Vec<u8>> {
    let message = Message::between(PeId(4), PeId::ROOT, 100_000);
    let head = Some((RoundId(9), message));
    let kinds = [
        (head, None),
        (None, None),
        (None, Some(&[9; 16])),
        (head, Some(&[9; 16])),
    ];
    let put = |(head, digest): (_, Option<&flit::Digest>)| {
        let payload = b"thirty bytes of some payload!!";
        let prefix = written(|out| flit::put_prefix(head, digest, payload.len(), out));
        [&prefix[..], payload].concat()
    };
    kinds.into_iter().map(put).collect()
}

pub(super) fn edges() -> Vec<Vec<u8>> {
    let [edges, _, _] = bodies();
    edges
}

pub(super) fn flits() -> Vec<Vec<u8>> {
    let frames = flit_frames().into_iter();
    frames
        .map(|mut frame| frame.split_off(LENGTH_BYTES))
        .collect()
}

pub(super) fn frames() -> Vec<Vec<u8>> {
    let all: Vec<_> = edge_frames().into_iter().chain(flit_frames()).collect();
    let mut streams = all.clone();
    streams.push(all.concat());
    streams
}

pub(super) fn sealed() -> Vec<Vec<u8>> {
    let mut sealer = FrameSealer::default();
    let all = edge_frames();
    let first = sealer.sealed(&all[0]);
    let mut stream = first.repeat(2);
    stream.extend(all[1..].iter().flat_map(|frame| sealer.sealed(frame)));
    vec![first, stream]
}

/// Returns messages between PEs and the coordinator.
pub(super) fn control() -> Vec<Vec<u8>> {
    let [_, of_pes, of_coordinator] = bodies();
    [of_pes, of_coordinator].concat()
}

pub(super) fn admissions() -> Vec<Vec<u8>> {
    let issued = IssuedCredentials {
        authority: vec![0x30, 1].into(),
        certificate: vec![0x30, 2].into(),
        key: vec![0x30, 3].into(),
    };
    let admission = |credentials| Admission {
        cluster: 7,
        secret: Secret::new([9; Secret::BYTES]),
        credentials,
    };
    vec![admission(None).written(), admission(Some(issued)).written()]
}

pub(super) fn tree_files() -> Vec<Vec<u8>> {
    texts(&[
        "parents = [0, 0, 1]\n",
        "root = 0\n[[pe]]\nid = 0\n[[pe]]\nid = 1\nparent = 0\n",
        "parents = [0, 1]\n[[edges]]\nchild = 1\nrate = \"1mbit\"\nlatency = \"3ms\"\n",
        "parents = [2, 1]\n",
        "[[pe]]\nid = 1\nparent = 5\n[[pe]]\nid = 1\n",
    ])
}

pub(super) fn cluster_files() -> Vec<Vec<u8>> {
    texts(&[
        "name = \"two\"\ncoordinator = \"127.0.0.1\"\n[launch]\nkind = \"local\"\n\
         [[pe]]\nname = \"a\"\naddress = \"127.0.0.1\"\nrun = [\"env\", \"-i\"]\n\
         [[pe]]\nname = \"b\"\naddress = \"127.0.0.2\"\nparent = \"a\"\n\
         parent_address = \"127.0.0.3\"\n",
        "[[pe]]\nname = \"a\"\n[[pe]]\nname = \"a\"\nparent = \"c\"\n",
        "link = \"rate=1mbit,latency=1ms\"\n[security]\ncredentials = \"keys\"\n\
         [timeouts]\nsilence = \"5s\"\n[network]\nedges = [[\"a\", \"ä\"]]\n\
         [[pe]]\nname = \"a\"\naddress = \"127.0.0.1\"\n\
         [[pe]]\nname = \"ä\"\naddress = \"127.0.0.2\"\nlink = \"rate=1mbit\"\n",
    ])
}

pub(super) fn edge_files() -> Vec<Vec<u8>> {
    texts(&["0 1\n1 2\n# three\n0 2\n", "0 0\n7\n", "0 4294967296\n"])
}

pub(super) fn lengths() -> Vec<Vec<u8>> {
    texts(&[
        "1,2,3KiB,0,5MB",
        "uniform:1KiB..3MiB:7",
        "equal:64KiB",
        "ramp:10",
        "onebig:1GiB",
        "halfnull:3",
        "uniform:0..18446744073709551615:0",
    ])
}

pub(super) fn links() -> Vec<Vec<u8>> {
    texts(&[
        "rate=200mbit,latency=1ms",
        "latency=3us",
        "rate=unlimited",
        "rate=1.5gbit",
    ])
}

pub(super) fn records() -> Vec<Vec<u8>> {
    let text = "version = 2\nundertaking = \"00000000000000ab\"\noperation = \"gather\"\nalgorithm = \"certification\"\n\
        sync = \"serial\"\npacing = \"turns\"\ntree = \"path:4\"\nparents = [0, 1, 2]\n\
        network = \"ring:4\"\nnodes = [0, 1, 2, 3]\nflit_bytes = 65536\n\
        timeouts = \"silence=5s\"\ninput = \"/in\"\noutput = \"/out\"\nspread = false\n\
        bytes = [1, 0, 7]\ndelivered = [3]\n[[link]]\npe = 1\ndown = \"rate=1mbit\"\n\
        up = \"latency=1ms\"\n[[dead]]\npe = 2\nwhy = \"silent\"\n";
    vec![text.into()]
}
