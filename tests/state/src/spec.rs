//! The sequential specification of the state: its behavior when operations follow each other.

use std::hash::{Hash, Hasher};

use crate::history::{Call, Guard, Key, Operation, Put, Reply, Seen};

/// The revision of a key's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Revision {
    Is(u64),
    /// Not reported yet; later than this.
    After(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Cell {
    value: i64,
    revision: Revision,
}

/// The whole state between two operations.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct State {
    /// The highest revision reported so far.
    high: u64,
    cells: Vec<Option<Cell>>,
}

impl Hash for State {
    fn hash<H: Hasher>(&self, to: &mut H) {
        self.high.hash(to);
        // An absent key equals one beyond the end.
        for (key, cell) in self.cells.iter().enumerate().filter(|(_, c)| c.is_some()) {
            (key, cell).hash(to);
        }
    }
}

impl State {
    /// The state after `op`, if `op` with its reply is possible now. `known_revision` is the revision of
    /// the operation if it is known although its own reply does not contain it.
    pub fn step(&self, op: &Operation, known_revision: Option<u64>) -> Option<State> {
        let mut next = self.clone();
        let reply = op.reply.as_ref().map(|(reply, _)| reply);
        match (&op.call, reply) {
            (Call::Get { key }, Some(Reply::Got(seen))) => next.see(*key, *seen)?,
            (Call::Commit { guards, writes }, reply) => {
                next.commit(guards, writes, reply, op.part, known_revision)?;
            }
            (Call::Add { key, delta }, reply) => {
                let sum = self.cell(*key).map_or(0, |cell| cell.value).checked_add(*delta)?;
                if let Some(Reply::Sum(said)) = reply
                    && *said != sum
                {
                    return None;
                }
                next.write(&[(*key, Some(sum))], known_revision)?;
            }
            (Call::Snapshot { keys }, Some(Reply::Snapshot { revision, entries })) => {
                if *revision < self.high || keys.len() != entries.len() {
                    return None;
                }
                for (key, seen) in keys.iter().zip(entries) {
                    next.see(*key, *seen)?;
                }
                // Later, too, than the revision just reported for this value.
                if *revision < next.high {
                    return None;
                }
                next.high = *revision;
            }
            (Call::Revision, Some(Reply::Revision(revision))) => {
                if *revision < self.high {
                    return None;
                }
                next.high = *revision;
            }
            (Call::Will { key, of, becomes }, None) => {
                if self.cell(*key)?.value != *of {
                    return None;
                }
                next.write(&[(*key, *becomes)], known_revision)?;
            }
            // A read without a reply, or a reply to another request.
            _ => return None,
        }
        Some(next)
    }

    /// The highest revision reported so far.
    pub fn high(&self) -> u64 {
        self.high
    }

    /// Whether a key has a value.
    pub fn has(&self, key: Key) -> bool {
        self.cell(key).is_some()
    }

    fn cell(&self, key: Key) -> Option<Cell> {
        self.cells.get(usize::from(key)).copied().flatten()
    }

    fn cell_mut(&mut self, key: Key) -> &mut Option<Cell> {
        let at = usize::from(key);
        if self.cells.len() <= at {
            self.cells.resize(at + 1, None);
        }
        &mut self.cells[at]
    }

    /// Whether a key is at this revision, which is then known.
    fn is_at(&mut self, key: Key, revision: u64) -> bool {
        match (self.cell(key), revision) {
            (None, 0) => true,
            (None, _) | (Some(_), 0) => false,
            (Some(cell), _) => match cell.revision {
                Revision::Is(at) => at == revision,
                Revision::After(low) => {
                    if revision <= low {
                        return false;
                    }
                    *self.cell_mut(key) = Some(Cell { revision: Revision::Is(revision), ..cell });
                    self.high = self.high.max(revision);
                    true
                }
            },
        }
    }

    fn see(&mut self, key: Key, seen: Option<Seen>) -> Option<()> {
        let right = match (self.cell(key), seen) {
            (None, None) => true,
            (Some(cell), Some(seen)) => {
                cell.value == seen.value && seen.revision.is_none_or(|at| self.is_at(key, at))
            }
            _ => false,
        };
        right.then_some(())
    }

    fn commit(
        &mut self,
        guards: &[Guard],
        writes: &[Put],
        reply: Option<&Reply>,
        part: bool,
        known_revision: Option<u64>,
    ) -> Option<()> {
        if let Some(Reply::Conflict { key, found }) = reply {
            return self.refuse(guards, writes, *key, *found);
        }
        for guard in guards {
            self.see(guard.key, guard.seen)?;
        }
        for write in writes {
            if let Some(expect) = write.expect
                && !self.is_at(write.key, expect)
            {
                return None;
            }
        }
        let changes = |w: &&Put| w.value.is_some() || self.cell(w.key).is_some();
        let effect: Vec<_> =
            writes.iter().filter(changes).map(|put| (put.key, put.value)).collect();
        match reply {
            Some(Reply::Done { revision, changed }) => {
                // With several keys, another one may have changed.
                if *changed == effect.is_empty() && !(part && *changed) {
                    return None;
                }
                if *changed { self.write(&effect, revision.or(known_revision)) } else { Some(()) }
            }
            // Without effect it need not have taken place.
            None if effect.is_empty() => None,
            None => self.write(&effect, known_revision),
            Some(_) => None,
        }
    }

    /// A refused commit: some key was not as expected, and was at the reported revision.
    fn refuse(
        &mut self,
        guards: &[Guard],
        writes: &[Put],
        at: Option<Key>,
        found: Option<u64>,
    ) -> Option<()> {
        let named = |key: Key| at.is_none_or(|at| at == key);
        let guarded = guards.iter().filter(|g| named(g.key)).map(|g| (g.key, g.seen));
        for (key, seen) in guarded {
            if self.clone().see(key, seen).is_none() {
                return self.found(key, found);
            }
        }
        for write in writes.iter().filter(|w| named(w.key)) {
            if let Some(expect) = write.expect
                && !self.clone().is_at(write.key, expect)
            {
                return self.found(write.key, found);
            }
        }
        None
    }

    fn found(&mut self, key: Key, found: Option<u64>) -> Option<()> {
        found.is_none_or(|found| self.is_at(key, found)).then_some(())
    }

    fn write(&mut self, effect: &[(Key, Option<i64>)], revision: Option<u64>) -> Option<()> {
        let revision = match revision {
            Some(revision) if revision <= self.high => return None,
            Some(revision) => {
                self.high = revision;
                Revision::Is(revision)
            }
            None => {
                self.high += 1;
                Revision::After(self.high - 1)
            }
        };
        for (key, value) in effect {
            *self.cell_mut(*key) = value.map(|value| Cell { value, revision });
        }
        Some(())
    }
}
