//! Helpers of the methods of `rnet.Node`.

use std::path::PathBuf;

use pyo3::prelude::*;
use rnet::{PublisherBuilder, SubscriberQos};

use super::Node;
use crate::callback::Callback;
use crate::codec::Codec;
use crate::errors::OrRaise;
use crate::handle::CallbackHandle;
use crate::members::{Member, MemberKind};
use crate::publisher::{Publisher, PublisherCore};
use crate::receive::SubscriberCore;
use crate::state::core::StateCore;
use crate::subscriber::Subscriber;

/// The directory of this Python's programs: that of its executable, which may be a link to another one.
pub(super) fn programs(py: Python<'_>) -> Option<PathBuf> {
    let executable = py.import("sys").and_then(|sys| sys.getattr("executable")).ok()?;
    Some(executable.extract::<PathBuf>().ok()?.parent()?.to_owned())
}

impl Node {
    pub(super) fn open_state(&self, py: Python<'_>) -> PyResult<()> {
        let inner = py.detach(|| self.shared.node()?.state()).or_raise(py)?;
        let made = StateCore::new(py, &self.shared.name, inner);
        // Another thread may have stored one first: a node has only one state.
        if let Err(second) = self.state.set(made) {
            py.detach(|| second.close());
        }
        if let Some(core) = self.state.get() {
            py.detach(|| self.shared.members.add_retained(MemberKind::State, core));
        }
        Ok(())
    }

    pub(super) fn keep_handle(
        &self,
        py: Python<'_>,
        start: impl FnOnce(&rnet::Node) -> PyResult<CallbackHandle>,
    ) -> PyResult<CallbackHandle> {
        let handle = self.shared.with(py, start)??;
        py.detach(|| self.shared.members.add_retained(MemberKind::Handle, handle.core()));
        Ok(handle)
    }

    pub(super) fn closing(&self) -> impl FnOnce() + Send + 'static {
        let shared = self.shared.clone();
        move || shared.close()
    }

    pub(super) fn open_subscriber(
        &self,
        py: Python<'_>,
        topic: &str,
        qos: SubscriberQos,
        codec: Codec,
        spins: bool,
        (on, on_error): (Option<Callback>, Option<Callback>),
    ) -> PyResult<Py<Subscriber>> {
        let message_type = codec.message_type.clone();
        let open = || {
            let builder = self.shared.node()?.subscriber::<[u8]>(topic);
            builder.qos(qos).message_type(message_type).open()
        };
        let inner = py.detach(open).or_raise(py)?;
        let decoder = codec.for_subscriber(inner.malformed_counter());
        let core = SubscriberCore::of(inner, spins);
        py.detach(|| self.shared.members.add(MemberKind::Subscriber, &core));
        let subscriber = Bound::new(py, Subscriber::new(core, decoder, self.shared.clone()))?;
        if let Some(callback) = on {
            Subscriber::start_callback(&subscriber, callback, on_error)?;
        }
        Ok(subscriber.unbind())
    }

    pub(super) fn publish(
        &self,
        py: Python<'_>,
        topic: &str,
        configure: impl FnOnce(PublisherBuilder<[u8]>) -> PublisherBuilder<[u8]> + Send,
        codec: Codec,
    ) -> PyResult<Publisher> {
        let message_type = codec.message_type.clone();
        let open = || {
            let builder = self.shared.node()?.publisher::<[u8]>(topic);
            configure(builder.message_type(message_type)).open()
        };
        let mut inner = py.detach(open).or_raise(py)?;
        inner.set_interruptible(true);
        let id = inner.id();
        let core = PublisherCore::new(inner);
        py.detach(|| self.shared.members.add(MemberKind::Publisher, &core));
        Ok(Publisher::new(core, id, codec, self.shared.clone()))
    }
}
