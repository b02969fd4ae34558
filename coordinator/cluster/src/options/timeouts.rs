//! `--timeouts heartbeat=0.5s,silence=3s`: time limits of the processes of a cluster, as users write
//! them. [`Timeouts`] describes each.

use std::time::Duration;

use flitcast_node::limits::Timeouts;

use crate::text::units::{ExactTime, parse_time};

/// Below this, a busy machine's own pauses would look like silence.
const SHORTEST: Duration = Duration::from_millis(10);
/// Above this, no user waits any more.
const LONGEST: Duration = Duration::from_secs(24 * 3600);
/// Minimum number of pings that may be lost before a PE is considered dead.
const LOST_PINGS: u32 = 3;

/// One of the timeouts.
#[derive(Clone, Copy)]
pub struct Timeout {
    /// The name on the command line.
    pub name: &'static str,
    field: fn(&mut Timeouts) -> &mut Duration,
}

/// All timeouts, with the field of each.
pub const ALL: [Timeout; 6] = [
    timeout("heartbeat", |timeouts| &mut timeouts.heartbeat),
    timeout("silence", |timeouts| &mut timeouts.silence),
    timeout("handshake", |timeouts| &mut timeouts.handshake),
    timeout("connect", |timeouts| &mut timeouts.connect),
    timeout("write", |timeouts| &mut timeouts.write),
    timeout("disk", |timeouts| &mut timeouts.disk),
];

const fn timeout(name: &'static str, field: fn(&mut Timeouts) -> &mut Duration) -> Timeout {
    Timeout { name, field }
}

impl Timeout {
    pub fn named(name: &str) -> Option<Timeout> {
        ALL.into_iter().find(|timeout| timeout.name == name)
    }

    /// Sets this timeout to the time in `text`.
    pub fn set(self, timeouts: &mut Timeouts, text: &str) -> Result<(), String> {
        let Timeout { name, field } = self;
        let time = parse_time(text).map_err(|fault| format!("{name}: {fault}"))?;
        let time = Duration::from_nanos(time);
        if !(SHORTEST..=LONGEST).contains(&time) {
            let [time, least, most] = [time, SHORTEST, LONGEST].map(exact);
            return Err(format!("{name}: {time} is not from {least} to {most}"));
        }
        *field(timeouts) = time;
        Ok(())
    }

    pub fn of(self, timeouts: &Timeouts) -> ExactTime {
        exact(*(self.field)(&mut timeouts.clone()))
    }
}

fn exact(time: Duration) -> ExactTime {
    ExactTime(time.as_nanos() as u64)
}

/// Checks that a few lost pings do not count as a death.
pub fn check(timeouts: &Timeouts) -> Result<(), String> {
    if timeouts.silence >= timeouts.heartbeat * LOST_PINGS {
        return Ok(());
    }
    let [silence, heartbeat] = [timeouts.silence, timeouts.heartbeat].map(exact);
    Err(format!(
        "silence: {silence} is less than {LOST_PINGS} heartbeats of {heartbeat}, so that a lost one \
         would look like a death"
    ))
}

/// Parses timeouts; those not named keep their defaults. Returns all errors in the text.
pub fn parse(text: &str) -> Result<Timeouts, Vec<String>> {
    over(Timeouts::default(), text)
}

/// Parses timeouts; those not named keep their values in `before`. Returns all errors in the text.
pub fn over(before: Timeouts, text: &str) -> Result<Timeouts, Vec<String>> {
    let mut timeouts = before;
    let mut faults = Vec::new();
    let mut given = Vec::new();
    for part in text.split(',') {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        let Some(timeout) = Timeout::named(key.trim()) else {
            let part: String = part.chars().take(40).collect();
            let names = ALL.map(|timeout| timeout.name).join(", ");
            faults.push(format!(
                "`{part}`: write NAME=TIME, the name one of {names}"
            ));
            continue;
        };
        if given.contains(&timeout.name) {
            faults.push(format!("{} is given twice", timeout.name));
        }
        given.push(timeout.name);
        faults.extend(timeout.set(&mut timeouts, value).err());
    }
    faults.extend(check(&timeouts).err());
    match faults.is_empty() {
        true => Ok(timeouts),
        false => Err(faults),
    }
}

/// Returns all timeouts in the form that [`parse`] reads.
pub fn written(timeouts: &Timeouts) -> String {
    let settings = ALL.map(|timeout| format!("{}={}", timeout.name, timeout.of(timeouts)));
    settings.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_timeouts_are_read_back() {
        for timeouts in [
            Timeouts::default(),
            parse("silence=1.5s, heartbeat=20ms,disk=3600s").expect("they are right"),
        ] {
            assert_eq!(parse(&written(&timeouts)), Ok(timeouts));
        }
        assert_eq!(
            written(&Timeouts::default()),
            "heartbeat=500ms,silence=3s,handshake=2s,connect=5s,write=10s,disk=300s"
        );
    }

    #[test]
    fn all_faults_are_reported() {
        let faults = |text: &str| parse(text).expect_err(text);
        let all = faults("patience=3s,silence=soon,write=10,write=1us,handshake=2s,handshake=2s");
        assert_eq!(all.len(), 6, "{all:#?}");
        for (fault, part) in all.iter().zip([
            "`patience=3s`: write NAME=TIME, the name one of heartbeat, silence, ",
            "silence: ",
            "write: ",
            "write is given twice",
            "write: 1us is not from 10ms to ",
            "handshake is given twice",
        ]) {
            assert!(fault.starts_with(part), "{fault}");
        }
        assert_eq!(faults("").len(), 1);
        let hasty = faults("heartbeat=2s");
        assert!(
            hasty[0].starts_with("silence: 3s is less than 3 heartbeats of 2s"),
            "{hasty:?}"
        );
    }
}
