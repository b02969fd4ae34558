//! A client for metrics that acts like Prometheus.

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::Running;

/// Time limit: longer than any answer takes.
const PATIENCE: Duration = Duration::from_secs(20);

/// A page of metrics, with the numbers by name and labels.
#[derive(Clone, Debug)]
pub struct Scraped {
    pub text: String,
    numbers: BTreeMap<String, f64>,
}

impl Scraped {
    /// Returns a number, such as `flitcast_rounds_total{operation="scatter"}`.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.numbers.get(name).copied()
    }

    /// Returns a number that must exist.
    #[track_caller]
    pub fn number(&self, name: &str) -> f64 {
        let number = self.get(name);
        number.unwrap_or_else(|| panic!("no {name} in\n{}", self.text))
    }

    pub fn names(&self) -> Vec<&str> {
        let lines = self.text.lines();
        let types = lines.filter_map(|line| line.strip_prefix("# TYPE "));
        types.filter_map(|line| line.split(' ').next()).collect()
    }
}

/// Returns the address of a run's metrics from its stderr.
#[track_caller]
pub fn address(run: &mut Running) -> SocketAddr {
    let line = run.wait_for(&["metrics at http://"]);
    let address = line.trim_start_matches("metrics at http://");
    let address = address.trim_end_matches("/metrics").parse();
    address.unwrap_or_else(|error| panic!("{line}: {error}"))
}

/// Returns the metrics at this address; `None` if no process listens.
pub fn scrape(address: SocketAddr) -> Option<Scraped> {
    let (status, text) = ask(address, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").ok()?;
    assert_eq!(status, 200, "{text}");
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    let numbers = samples.map(|line| {
        let (name, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("{line}"));
        let value = value.parse().unwrap_or_else(|e| panic!("{line}: {e}"));
        (name.to_owned(), value)
    });
    let numbers = numbers.collect();
    Some(Scraped { text, numbers })
}

/// Sends a request and returns the status and the body of the answer.
///
/// # Errors
///
/// Returns an error if there is no answer.
#[track_caller]
pub fn ask(address: SocketAddr, request: &str) -> io::Result<(u16, String)> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let parts = answer.split_once("\r\n\r\n");
    let (head, body) = parts.ok_or(io::ErrorKind::UnexpectedEof)?;
    let status = head.split(' ').nth(1).map(str::parse);
    let length = format!("Content-Length: {}", body.len());
    assert!(head.contains(&length), "{head}");
    let status = status.expect("an answer has a status");
    Ok((status.map_err(io::Error::other)?, body.to_owned()))
}
