//! A server for the part of HTTP/1.1 that a scrape needs: it answers `GET /metrics` and closes the
//! connection. Any other request receives an error status.
//!
//! A PE serves on the thread that does its work, so the share of time for requests is bounded:
//! connections are accepted one by one, with pauses between them.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

/// Maximum number of simultaneous connections, enough for several Prometheus servers and a user.
/// Further connections wait in the kernel.
const CONNECTIONS: usize = 16;
/// Maximum bytes of a request with all its headers; Prometheus sends about 300.
const LONGEST_REQUEST: usize = 8 * 1024;
/// Maximum time to receive a request.
const REQUEST: Duration = Duration::from_secs(2);
/// Maximum time to send an answer; Prometheus gives up after 10 s.
const ANSWER: Duration = Duration::from_secs(10);
/// Minimum pause after each accepted or failed connection, which limits the server to 20 answers
/// per second.
const PAUSE: Duration = Duration::from_millis(50);
/// The pause is at least this many times as long as the page took to write, so that writing takes
/// at most a hundredth of the time.
const SHARE: u32 = 100;
/// Maximum pause, so that a user never waits long for an answer.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Accepts and answers connections; never returns.
pub async fn serve(listener: TcpListener, page: impl Fn() -> String + Send + Sync + 'static) {
    let took = Arc::new(Mutex::new(Duration::ZERO));
    let page = {
        let took = took.clone();
        Arc::new(move || {
            let began = Instant::now();
            let page = page();
            *took.lock().unwrap_or_else(PoisonError::into_inner) = began.elapsed();
            page
        })
    };
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        // The semaphore is never closed.
        let Ok(place) = places.clone().acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok((stream, peer)) => {
                let page = page.clone();
                tokio::spawn(async move {
                    if let Err(error) = answer(stream, &*page).await {
                        tracing::debug!(%peer, %error, "a scrape was cut off");
                    }
                    drop(place);
                });
            }
            Err(error) => tracing::debug!(%error, "a scrape cannot be answered"),
        }
        let took = *took.lock().unwrap_or_else(PoisonError::into_inner);
        sleep((SHARE * took).clamp(PAUSE, LONGEST_PAUSE)).await;
    }
}

async fn answer(mut stream: TcpStream, page: &(dyn Fn() -> String + Sync)) -> io::Result<()> {
    let request = timeout(REQUEST, request(&mut stream)).await;
    let (status, body) = match request {
        Err(_) => (
            "408 Request Timeout",
            "the request did not come\n".to_owned(),
        ),
        Ok(line) => match check_request(&line?) {
            Ok(()) => ("200 OK", page()),
            Err((status, why)) => (status, format!("{why}\n")),
        },
    };
    let allow = match status.starts_with("405") {
        true => "Allow: GET\r\n",
        false => "",
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
         Content-Length: {}\r\n{allow}Connection: close\r\n\r\n",
        body.len()
    );
    let writing = async {
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(body.as_bytes()).await?;
        stream.shutdown().await
    };
    timeout(ANSWER, writing).await?
}

/// Reads a request up to the end of its headers. The result is shorter if the connection ended
/// before, and is cut if the request is too long.
async fn request(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut request = Vec::new();
    let mut part = [0; 1024];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") && request.len() < LONGEST_REQUEST {
        match stream.read(&mut part).await? {
            0 => break,
            bytes => request.extend_from_slice(&part[..bytes]),
        }
    }
    Ok(request)
}

/// Checks that a request is one for metrics; otherwise returns the status and the text of the answer.
pub fn check_request(request: &[u8]) -> Result<(), (&'static str, &'static str)> {
    if !request.windows(4).any(|end| end == b"\r\n\r\n") {
        return Err(match request.len() {
            LONGEST_REQUEST.. => ("431 Request Header Fields Too Large", "too long"),
            _ => ("400 Bad Request", "no whole request"),
        });
    }
    let line = request.split(|&byte| byte == b'\r').next().unwrap_or(&[]);
    let line = str::from_utf8(line).unwrap_or_default();
    let mut parts = line.split(' ');
    let (method, target, version) = (parts.next(), parts.next(), parts.next());
    if !version.is_some_and(|version| version.starts_with("HTTP/1.")) || parts.next().is_some() {
        return Err(("400 Bad Request", "no request of HTTP/1"));
    }
    let path = target.map(|target| target.split('?').next().unwrap_or_default());
    match (method, path) {
        (Some("GET"), Some("/metrics")) => Ok(()),
        (_, Some("/metrics")) => Err(("405 Method Not Allowed", "only GET")),
        _ => Err(("404 Not Found", "there is /metrics, and nothing else")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_metrics_can_be_got() {
        let status =
            |request: &str| check_request(request.as_bytes()).map_err(|(status, _)| &status[..3]);
        for good in ["/metrics", "/metrics?a=b"] {
            let request = format!("GET {good} HTTP/1.1\r\nHost: x\r\n\r\n");
            assert_eq!(status(&request), Ok(()));
        }
        for (request, expected) in [
            ("POST /metrics HTTP/1.1\r\n\r\n", "405"),
            ("GET / HTTP/1.1\r\n\r\n", "404"),
            ("GET /metrics/.. HTTP/1.0\r\n\r\n", "404"),
            ("GET /metrics\r\n\r\n", "400"),
            ("GET /metrics HTTP/2\r\n\r\n", "400"),
            ("GET /metrics HTTP/1.1 x\r\n\r\n", "400"),
            ("\r\n\r\n", "400"),
            ("GET /metrics HTTP/1.1\r\n", "400"),
            (&"a".repeat(LONGEST_REQUEST), "431"),
        ] {
            assert_eq!(status(request), Err(expected), "{request:?}");
        }
    }
}
