//! Emulated links as users write them: `rate=200mbit,latency=1ms` after `--link`, and the same words in
//! a tree file. [`flitcast_proto::shape`] defines the behaviour of a shaped link.

use std::collections::BTreeMap;
use std::fmt;

use flitcast_proto::PeId;
use flitcast_proto::cost::{Edge, Link};
use flitcast_proto::shape::{self, MAX_LATENCY_NS, MAX_NS_PER_BYTE};

use crate::text::units::{BitRate, ExactTime, parse_rate, parse_time};

/// The lowest rate, [`MAX_NS_PER_BYTE`] as a rate.
const LOWEST: BitRate = BitRate((8e9 / MAX_NS_PER_BYTE) as u64);
/// The highest rate, beyond the memory bandwidth of one machine; a user without a limit should write
/// `unlimited`.
const HIGHEST: BitRate = BitRate(100_000_000_000);
const LONGEST: ExactTime = ExactTime(MAX_LATENCY_NS as u64);

/// One direction of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkSpec {
    /// The rate; `None` for no limit.
    pub rate: Option<BitRate>,
    /// The latency added to the machine's own.
    pub latency: Option<ExactTime>,
    /// The time for which a packet occupies the ports at both ends, whatever its length.
    pub setup: Option<ExactTime>,
}

/// Both directions of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EdgeSpec {
    /// From parent to child.
    pub down: LinkSpec,
    /// From child to parent.
    pub up: LinkSpec,
}

/// Links to the parents of certain PEs.
pub type Links = BTreeMap<PeId, EdgeSpec>;

/// Parses a rate within bounds, or `unlimited`.
pub fn rate(text: &str) -> Result<Option<BitRate>, String> {
    if text.trim().eq_ignore_ascii_case("unlimited") {
        return Ok(None);
    }
    let rate = parse_rate(text).map_err(|fault| format!("rate: {fault}"))?;
    match (LOWEST.0..=HIGHEST.0).contains(&rate) {
        true => Ok(Some(BitRate(rate))),
        false => Err(format!(
            "rate: {} is not from {LOWEST} to {HIGHEST}, nor `unlimited`",
            BitRate(rate)
        )),
    }
}

/// Parses a latency within bounds.
pub fn latency(text: &str) -> Result<ExactTime, String> {
    time("latency", text)
}

/// Parses a time within bounds.
fn time(key: &str, text: &str) -> Result<ExactTime, String> {
    let time = parse_time(text).map_err(|fault| format!("{key}: {fault}"))?;
    match time <= LONGEST.0 {
        true => Ok(ExactTime(time)),
        false => Err(format!("{key}: {} is more than {LONGEST}", ExactTime(time))),
    }
}

impl LinkSpec {
    /// Parses the value of `--link`; returns all errors in it.
    pub fn parse(text: &str) -> Result<LinkSpec, Vec<String>> {
        let mut faults = Vec::new();
        let mut link = LinkSpec::default();
        let mut given = Vec::new();
        for part in text.split(',') {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            let key = key.trim();
            let read = match key {
                "rate" => rate(value).map(|rate| link.rate = rate),
                "latency" => latency(value).map(|latency| link.latency = Some(latency)),
                "setup" => time(key, value).map(|setup| link.setup = Some(setup)),
                _ => {
                    faults.push(format!(
                        "`{part}`: write rate=RATE, latency=TIME or both, like \
                         rate=200mbit,latency=1ms, and setup=TIME for what each flit takes besides"
                    ));
                    continue;
                }
            };
            faults.extend(read.err());
            if given.contains(&key) {
                faults.push(format!("{key} is given twice"));
            }
            given.push(key);
        }
        if faults.is_empty() {
            faults.extend(link.check().err());
        }
        match faults.is_empty() {
            true => Ok(link),
            false => Err(faults),
        }
    }

    /// Returns the text that [`LinkSpec::parse`] reads.
    pub fn written(&self) -> String {
        let rate = self.rate.map_or("unlimited".to_owned(), |r| r.to_string());
        let latency = self.latency.map(|latency| format!(",latency={latency}"));
        let setup = self.setup.map(|setup| format!(",setup={setup}"));
        let [latency, setup] = [latency, setup].map(Option::unwrap_or_default);
        format!("rate={rate}{latency}{setup}")
    }

    /// Checks that rate and latency fit together.
    pub fn check(&self) -> Result<(), String> {
        shape::check(&self.link()).map_err(|fault| format!("{self}: {fault}"))
    }

    /// Returns the link as PEs receive it.
    pub fn link(&self) -> Link {
        Link {
            latency_ns: self.latency.map_or(0.0, |latency| latency.0 as f64),
            setup_ns: self.setup.map_or(0.0, |setup| setup.0 as f64),
            ns_per_byte: self.rate.map_or(0.0, |rate| 8e9 / rate.0 as f64),
            burst_bytes: 0.0,
        }
    }
}

impl EdgeSpec {
    /// Returns an edge with this link in both directions.
    pub fn alike(link: LinkSpec) -> EdgeSpec {
        EdgeSpec {
            down: link,
            up: link,
        }
    }

    pub fn edge(&self) -> Edge {
        Edge {
            down: self.down.link(),
            up: self.up.link(),
        }
    }
}

/// `200mbit, 1ms`, or the one that was chosen.
impl fmt::Display for LinkSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.rate, self.latency) {
            (Some(rate), Some(latency)) => write!(f, "{rate}, {latency}"),
            (Some(rate), None) => write!(f, "{rate}"),
            (None, Some(latency)) => write!(f, "{latency}"),
            (None, None) => f.write_str("unlimited rate"),
        }?;
        match self.setup {
            Some(setup) => write!(f, ", {setup} a flit"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for EdgeSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.down == self.up {
            true => write!(f, "{}", self.down),
            false => write!(f, "{} down and {} up", self.down, self.up),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_parsed() {
        for (text, printed, latency_ns, ns_per_byte) in [
            ("rate=200mbit,latency=1ms", "200mbit, 1ms", 1e6, 40.0),
            ("latency=0.5us, rate=10gbit", "10gbit, 500ns", 500.0, 0.8),
            ("rate=1kbit", "1kbit", 0.0, 8e6),
            ("rate=100gbit", "100gbit", 0.0, 0.08),
            ("latency=1s", "1s", 1e9, 0.0),
            ("rate=Unlimited,latency=3ms", "3ms", 3e6, 0.0),
            ("rate=unlimited", "unlimited rate", 0.0, 0.0),
        ] {
            let link = LinkSpec::parse(text).expect(text);
            assert_eq!(EdgeSpec::alike(link).to_string(), printed);
            let expected = Link {
                latency_ns,
                setup_ns: 0.0,
                ns_per_byte,
                burst_bytes: 0.0,
            };
            assert_eq!(link.link(), expected, "{text}");
        }
        let link = LinkSpec::parse("rate=200mbit,setup=5us").expect("it is one");
        assert_eq!(link.to_string(), "200mbit, 5us a flit");
        assert_eq!(link.link().setup_ns, 5_000.0);
        assert_eq!(LinkSpec::parse(&link.written()), Ok(link));
    }
}
