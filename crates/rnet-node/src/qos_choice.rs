//! Quality of service that is put together option by option.

type Change<Q> = Box<dyn FnOnce(&mut Q) + Send + Sync>;

/// A base and the options that override it, whichever is set first.
pub struct QosChoice<Q> {
    base: Q,
    changes: Vec<Change<Q>>,
}

impl<Q: Default> Default for QosChoice<Q> {
    fn default() -> Self {
        QosChoice { base: Q::default(), changes: Vec::new() }
    }
}

impl<Q> QosChoice<Q> {
    pub fn set_base(&mut self, base: Q) {
        self.base = base;
    }

    pub fn add(&mut self, change: impl FnOnce(&mut Q) + Send + Sync + 'static) {
        self.changes.push(Box::new(change));
    }

    pub fn resolve(self) -> Q {
        let mut qos = self.base;
        self.changes.into_iter().for_each(|change| change(&mut qos));
        qos
    }
}

#[cfg(test)]
mod tests {
    use super::QosChoice;
    use rnet_core::{Durability, PublisherQos};

    #[test]
    fn an_option_overrides_the_base_before_and_after_it() {
        let base = PublisherQos { large_depth: 7, log_len_bytes: 1 << 20, ..Default::default() };
        let mut choice = QosChoice::<PublisherQos>::default();
        choice.add(|qos| qos.large_depth = 3);
        choice.set_base(base);
        choice.add(|qos| qos.durability = Durability::TransientLocal { depth: 2 });
        let qos = choice.resolve();
        assert_eq!((qos.large_depth, qos.log_len_bytes), (3, 1 << 20));
        assert_eq!(qos.durability, Durability::TransientLocal { depth: 2 });
    }
}
