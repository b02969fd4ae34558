//! A collector of OpenTelemetry traces: receives spans over OTLP/HTTP and returns them. The parts
//! of the format that it reads are defined here, independent of the library that the command uses.

use std::collections::BTreeMap;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use prost::Message;

/// A span that was received.
#[derive(Clone, Debug)]
pub struct Sent {
    pub id: Vec<u8>,
    /// Id of its parent; empty if it has none.
    pub parent: Vec<u8>,
    /// Id of the trace, shared by all spans of a command.
    pub trace: Vec<u8>,
    pub name: String,
    /// Start in nanoseconds since 1970.
    pub began_ns: u64,
    /// End in nanoseconds since 1970.
    pub ended_ns: u64,
    pub attributes: BTreeMap<String, String>,
    pub error: Option<String>,
    pub resource: BTreeMap<String, String>,
}

pub struct Collector {
    pub address: SocketAddr,
    spans: Arc<Mutex<Vec<Sent>>>,
}

impl Collector {
    /// Starts a collector that answers each request with this status, such as `200 OK`.
    pub fn new(status: &'static str) -> Collector {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a port");
        let address = listener.local_addr().expect("it is bound");
        let spans = Arc::default();
        let taken = Arc::clone(&spans);
        // The thread ends with the test.
        thread::spawn(move || {
            for stream in listener.incoming() {
                let _ = stream.and_then(|stream| take(stream, status, &taken));
            }
        });
        Collector { address, spans }
    }

    /// Returns all spans that were received, by start.
    pub fn spans(&self) -> Vec<Sent> {
        let mut spans = self.spans.lock().expect("nobody panics with it").clone();
        spans.sort_by_key(|span| span.began_ns);
        spans
    }
}

fn take(stream: TcpStream, status: &str, spans: &Mutex<Vec<Sent>>) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    assert_eq!(line, "POST /v1/traces HTTP/1.1\r\n");
    let mut length = 0;
    while line != "\r\n" {
        line.clear();
        reader.read_line(&mut line)?;
        let header = line.to_ascii_lowercase();
        if let Some(bytes) = header.strip_prefix("content-length:") {
            length = bytes.trim().parse().map_err(io::Error::other)?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let request = Request::decode(&body[..]).expect("it is protobuf");
    // Recorded before the answer, because the test may check once the command has the answer.
    let mut spans = spans.lock().expect("nobody panics with it");
    spans.extend(request.spans());
    let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    reader.into_inner().write_all(answer.as_bytes())
}

// Field numbers of opentelemetry-proto's trace.proto, common.proto and resource.proto; other fields
// are skipped.

#[derive(Message)]
struct Request {
    #[prost(message, repeated, tag = "1")]
    resource_spans: Vec<ResourceSpans>,
}

#[derive(Message)]
struct ResourceSpans {
    #[prost(message, optional, tag = "1")]
    resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    scope_spans: Vec<ScopeSpans>,
}

#[derive(Message)]
struct Resource {
    #[prost(message, repeated, tag = "1")]
    attributes: Vec<KeyValue>,
}

#[derive(Message)]
struct ScopeSpans {
    #[prost(message, repeated, tag = "2")]
    spans: Vec<Span>,
}

#[derive(Message)]
struct Span {
    #[prost(bytes = "vec", tag = "1")]
    trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    span_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "4")]
    parent_span_id: Vec<u8>,
    #[prost(string, tag = "5")]
    name: String,
    #[prost(fixed64, tag = "7")]
    start_time_unix_nano: u64,
    #[prost(fixed64, tag = "8")]
    end_time_unix_nano: u64,
    #[prost(message, repeated, tag = "9")]
    attributes: Vec<KeyValue>,
    #[prost(message, optional, tag = "15")]
    status: Option<Status>,
}

#[derive(Message)]
struct Status {
    #[prost(string, tag = "2")]
    message: String,
    #[prost(int32, tag = "3")]
    code: i32,
}

/// `Status::code` of an error.
const ERROR: i32 = 2;

#[derive(Message)]
struct KeyValue {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(message, optional, tag = "2")]
    value: Option<AnyValue>,
}

/// A value, of which one field is set.
#[derive(Message)]
struct AnyValue {
    #[prost(string, optional, tag = "1")]
    string: Option<String>,
    #[prost(int64, optional, tag = "3")]
    int: Option<i64>,
    #[prost(double, optional, tag = "4")]
    double: Option<f64>,
}

impl Request {
    fn spans(self) -> impl Iterator<Item = Sent> {
        self.resource_spans.into_iter().flat_map(|of| {
            let resource = texts(of.resource.map(|of| of.attributes).unwrap_or_default());
            let spans = of.scope_spans.into_iter().flat_map(|scope| scope.spans);
            spans.map(move |span| span.sent(&resource))
        })
    }
}

impl Span {
    fn sent(self, resource: &BTreeMap<String, String>) -> Sent {
        let status = self.status.filter(|status| status.code == ERROR);
        Sent {
            id: self.span_id,
            parent: self.parent_span_id,
            trace: self.trace_id,
            name: self.name,
            began_ns: self.start_time_unix_nano,
            ended_ns: self.end_time_unix_nano,
            attributes: texts(self.attributes),
            error: status.map(|status| status.message),
            resource: resource.clone(),
        }
    }
}

fn texts(attributes: Vec<KeyValue>) -> BTreeMap<String, String> {
    let text = |value: AnyValue| {
        let int = value.int.map(|int| int.to_string());
        let double = value.double.map(|double| double.to_string());
        value.string.or(int).or(double).unwrap_or_default()
    };
    let texts = attributes.into_iter();
    texts
        .map(|of| (of.key, of.value.map(text).unwrap_or_default()))
        .collect()
}
