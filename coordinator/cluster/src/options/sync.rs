//! The values of `--sync`, which sets when files are durable, and of `--token`, which sets how
//! certification synchronises.

use anyhow::bail;
use clap::ValueEnum;
use flitcast_proto::Durability;

/// How certification synchronises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TokenArg {
    /// One child after the other, as the paper words it.
    Serial,
    /// All in twice the tree's broadcast time.
    Pipelined,
}

/// When arrived files are durable; `serial` and `pipelined` are earlier words for those of `--token`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SyncArg {
    /// When their message becomes visible.
    Message,
    /// Each when it is complete.
    File,
    /// When the kernel writes them.
    None,
    /// `--token serial`.
    #[value(hide = true)]
    Serial,
    /// `--token pipelined`.
    #[value(hide = true)]
    Pipelined,
}

impl SyncArg {
    /// Returns the value of `--token` that is meant.
    pub fn token(self) -> Option<TokenArg> {
        match self {
            SyncArg::Serial => Some(TokenArg::Serial),
            SyncArg::Pipelined => Some(TokenArg::Pipelined),
            SyncArg::Message | SyncArg::File | SyncArg::None => None,
        }
    }
}

/// Returns when files are durable, or an error for a word that is not about files.
pub fn durability(sync: Option<SyncArg>) -> anyhow::Result<Durability> {
    match sync {
        None | Some(SyncArg::Message) => Ok(Durability::Message),
        Some(SyncArg::File) => Ok(Durability::File),
        Some(SyncArg::None) => Ok(Durability::Never),
        Some(SyncArg::Serial | SyncArg::Pipelined) => bail!(
            "--sync: `serial` and `pipelined` belong to gather --algorithm certification, as --token; \
             use message, file or none"
        ),
    }
}

pub fn durability_named(name: &str) -> Option<Durability> {
    let all = [Durability::Message, Durability::File, Durability::Never];
    all.into_iter()
        .find(|durability| durability_name(*durability) == name)
}

pub fn durability_name(durability: Durability) -> &'static str {
    match durability {
        Durability::Message => "message",
        Durability::File => "file",
        Durability::Never => "none",
    }
}
