//! Names of the kinds of control messages. Errors name an unexpected message by its kind alone,
//! since its lists may be as long as a frame permits.

use super::{FromPe, ToPe};

impl FromPe {
    /// Returns the name of the message's kind.
    pub fn kind(&self) -> &'static str {
        match self {
            FromPe::Join(_) => "Join",
            FromPe::Register(_) => "Register",
            FromPe::Ready(_) => "Ready",
            FromPe::ProbeResult { .. } => "ProbeResult",
            FromPe::Prepared => "Prepared",
            FromPe::Report(_) => "Report",
            FromPe::Progress { .. } => "Progress",
            FromPe::Fault { .. } => "Fault",
            FromPe::Pong(_) => "Pong",
            FromPe::Line(_) => "Line",
            FromPe::Ran(_) => "Ran",
            FromPe::Cleared { .. } => "Cleared",
            FromPe::FilesMeasured(_) => "FilesMeasured",
            FromPe::HostMeasured { .. } => "HostMeasured",
            FromPe::PrefixesChecked { .. } => "PrefixesChecked",
            FromPe::ClockRead { .. } => "ClockRead",
        }
    }
}

impl ToPe {
    /// Returns the name of the message's kind.
    pub fn kind(&self) -> &'static str {
        match self {
            ToPe::Welcome(_) => "Welcome",
            ToPe::Refusal { .. } => "Refusal",
            ToPe::Assignment(_) => "Assignment",
            ToPe::ProbeEdge { .. } => "ProbeEdge",
            ToPe::MeasureFiles => "MeasureFiles",
            ToPe::MeasureHost { .. } => "MeasureHost",
            ToPe::CheckPrefixes { .. } => "CheckPrefixes",
            ToPe::Prepare(_) => "Prepare",
            ToPe::ReadClock => "ReadClock",
            ToPe::Trigger { .. } => "Trigger",
            ToPe::Collect { .. } => "Collect",
            ToPe::Stop { .. } => "Stop",
            ToPe::Abort { .. } => "Abort",
            ToPe::Ping { .. } => "Ping",
            ToPe::Run(_) => "Run",
            ToPe::Clear { .. } => "Clear",
        }
    }
}
