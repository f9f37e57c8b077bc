//! Publishers of other hosts, which one proxy after another may represent.
//!
//! When another process takes over the link between hosts, it opens proxies next to the old ones. A
//! subscriber reads the older proxy of a publisher to its end before the newer one, which continues after the
//! messages that the older proxy delivered. So order per publisher holds, and no message is delivered twice.
//!
//! If the older proxy still lives, for example because its process is stopped, the subscriber first reads
//! what the older proxy had sent when the newer one appeared. After that it reads both, as different
//! publishers: no process can keep another process's proxy from being read, or end it.

use std::collections::VecDeque;

use rnet_core::{MAX_PUBLISHERS_PER_SUBSCRIPTION, Origin, Proxy};
use rnet_shm::channel::reader::Reader;

use super::Receiver;

/// The successors of the proxies that are read.
#[derive(Default)]
pub struct ProxySuccession {
    /// Proxies that are not read yet, in the order of arrival.
    successors: Vec<SuccessorProxy>,
    /// The last origin received from closed proxies; the newest last.
    delivered: VecDeque<(Proxy, Origin)>,
}

/// A proxy to read after another.
struct SuccessorProxy {
    reader: Reader,
    /// The proxy to read first.
    before: u64,
    /// The position up to which `before` is read first. A proxy that has left is read to its end and closed.
    until: u64,
}

/// Whether both represent one endpoint.
fn is_same(a: &Proxy, b: &Proxy) -> bool {
    (a.host(), a.endpoint()) == (b.host(), b.endpoint())
}

fn is_of(channel: &Reader, proxy: &Proxy) -> bool {
    channel.meta().proxy.as_ref().is_some_and(|of| is_same(of, proxy))
}

impl ProxySuccession {
    pub fn readers(&self) -> impl Iterator<Item = &Reader> {
        self.successors.iter().map(|successor| &successor.reader)
    }

    pub fn readers_mut(&mut self) -> impl Iterator<Item = &mut Reader> {
        self.successors.iter_mut().map(|successor| &mut successor.reader)
    }

    /// Number of proxies that wait for others to be read.
    pub fn len(&self) -> usize {
        self.successors.len()
    }

    /// Remembers the last origin received from a publisher whose proxy is closed.
    pub fn remember(&mut self, channel: &Reader) {
        let (Some(proxy), Some(origin)) = (&channel.meta().proxy, channel.last_origin()) else {
            return;
        };
        self.delivered.retain(|(of, _)| !is_same(of, proxy));
        if self.delivered.len() == MAX_PUBLISHERS_PER_SUBSCRIPTION {
            self.delivered.pop_front();
        }
        self.delivered.push_back((proxy.clone(), origin));
    }

    /// The first successor that may be read now, for a subscriber that reads these channels.
    fn next(&self, channels: &[Reader]) -> Option<usize> {
        let may_begin = |successor: &SuccessorProxy| {
            let is_before = |reader: &Reader| reader.publisher() == successor.before;
            let read = channels.iter().find(|reader| is_before(reader));
            !self.readers().any(is_before)
                && read.is_none_or(|read| read.has_read_to(successor.until))
        };
        self.successors.iter().position(may_begin)
    }
}

impl Receiver {
    /// Adds a publisher: it is read at once, or after its predecessors.
    pub(super) fn add_reader(&mut self, reader: Reader) {
        let before = reader.meta().proxy.as_ref().and_then(|proxy| {
            let known = self.channels.iter().chain(self.succession.readers());
            let newest = known.filter(|known| is_of(known, proxy)).last()?;
            Some((newest.publisher(), newest.has_left(), newest.end()))
        });
        match before {
            None => self.read_from_now(reader),
            Some((before, left, end)) => {
                let until = if left { u64::MAX } else { end };
                self.succession.successors.push(SuccessorProxy { reader, before, until });
            }
        }
    }

    fn read_from_now(&mut self, mut reader: Reader) {
        if let Some(proxy) = &reader.meta().proxy {
            let read = self
                .channels
                .iter()
                .rev()
                .filter(|c| is_of(c, proxy))
                .find_map(Reader::last_origin);
            let had = || self.succession.delivered.iter().find(|(of, _)| is_same(of, proxy));
            if let Some(origin) = read.or_else(|| had().map(|(_, origin)| *origin)) {
                reader.resume_after(origin);
            }
        }
        reader.set_bell(self.state.bell());
        self.channels.push(reader);
    }

    /// Whether a waiting proxy may be read now.
    pub(super) fn has_successor(&self) -> bool {
        self.succession.next(&self.channels).is_some()
    }

    /// Updates the admission of the proxies that are not read yet. Their errors are reported when they are
    /// read.
    pub fn begin_successors(&mut self) {
        for reader in self.succession.readers_mut() {
            let _ = reader.begin();
        }
    }

    /// Starts to read the waiting proxies that no longer need to wait.
    #[cold]
    pub(super) fn start_successors(&mut self) {
        while let Some(at) = self.succession.next(&self.channels) {
            let successor = self.succession.successors.remove(at);
            self.read_from_now(successor.reader);
        }
    }
}
