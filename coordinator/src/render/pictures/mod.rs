//! Pictures of a run, in the files that `--trace` and `--report` name: the Trace Event Format, which ui.perfetto.dev and
//! chrome://tracing open, with a process for what was measured and one for what was predicted, and in each a track for
//! every port of every PE; and the page, whose content `page` defines.

pub mod scene;

use std::env::args_os;
use std::io::{self, Write};
use std::iter::once;
use std::path::Path;

use flitcast_proto::PeId;
use flitcast_proto::spans::{Port, Span, SpanItem};
use serde_json::{Value, json};

use scene::{Scene, port_name};

use crate::render::json::json_value;
use crate::render::page::Page;
use crate::render::report::nothing_to_send;
use flitcast_cluster::job::request::Request;
use flitcast_cluster::options::transfer::PictureArgs;
use flitcast_cluster::rounds::outcome::Outcome;
use flitcast_cluster::text::phrases::command_line;
use flitcast_cluster::text::whole_file::write_whole;

/// Numbers of processes in a trace.
const MEASURED: u32 = 1;
const PREDICTED: u32 = 2;

/// Draws a run and returns the files that were written. `is_repeated` is whether messages were in the
/// output before.
///
/// # Errors
///
/// Returns an error that names the file if it cannot be written.
pub fn draw<'a>(
    pictures: &'a PictureArgs,
    request: &Request,
    outcome: &Outcome,
    is_repeated: bool,
) -> io::Result<Vec<&'a Path>> {
    let mut written: Vec<&Path> = Vec::new();
    let Some(scene) = Scene::of(request, outcome) else {
        return Ok(written);
    };
    if let Some(path) = &pictures.trace {
        write_whole(path, |out| write_trace(&scene, out))?;
        written.push(path);
    }
    if let Some(path) = &pictures.report {
        let page = Page {
            title: outcome.rounds.decisions.title(),
            command: command_line(once("flitcast".into()).chain(args_os().skip(1))),
            run: json_value(request, outcome),
            rounds_ns: &outcome.rounds_ns,
            nothing: nothing_to_send(is_repeated),
            scene: &scene,
            fit: &outcome.rounds.measured.fits,
        };
        write_whole(path, |out| page.write(out))?;
        written.push(path);
    }
    Ok(written)
}

/// Writes the trace, one event per line.
fn write_trace(scene: &Scene<'_>, out: &mut dyn Write) -> io::Result<()> {
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
