//! Publishers of other hosts, which may come by one proxy after another.
//!
//! When the link between hosts changes hands, its new life opens proxies beside those of the old one. A
//! subscriber reads the older proxy of a publisher to its end before the newer one, which goes on behind what
//! was had by the older. So order per publisher holds, and nothing comes twice.
//!
//! Of an older proxy that still lives, because its process is stopped say, that is read first which it had
//! sent when the newer one came. After that both are read, as different publishers: nobody can keep
//! another's proxy from being read, or end it.

use std::collections::VecDeque;

use rnet_core::{MAX_PUBLISHERS_PER_SUBSCRIPTION, Origin, Proxy};
use rnet_shm::channel::reader::Reader;

use super::Receiver;

/// What follows on the proxies that are read.
#[derive(Default)]
pub struct ProxySuccession {
    /// Proxies that are not read yet, in the order in which they came.
    successors: Vec<SuccessorProxy>,
    /// What was had of publishers whose proxies are gone; the newest last.
    delivered: VecDeque<(Proxy, Origin)>,
}

/// A proxy that is to be read after another.
struct SuccessorProxy {
    reader: Reader,
    /// The proxy before it.
    before: u64,
    /// Up to where that is read before. One that has left is read to its end, and closed.
    until: u64,
}

/// Whether both stand for one endpoint.
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

    /// How many wait for others to be read.
    pub fn len(&self) -> usize {
        self.successors.len()
    }

    /// Remembers what was had of a publisher whose proxy is closed.
    pub fn remember(&mut self, channel: &Reader) {
        let (Some(proxy), Some(heard)) = (&channel.meta().proxy, channel.last_origin()) else {
            return;
        };
        self.delivered.retain(|(of, _)| !is_same(of, proxy));
        if self.delivered.len() == MAX_PUBLISHERS_PER_SUBSCRIPTION {
            self.delivered.pop_front();
        }
        self.delivered.push_back((proxy.clone(), heard));
    }

    /// The first that may be read by now, of a subscriber that reads these channels.
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
    /// A publisher has come: it is read, at once or after those before it.
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
            if let Some(heard) = read.or_else(|| had().map(|(_, heard)| *heard)) {
                reader.resume_after(heard);
            }
        }
        reader.set_bell(self.state.bell());
        self.channels.push(reader);
    }

    /// Whether a proxy may be read that had to wait for another.
    pub(super) fn has_successor(&self) -> bool {
        self.succession.next(&self.channels).is_some()
    }

    /// Takes note of who has admitted us of those that are not read yet. What goes wrong is told when they are.
    pub fn begin_successors(&mut self) {
        for reader in self.succession.readers_mut() {
            let _ = reader.begin();
        }
    }

    /// Begins to read the proxies that had to wait for others, as far as they need not any more.
    #[cold]
    pub(super) fn start_successors(&mut self) {
        while let Some(at) = self.succession.next(&self.channels) {
            let successor = self.succession.successors.remove(at);
            self.read_from_now(successor.reader);
        }
    }
}
