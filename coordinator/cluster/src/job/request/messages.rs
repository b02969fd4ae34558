//! The messages of a request: their content, and the selection that is sent.

use std::path::PathBuf;

use flitcast_proto::DeliveryId;
use flitcast_proto::wire::control::{Payload, Version};

/// The messages of a request: their content, and the selection that is sent.
#[derive(Clone, Debug)]
pub struct Messages {
    /// The content.
    pub payload: Payload,
    /// Lengths by delivery, if they are known here.
    pub bytes: Vec<u64>,
    /// Deliveries that are not sent, because they were made before; in increasing order.
    pub left_out: Vec<DeliveryId>,
    /// The number of the job that this is a part of; 0 before it has begun.
    pub job_id: u64,
    /// The versions of messages made of files that are known from earlier runs, by message.
    pub versions: Vec<Version>,
    /// Whether a record of the job is on the disk, or is written before the first round.
    pub recorded: bool,
    /// The output of the gather that follows a scatter, which must be empty.
    pub later_output: Option<PathBuf>,
}

impl Messages {
    /// Creates the messages of a job that has not begun, with nothing left out.
    pub fn new(payload: Payload, bytes: Vec<u64>) -> Messages {
        Messages {
            payload,
            bytes,
            left_out: Vec::new(),
            job_id: 0,
            versions: Vec::new(),
            recorded: false,
            later_output: None,
        }
    }
}
