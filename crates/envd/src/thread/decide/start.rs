//! What a start of the host closes.

use wakeful_wire::rpc::{Epoch, EventBody, Outcome, WithdrawnWhy};

use super::{About, draft::Draft, queue};

/// The host started: every turn that was running is cut, every permission that waited is
/// withdrawn, every agent is gone.
///
/// Whether the host crashed, was killed or was suspended in between makes no difference: no process
/// of it lives any more, and none of its agents does.
pub(super) fn start(draft: &mut Draft<'_>, epoch: Epoch) -> About {
    draft.push_host(EventBody::HostStarted { epoch });
    let mut open: Vec<_> = draft
        .state
        .threads()
        .filter(|thread| !thread.deleted)
        .filter(|thread| {
            thread.turn.is_some()
                || !thread.permissions.is_empty()
                || !thread.open_tools.is_empty()
                || thread.session.as_ref().is_some_and(|session| session.live)
        })
        .map(|thread| thread.id)
        .collect();
    open.sort_unstable();
    for id in open {
        queue::withdraw_all(draft, id, WithdrawnWhy::AgentEnded);
        queue::end_turn(draft, id, Outcome::Cut);
        draft.push(id, EventBody::AgentEnded { why: "the environment was stopped".to_owned() });
    }
    (None, None)
}
