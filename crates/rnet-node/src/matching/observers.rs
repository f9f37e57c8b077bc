//! Finds the observers of this node's publishers; the writers ring them.

use super::Matching;

impl Matching {
    /// Gives each publisher the observers that follow it.
    pub(crate) fn update_observers(&mut self) {
        if !self.observers.refresh() {
            return;
        }
        let mut following = self.observers.of_node(self.own.incarnation());
        for (id, publisher) in &self.publishers {
            publisher.readers.set_observers(following.remove(id).unwrap_or_default());
        }
    }
}
