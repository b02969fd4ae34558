//! `Control`: the messages between the coordinator and a PE.

use std::sync::Arc;

use flitcast_proto::wire::control::{Assignment, FromPe, Payload, ToPe};
use flitcast_proto::{DeliveryId, PeId, RoundId, Tree};
use flitcast_tests::wire_examples::{bodies, written};

use super::reference::Reference;
use super::{TO_PE, body};

/// P0's index is a value that protobuf omits in other fields.
#[test]
fn a_fault_of_p0_is_not_one_of_nobody() {
    let fault = FromPe::Fault {
        round: RoundId(3),
        peer: Some(PeId::ROOT),
        reason: "gone".to_owned(),
        bad_input: false,
        output_stands: false,
        hung_up: true,
        changed: Vec::new(),
    };
    let text = r#"fault { round: 3 peer: 0 reason: "gone" hung_up: true }"#;
    let ours = written(|out| fault.put(out));
    Reference::new().assert_reads("Control", body(&ours), text);
    // The reference does not write an optional zero. On the wire, this is the same.
    let list = "repeated uint32 peer = 2 [packed = false];";
    let alike = Reference::later(&[("optional uint32 peer = 2;", list)]);
    assert_eq!(FromPe::parse(&alike.encode("Control", text)), Ok(fault));
}

#[test]
fn fields_of_a_later_version_are_skipped() {
    let register_with = "message Register { repeated uint32 rails = 77;";
    let later = Reference::later(&[("message Register {", register_with)]);
    let text =
        r#"register { cluster: 7 pe: 7 secret: "0123456789abcdef0123456789abcdef" pid: 5 RAILS }"#;
    let [now, then] = ["", "rails: 1 rails: 2"].map(|rails| {
        let text = text.replace("RAILS", rails);
        FromPe::parse(&later.encode("Control", &text))
    });
    assert!(now.is_ok() && now == then, "{then:?}");
}

/// Returns the assignment of the examples, on a tree of four PEs, with these lengths.
fn synthetic() -> Assignment {
    let [_, _, to_pe] = bodies();
    let lengths = vec![1, 2, 3];
    match ToPe::parse(&to_pe[0]) {
        Ok(ToPe::Assignment(assignment)) => Assignment {
            payload: Payload::Synthetic { lengths },
            ..assignment
        },
        other => panic!("{other:?}"),
    }
}

#[test]
fn any_pe_may_be_the_root() {
    for root in [1, 2, 3].map(PeId) {
        let whole = synthetic();
        let command = ToPe::Assignment(Assignment {
            tree: Arc::new(whole.tree.rerooted(root)),
            links: Vec::new(),
            left_out: vec![DeliveryId(0)],
            lanes: Vec::new(),
            ..whole
        });
        let frame = written(|out| command.put(out));
        assert_eq!(ToPe::parse(body(&frame)), Ok(command));
    }
}

#[test]
fn a_tree_may_lack_pes() {
    let parents = [None, Some(PeId(0)), None, Some(PeId(1))];
    let tree = Arc::new(Tree::with_absent(PeId::ROOT, parents.to_vec()).expect("P2 is absent"));
    let lacking = Assignment {
        tree,
        links: Vec::new(),
        left_out: vec![DeliveryId(3)],
        lanes: Vec::new(),
        versions: Vec::new(),
        ..synthetic()
    };
    let left_out = [1, 2, 3].map(|it| lacking.leaves_out(DeliveryId(it)));
    assert_eq!(left_out, [false, true, true]);
    let command = ToPe::Assignment(lacking);
    let text = r#"assignment { version: 1 parents: 0 parents: 2 parents: 1
        parent_listen: "127.0.0.1:1" collective: COLLECTIVE_SCATTER flit_bytes: 65536
        peers { pe: 2 listen: "127.0.0.1:2" }
        peers { pe: 3 to { latency_ns: 1 ns_per_byte: 2 } from { latency_ns: 3 ns_per_byte: 4 } }
        synthetic { lengths: 1 lengths: 2 lengths: 3 } record_spans: true left_out: 3
        job_id: 77 later_output: "/out" recorded: true own_links: true dry_run: true
        max_bits_per_second: 80000000 }"#;
    TO_PE.are_alike(&Reference::new(), command, text);
}
