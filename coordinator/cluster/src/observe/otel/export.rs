//! Export of spans to a collector: in batches, on a separate thread, over unencrypted OTLP/HTTP. If
//! the collector is not reachable or does not answer, the command ends a little later, with a
//! warning.

use std::env;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use opentelemetry::trace::{SpanBuilder, SpanContext};
use opentelemetry::trace::{TraceContextExt as _, Tracer as _, TracerProvider as _};
use opentelemetry::{Context, Key, KeyValue};
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{RetryPolicy, SpanExporter, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider, Span};
use ureq::Agent;

use crate::text::stderr;

/// Environment variables that name the collector; either is enough.
const ENDPOINTS: [&str; 2] = [
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
];

/// Timeout of a batch while the command is running: OTLP's default.
const BATCH: Duration = Duration::from_secs(10);

/// Timeout of the last batch, for which the end of the command waits.
const REST: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub struct Export {
    provider: SdkTracerProvider,
    tracer: SdkTracer,
    trouble: ExportFailure,
    /// Wall-clock time when this was created. Later times are `wall` plus monotonic time, so that
    /// setting the clock does not move spans.
    wall: SystemTime,
    made: Instant,
}

/// Reason for the failure of the latest batch that failed.
type ExportFailure = Arc<Mutex<Option<String>>>;

fn lock(failure: &ExportFailure) -> MutexGuard<'_, Option<String>> {
    failure.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Export {
    /// Creates an exporter as the environment defines. Returns `None` if the environment names no
    /// collector; also, with a warning on stderr, if the address is invalid.
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
            // There is no time for a retry when the command ends.
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

    /// Returns the current time for spans.
    pub fn now(&self) -> SystemTime {
        self.wall + self.made.elapsed()
    }

    /// Creates a span, as a child of `parent` if there is one.
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

    /// Sends the remaining spans; prints a warning on stderr if spans were lost.
    pub fn finish(self) {
        let sent = self.provider.shutdown_with_timeout(REST);
        // After a timeout there may be no recorded failure.
        let late = || format!("the collector did not answer within {} s", REST.as_secs());
        if let Some(why) = lock(&self.trouble).take().or(sent.err().map(|_| late())) {
            warn(&why);
        }
    }
}

fn warn(why: &str) {
    stderr::warning(format_args!("traces are lost: {why}"));
}

/// Returns the attributes of the source of all spans.
fn resource() -> Resource {
    let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
    let named = Resource::builder().with_attribute(version.clone()).build();
    let name = named.get(&Key::new("service.name"));
    // The library's default if the environment sets no name.
    match name.is_none_or(|name| name.as_str().starts_with("unknown_service")) {
        true => Resource::builder()
            .with_attribute(version)
            .with_service_name("flitcast")
            .build(),
        false => named,
    }
}

/// An HTTP client that posts a batch and waits for the answer. Only the exporter's thread uses it.
#[derive(Debug)]
struct Client {
    agent: Agent,
    trouble: ExportFailure,
}

impl Client {
    fn new(trouble: ExportFailure) -> Client {
        let config = Agent::config_builder()
            .timeout_global(Some(BATCH))
            // The exporter handles error statuses itself.
            .http_status_as_error(false)
            // The collector is contacted directly, without a proxy.
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
        // The address without other parts of the URI, which may contain a password.
        let host = request.uri().host().unwrap_or_default().to_owned();
        let port = request.uri().port_u16();
        let at = port.map_or(host.clone(), |port| format!("{host}:{port}"));
        let answer = self.post(request);
        let note = |why: String| *lock(&self.trouble) = Some(why);
        match &answer {
            Ok(answer) if answer.status().is_success() => {}
            Ok(answer) => note(format!("{at} answers {}", answer.status())),
            Err(error) => note(format!("{at}: {error}")),
        }
        Ok(answer?)
    }
}
