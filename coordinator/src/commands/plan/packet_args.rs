//! The options of plans in packets.

use std::str::FromStr;

use clap::{Args, ValueEnum};
use flitcast_plan::packets::Split;
use flitcast_plan::packets::model::{LinkCost, Part, Run};
use flitcast_plan::packets::search::MOST_NODES;

use flitcast_cluster::options::pes::parse_pe;

/// Options of plans in packets.
#[derive(Debug, Args)]
pub struct PacketArgs {
    /// Plan in packets: the set-up cost of a packet on each link, as a multiple of a flit's time, an
    /// integer or a fraction like 3/2.
    #[arg(long, value_name = "BETA")]
    pub setup: Option<LinkCost>,
    /// How messages are cut: auto; mixed, so that a packet may also have flits for PEs on its way;
    /// COUNT even packets each, or one per flit; sizes:S1,S2,.. of one nonnull message;
    /// sequence:4x1,3x2,3x1 of all, the PE and the flits of each packet that P0 sends, or
    /// sequence:4x1+3x2,3x1 with mixed ones; with --algorithm certification auto or cap:C, the largest packet [default: auto].
    #[arg(long, value_name = "PACKETS", requires = "setup")]
    pub packets: Option<Packets>,
    /// Limit of nodes that the search for a better plan visits, on trees where no plan is known to be
    /// optimal; 0 for no search [default: 200000].
    #[arg(long, value_name = "NODES", requires = "setup",
        value_parser = clap::value_parser!(u64).range(..=MOST_NODES))]
    pub search: Option<u64>,
}

/// The time that a control item takes on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ControlArg {
    /// The time of a packet of one flit, as in the paper.
    Packet,
    /// No time: it goes between two packets, as on real links.
    Free,
}

/// How messages are cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Packets {
    Auto,
    /// The best packets found that may mix messages.
    Mixed,
    Split(Split),
    /// Each message into even packets of at most this number of flits.
    Cap(u64),
}

impl FromStr for Packets {
    type Err = String;

    fn from_str(text: &str) -> Result<Packets, String> {
        let unknown = || {
            format!(
                "`{text}` does not say how to cut messages: auto, mixed, a COUNT of even packets \
                 each, sizes:S1,S2,.. with the flits of each packet of one message, \
                 sequence:PExFLITS,.. with every packet of all messages, or cap:C (C at least 1) \
                 with --algorithm certification"
            )
        };
        let number = |part: &str| part.trim().parse::<u64>().map_err(|_| unknown());
        let part = |part: &str| {
            let (pe, flits) = part.split_once('x').ok_or_else(unknown)?;
            let flits = flits.trim().parse().ok().filter(|&flits| flits > 0);
            Ok::<_, String>(Part {
                pe: parse_pe(pe.trim()).map_err(|_| unknown())?,
                flits: flits.ok_or_else(unknown)?,
            })
        };
        let packet = |parts: &str| {
            let mut parts = parts.split('+').map(part);
            let Part { pe, flits } = parts.next().ok_or_else(unknown)??;
            Ok::<_, String>(Run {
                also: parts.collect::<Result<_, _>>()?,
                ..Run::new(pe, flits, 1)
            })
        };
        match text.split_once(':') {
            None if text == "auto" => Ok(Packets::Auto),
            None if text == "mixed" => Ok(Packets::Mixed),
            None => Ok(Packets::Split(Split::Count(number(text)?))),
            Some(("sizes", sizes)) => {
                let sizes = sizes.split(',').map(number).collect::<Result<_, _>>()?;
                Ok(Packets::Split(Split::Sizes(sizes)))
            }
            Some(("sequence", packets)) => {
                let packets = packets.split(',').map(packet).collect::<Result<_, _>>()?;
                Ok(Packets::Split(Split::Sequence(packets)))
            }
            Some(("cap", cap)) => match number(cap)? {
                0 => Err(unknown()),
                cap => Ok(Packets::Cap(cap)),
            },
            Some(_) => Err(unknown()),
        }
    }
}
