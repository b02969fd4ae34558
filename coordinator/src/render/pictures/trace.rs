//! A round in the Trace Event Format, which ui.perfetto.dev and chrome://tracing open:
//! a process for what was measured and one for what was predicted, and in each a track
//! for every port of every PE.

use std::io::{self, Write};

use flitcast_proto::PeId;
use flitcast_proto::spans::{Port, Span, SpanItem};
use serde_json::{Value, json};

use super::scene::{Scene, port_name};

const MEASURED: u32 = 1;
const PREDICTED: u32 = 2;

/// Writes the trace, one event per line.
pub fn write(scene: &Scene<'_>, out: &mut dyn Write) -> io::Result<()> {
    let cut: Vec<u32> = scene.cut().iter().map(|pe| pe.0).collect();
    let about = json!({
        "flitcast": env!("CARGO_PKG_VERSION"),
        "time": "microseconds from the root's trigger",
        "measured_round": scene.measured.round.0,
        "rounds": scene.rounds,
        "shown": scene.which(),
        "pes_with_spans_left_out": cut,
    });
    writeln!(
        out,
        "{{\"displayTimeUnit\":\"ns\",\"otherData\":{about},\"traceEvents\":["
    )?;
    let mut events = Events { out, first: true };
    let measured = &scene.measured;
    let name = format!("measured: {}", scene.which());
    events.process(MEASURED, &name, scene, &measured.spans, measured.started_ns)?;
    events.process(PREDICTED, "predicted", scene, scene.predicted, 0)?;
    events.out.write_all(b"\n]}\n")
}

/// Returns the track of a PE's port. Track numbers start at 10, because viewers take a track with
/// the number of its process for the main thread.
fn track(pe: PeId, port: Port, ports: &[Port]) -> u32 {
    10 + ports.len() as u32 * pe.0 + port as u32
}

struct Events<'a> {
    out: &'a mut dyn Write,
    first: bool,
}

impl Events<'_> {
    fn put(&mut self, event: &Value) -> io::Result<()> {
        if !std::mem::take(&mut self.first) {
            self.out.write_all(b",\n")?;
        }
        Ok(serde_json::to_writer(&mut self.out, event)?)
    }

    fn process(
        &mut self,
        pid: u32,
        name: &str,
        scene: &Scene<'_>,
        spans: &[Vec<Span>],
        origin_ns: u64,
    ) -> io::Result<()> {
        let about = |what: &str, args: Value| json!({"ph": "M", "pid": pid, "tid": 0, "name": what, "args": args});
        self.put(&about("process_name", json!({ "name": name })))?;
        self.put(&about("process_sort_index", json!({ "sort_index": pid })))?;
        let ports = scene.ports();
        for (row, pe) in scene.rows().into_iter().enumerate() {
            for &port in ports {
                let tid = track(pe, port, ports);
                let about = |what: &str, args: Value| json!({"ph": "M", "pid": pid, "tid": tid, "name": what, "args": args});
                let name = format!("{} {}", scene.names[pe.index()], port_name(port));
                self.put(&about("thread_name", json!({ "name": name })))?;
                let place = ports.len() * row + port as usize;
                self.put(&about("thread_sort_index", json!({ "sort_index": place })))?;
            }
        }
        for (pe, spans) in scene.tree.ids().zip(spans) {
            for span in spans {
                self.put(&event((pid, pe), span, origin_ns, scene, ports))?;
            }
        }
        Ok(())
    }
}

fn event(
    (pid, pe): (u32, PeId),
    span: &Span,
    origin_ns: u64,
    scene: &Scene<'_>,
    ports: &[Port],
) -> Value {
    let micros = |ns: i128| ns as f64 / 1000.0;
    let (begin, end) = (i128::from(span.begin_ns), i128::from(span.end_ns));
    let called = |pe: PeId| &scene.names[pe.index()];
    let peer = called(span.peer);
    let mut args = json!({ "port": port_name(span.port), "peer": peer });
    let (name, category) = match span.item {
        SpanItem::Message(id) => {
            if let Some(message) = scene.message(id) {
                args["message"] = json!(message.id.0);
                args["source"] = json!(called(message.source));
                args["destination"] = json!(message.destination.map(called));
                args["bytes"] = json!(message.bytes);
            }
            let name = scene.item_name(span.item);
            let name = match span.port {
                Port::Send => format!("{name} -> {peer}"),
                Port::Receive => format!("{name} <- {peer}"),
                Port::Files => format!("{name} is written"),
            };
            (name, "message")
        }
        item => (scene.item_name(item).into_owned(), "control"),
    };
    json!({
        "ph": "X",
        "pid": pid,
        "tid": track(pe, span.port, ports),
        "ts": micros(begin - i128::from(origin_ns)),
        "dur": micros(end - begin),
        "name": name,
        "cat": category,
        "args": args,
    })
}
