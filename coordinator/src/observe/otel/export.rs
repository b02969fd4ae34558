//! Spans on their way to a collector: in batches, by a thread of their own, over OTLP/HTTP in
//! the clear. A collector that is not there, or does not answer, costs a command some time at
//! its end, and a warning.

use std::env;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use opentelemetry::trace::{SpanBuilder, SpanContext};
use opentelemetry::trace::{TraceContextExt as _, Tracer as _, TracerProvider as _};
use opentelemetry::{Context, Key, KeyValue};
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{RetryPolicy, SpanExporter, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider, Span};
use ureq::Agent;

use crate::text::printable::printable;

/// Either of them names the collector.
const ENDPOINTS: [&str; 2] = [
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
];

/// For a collector to take a batch while the command is busy otherwise: what OTLP says where
/// nobody says anything else.
const BATCH: Duration = Duration::from_secs(10);

/// For it to take what is left at the command's end, which everybody waits for.
const REST: Duration = Duration::from_secs(2);

/// Begins spans, and sends those that have ended.
#[derive(Debug)]
pub struct Export {
    provider: SdkTracerProvider,
    tracer: SdkTracer,
    trouble: ExportFailure,
    /// The wall's clock when this was made: whoever sets it later sets no span.
    wall: SystemTime,
    made: Instant,
}

/// Why the latest batch that was not taken was not.
#[derive(Clone, Debug, Default)]
struct ExportFailure(Arc<Mutex<Option<String>>>);

impl ExportFailure {
    fn note(&self, why: String) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
    }

    fn take(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Export {
    /// As the environment says; `None` where it names no collector, or none that can be
    /// understood, which is said on stderr.
    pub fn new() -> Option<Export> {
        let is_set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
        let is_disabled = || {
            let value = env::var("OTEL_SDK_DISABLED");
            value.is_ok_and(|value| value.eq_ignore_ascii_case("true"))
        };
        if !ENDPOINTS.into_iter().any(is_set) || is_disabled() {
            return None;
        }
        let trouble = ExportFailure::default();
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(Client::new(trouble.clone()))
            // At a command's end nobody waits for a second try.
            .with_retry_policy(RetryPolicy::disabled())
            .build();
        let exporter = match exporter {
            Ok(exporter) => exporter,
            Err(error) => {
                warn(&error.to_string());
                return None;
            }
        };
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_resource(resource())
            .build();
        Some(Export {
            tracer: provider.tracer("flitcast"),
            provider,
            trouble,
            wall: SystemTime::now(),
            made: Instant::now(),
        })
    }

    /// What spans take for the time.
    pub fn now(&self) -> SystemTime {
        self.wall + self.made.elapsed()
    }

    /// Begins a span, below another if there is one.
    pub fn begin(
        &self,
        name: String,
        parent: Option<&SpanContext>,
        began: SystemTime,
        attributes: Vec<KeyValue>,
    ) -> Span {
        let below = match parent {
            Some(parent) => Context::new().with_remote_span_context(parent.clone()),
            None => Context::new(),
        };
        let span = SpanBuilder::from_name(name)
            .with_start_time(began)
            .with_attributes(attributes);
        self.tracer.build_with_context(span, &below)
    }

    /// Sends what is left, and says on stderr if not all that was traced could be sent.
    pub fn finish(self) {
        let sent = self.provider.shutdown_with_timeout(REST);
        // Who did not answer in time has not refused anything yet.
        let late = || format!("the collector did not answer within {} s", REST.as_secs());
        if let Some(why) = self.trouble.take().or(sent.err().map(|_| late())) {
            warn(&why);
        }
    }
}

fn warn(why: &str) {
    eprintln!("warning: traces are lost: {}", printable(why));
}

/// What all spans are told to come from.
fn resource() -> Resource {
    let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
    let named = Resource::builder().with_attribute(version.clone()).build();
    let name = named.get(&Key::new("service.name"));
    // That is what the library says where the environment says nothing.
    match name.is_none_or(|name| name.as_str().starts_with("unknown_service")) {
        true => Resource::builder()
            .with_attribute(version)
            .with_service_name("flitcast")
            .build(),
        false => named,
    }
}

/// Posts a batch, and waits for the answer. Only the exporter's thread does.
#[derive(Debug)]
struct Client {
    agent: Agent,
    trouble: ExportFailure,
}

impl Client {
    fn new(trouble: ExportFailure) -> Client {
        let config = Agent::config_builder()
            .timeout_global(Some(BATCH))
            // A status is for the exporter to judge.
            .http_status_as_error(false)
            // A collector is named by its own address.
            .proxy(None)
            .build();
        Client {
            agent: config.into(),
            trouble,
        }
    }

    fn post(&self, request: Request<Bytes>) -> Result<Response<Bytes>, ureq::Error> {
        let (head, body) = request.into_parts();
        let answer = self.agent.run(Request::from_parts(head, &body[..]))?;
        let (head, mut body) = answer.into_parts();
        Ok(Response::from_parts(head, body.read_to_vec()?.into()))
    }
}

#[async_trait::async_trait]
impl HttpClient for Client {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        // Without what else may stand in an address: a password.
        let host = request.uri().host().unwrap_or_default().to_owned();
        let port = request.uri().port_u16();
        let at = port.map_or(host.clone(), |port| format!("{host}:{port}"));
        let answer = self.post(request);
        match &answer {
            Ok(answer) if answer.status().is_success() => {}
            Ok(answer) => self
                .trouble
                .note(format!("{at} answers {}", answer.status())),
            Err(error) => self.trouble.note(format!("{at}: {error}")),
        }
        Ok(answer?)
    }
}
