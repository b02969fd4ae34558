//! The output of `--format json`.

use serde_json::Value;

/// The JSON object on stdout.
#[derive(Clone, Debug)]
pub struct Report(Value);

impl Report {
    /// Parses the output.
    #[track_caller]
    pub fn parse(stdout: &str) -> Report {
        match serde_json::from_str(stdout) {
            Ok(value @ Value::Object(_)) => Report(value),
            other => panic!("not a JSON object: {other:?}, in\n{stdout}"),
        }
    }

    /// Returns a value by its JSON pointer, like `/round/bytes`.
    #[track_caller]
    pub fn value(&self, pointer: &str) -> &Value {
        let value = self.0.pointer(pointer);
        value.unwrap_or_else(|| panic!("no {pointer} in {:#}", self.0))
    }

    #[track_caller]
    pub fn number(&self, pointer: &str) -> u64 {
        let number = self.value(pointer).as_u64();
        number.unwrap_or_else(|| panic!("{pointer} is no whole number in {:#}", self.0))
    }

    #[track_caller]
    pub fn float(&self, pointer: &str) -> f64 {
        let number = self.value(pointer).as_f64();
        number.unwrap_or_else(|| panic!("{pointer} is no number in {:#}", self.0))
    }

    #[track_caller]
    pub fn list(&self, pointer: &str) -> &[Value] {
        let list = self.value(pointer).as_array();
        list.unwrap_or_else(|| panic!("{pointer} is no list in {:#}", self.0))
    }

    /// Returns the lengths of the messages of P1, P2 and so on.
    #[track_caller]
    pub fn message_bytes(&self) -> Vec<u64> {
        let bytes = |pe| self.number(&format!("/pes/{pe}/bytes"));
        (1..self.list("/pes").len()).map(bytes).collect()
    }

    /// Checks that every message was predicted and measured, and that no relay held more than one
    /// flit of a message.
    #[track_caller]
    pub fn assert_all_arrived(&self) {
        let bytes = self.message_bytes();
        assert_eq!(self.number("/round/bytes"), bytes.iter().sum::<u64>());
        let messages = bytes.iter().filter(|&&bytes| bytes > 0).count();
        assert_eq!(self.number("/round/messages"), messages as u64);
        for (pe, bytes) in (1..).zip(bytes) {
            let of = |what: &str| format!("/pes/{pe}/{what}");
            if bytes == 0 {
                let measured = self.value(&of("measured_us"));
                assert!(measured.is_null(), "P{pe} has nothing");
                continue;
            }
            assert!(self.float(&of("predicted_us")) > 0.0, "P{pe}");
            assert!(self.float(&of("measured_us/median")) > 0.0, "P{pe}");
            let round = self.float("/round/measured_us/max");
            assert!(self.float(&of("measured_us/max")) <= round, "P{pe}");
        }
        // A PE with a static schedule holds messages that it sends on.
        let is_held = self.value("/algorithm") == "listed";
        // One flit on each tree.
        let trees = self.0.pointer("/trees/count").and_then(Value::as_u64);
        assert!(is_held || self.number("/round/peak_buffered_flits") <= trees.unwrap_or(1));
    }
}
