//! The rounds that are to be conducted, and what each PE is told of them beforehand.

use flitcast_proto::PeId;
use flitcast_proto::ops::Brief;
use flitcast_proto::wire::control::Prepare;

use super::Setting;

/// Rounds that are to be conducted, each like the others.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Bytes of M_i, by PE index; `[0]` is 0.
    pub bytes: Vec<u64>,
    /// What each PE is told, by PE index: the very briefs that were predicted with.
    pub briefs: Vec<Brief>,
    /// How many.
    pub rounds: u64,
    /// What one is expected to take.
    pub predicted_ns: u64,
}

impl Plan {
    /// The messages that are not null: whose, and how long each is.
    pub fn messages(&self) -> impl Iterator<Item = (PeId, u64)> + '_ {
        let all = (0..).map(PeId).zip(self.bytes.iter().copied());
        all.skip(1).filter(|(_, bytes)| *bytes > 0)
    }

    /// What each PE is told.
    pub(super) fn prepares(&self, setting: &Setting) -> Vec<(PeId, Prepare)> {
        let prepare = |(pe, brief): (PeId, &Brief)| {
            let (brief, rounds) = (brief.clone(), self.rounds);
            (pe, Prepare { brief, rounds })
        };
        let tree = &setting.tree;
        let briefs = tree.ids().zip(&self.briefs);
        briefs
            .filter(|(pe, _)| tree.contains(*pe))
            .map(prepare)
            .collect()
    }
}
