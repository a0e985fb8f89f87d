//! The list of a host as it is followed.

use std::sync::Arc;

use wakeful_wire::rpc::{Cursor, OlderSettled, Omissions, ShellItem, ShellRow};

/// What is held of a host's list. It begins empty, and without a cursor.
#[derive(Debug, Default)]
pub(super) struct List {
    /// Where it is; nothing until a snapshot has come.
    pub(super) cursor: Option<Cursor>,
    /// The rows.
    pub(super) rows: Vec<Arc<ShellRow>>,
    /// What was left out of the settled threads.
    pub(super) older_settled: Option<OlderSettled>,
    /// Whether everything has come that had happened when the list was asked for.
    pub(super) complete: bool,
}

impl List {
    /// Takes in an item of the subscription.
    pub(super) fn apply(&mut self, item: ShellItem) {
        match item {
            ShellItem::Snapshot { snapshot } => {
                self.cursor = Some(snapshot.cursor);
                self.rows = snapshot.rows;
                self.older_settled = snapshot.older_settled;
            }
            ShellItem::Resumed { cursor } => self.cursor = Some(cursor),
            ShellItem::Synchronized { cursor } => {
                self.cursor = Some(cursor);
                self.complete = true;
            }
            ShellItem::Changes { seq, rows, removed } => {
                self.rows.retain(|row| {
                    !removed.contains(&row.id) && !rows.iter().any(|new| new.id == row.id)
                });
                self.rows.extend(rows);
                if let Some(cursor) = &mut self.cursor {
                    cursor.seq = seq;
                }
            }
            ShellItem::Unknown => {}
        }
    }
}

/// What a host may leave out of a list.
pub(super) const fn omissions(all: bool) -> Omissions {
    Omissions { families: !all, older_settled: !all }
}

#[cfg(test)]
mod tests {
    use wakeful_wire::rpc::{Epoch, Seq, ShellSnapshot};

    use super::{
        super::tests::{id, row},
        *,
    };

    #[test]
    fn a_followed_list_is_replaced_changed_and_resumed() {
        let at = |epoch, seq| Cursor { epoch: Epoch(epoch), seq: Seq(seq) };
        let mut list = List::default();
        let rows = vec![Arc::new(row(1)), Arc::new(row(2))];
        let snapshot = ShellSnapshot { cursor: at(1, 5), rows, ..ShellSnapshot::default() };
        list.apply(ShellItem::Snapshot { snapshot });
        assert!(!list.complete && list.cursor == Some(at(1, 5)));
        list.apply(ShellItem::Synchronized { cursor: at(1, 6) });
        assert!(list.complete);
        let mut changed = row(2);
        changed.queued = 7;
        let rows = vec![Arc::new(changed), Arc::new(row(3))];
        list.apply(ShellItem::Changes { seq: Seq(9), rows, removed: vec![id(1), id(8)] });
        let held: Vec<_> = list.rows.iter().map(|row| (row.id, row.queued)).collect();
        assert_eq!(held, [(id(2), 7), (id(3), 0)]);
        assert_eq!(list.cursor, Some(at(1, 9)));
        list.apply(ShellItem::Resumed { cursor: at(2, 9) });
        assert_eq!((list.cursor, list.rows.len()), (Some(at(2, 9)), 2));
        let snapshot = ShellSnapshot { cursor: at(3, 2), ..ShellSnapshot::default() };
        list.apply(ShellItem::Snapshot { snapshot });
        assert!(list.rows.is_empty());
    }
}
