//! The thread that makes and ends secure sessions, and reports hosts to the link.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use rnet::Lane;
use rnet_keys::{HostCertificate, KeyError, KeysFile, Revocations};

use crate::wire::MAX_FRAME_LEN;
use crate::{HostId, Presence};

use super::frame::{Content, HandshakePart, no_session, refused};
use super::handshake::Handshake;
use super::session::{Established, Session};
use super::watched_file::WatchedFile;
use super::{Item, Shared};

/// The interval between two looks at the revocation list, the dates and what is to be repeated.
const CHECK_INTERVAL: Duration = Duration::from_millis(200);
/// The first time after which an unanswered handshake is repeated; each later one is twice as long.
const FIRST_TIMEOUT: Duration = Duration::from_millis(500);
const MAX_TIMEOUT: Duration = Duration::from_secs(4);
/// The time between two attempts with a host that refuses, or that is refused.
const REFUSED_FOR: Duration = Duration::from_secs(2);
/// How often the other side is asked for another handshake.
const ASK_INTERVAL: Duration = Duration::from_secs(1);
/// Frames that were sealed before a session was replaced are opened for this time.
const REPLACED_FOR: Duration = Duration::from_secs(10);
/// A session of an absent link is kept for this time, for its return.
const ABSENT_FOR: Duration = Duration::from_secs(60);
/// The keys of a session are replaced after this time.
const MAX_AGE: Duration = Duration::from_secs(3600);
/// The most unfinished handshakes, and of one host.
const MAX_HANDSHAKES: usize = 64;
const MAX_HANDSHAKES_OF_HOST: usize = 4;
/// The most hosts that are remembered for what was sent to them last.
const MAX_REMEMBERED: usize = 1024;

pub struct Worker {
    shared: Arc<Shared>,
    keys: KeysFile,
    revocations: Revocations,
    revocations_watch: WatchedFile,
    /// Links that are connected.
    present: BTreeSet<(HostId, u64)>,
    /// Those that the link above knows, and the certificates that it has decided by.
    reported: BTreeMap<(HostId, u64), Arc<HostCertificate>>,
    handshakes: Vec<Handshake>,
    attempts: HashMap<HostId, Attempts>,
    /// When each host was last sent an answer, or its frame reported.
    answered: HashMap<HostId, Instant>,
    /// Hosts that want another handshake, of which this host is the client.
    wanted: HashSet<HostId>,
    /// Replaced sessions and those of absent links, and since when.
    ending: HashMap<u64, Instant>,
}

/// When the next attempt with a host is due.
struct Attempts {
    next: Instant,
    timeout: Duration,
}

impl Worker {
    pub fn new(shared: Arc<Shared>, keys: KeysFile, revocations: Revocations) -> Self {
        Worker {
            shared,
            revocations_watch: WatchedFile::new(&keys.revocations_path()),
            keys,
            revocations,
            present: BTreeSet::new(),
            reported: BTreeMap::new(),
            handshakes: Vec::new(),
            attempts: HashMap::new(),
            answered: HashMap::new(),
            wanted: HashSet::new(),
            ending: HashMap::new(),
        }
    }

    pub fn run(mut self) {
        let mut looked = Instant::now();
        loop {
            let items = {
                let waiting = self.shared.waiting();
                let (mut waiting, _) = self
                    .shared
                    .changed
                    .wait_timeout_while(waiting, CHECK_INTERVAL, |of| {
                        of.items.is_empty() && !of.is_closed
                    })
                    .unwrap_or_else(PoisonError::into_inner);
                if waiting.is_closed {
                    return;
                }
                std::mem::take(&mut waiting.items)
            };
            for item in items {
                self.handle(item);
            }
            if looked.elapsed() >= CHECK_INTERVAL {
                looked = Instant::now();
                self.look_at_revocations();
                self.end_sessions();
                self.repeat_revocations();
            }
            self.begin_handshakes();
        }
    }

    fn handle(&mut self, item: Item) {
        match item {
            Item::Up(Presence { host, term }) => {
                self.present.insert((host, term));
                self.attempts.remove(&host);
                self.report();
            }
            Item::Down(Presence { host, term }) => {
                self.present.remove(&(host, term));
                self.report();
            }
            Item::Confirmed(id) => {
                let found = self.shared.sessions().by_id.get(&id).cloned();
                if let Some(session) = found {
                    self.promote(&session);
                }
            }
            Item::Part { from, attempt, term, from_client, number, bytes } => {
                let part = HandshakePart { attempt, term, from_client, number, bytes: &bytes };
                self.receive_part(from, &part);
            }
            Item::UnknownSession(host, session) => {
                if self.is_client_of(host) {
                    self.wanted.insert(host);
                } else {
                    self.answer(host, no_session(session));
                }
            }
            Item::NoSession(host) => {
                if self.is_client_of(host) && self.is_present(host) {
                    self.wanted.insert(host);
                }
            }
            Item::Refused(host, text) => {
                let asked = self.attempts.contains_key(&host);
                if self.session_of(host).is_some() && !asked {
                    return;
                }
                self.handshakes.retain(|handshake| handshake.peer != host);
                self.delay(host);
                self.shared.sink.on_refused(host, &format!("it refuses this host: {text}"));
            }
            Item::Revocations(session, list) => self.receive_revocations(session, &list),
            Item::Plain(host) => {
                if self.was_just_answered(host) {
                    return;
                }
                let text = "it sends without keys, and this host has some: give it keys too (`rnet keys add-host NAME` on \
                            the machine of the authority, then copy the file), or write insecure = true on both";
                self.shared.sink.on_refused(host, text);
            }
        }
    }

    /// Which of two hosts is the client of their handshakes.
    fn is_client_of(&self, host: HostId) -> bool {
        self.shared.own.host.0 < host.0
    }

    fn is_present(&self, host: HostId) -> bool {
        self.present.range((host, 0)..=(host, u64::MAX)).next().is_some()
    }

    fn session_of(&self, host: HostId) -> Option<Arc<Session>> {
        self.shared.sessions().current.get(&host).cloned()
    }

    fn send(&self, to: HostId, frame: Vec<u8>) {
        // A lost part is sent again by the next attempt.
        let _ = self.shared.send(Lane::Urgent, to, frame);
    }

    /// Whether this host was answered within the last second; if not, it counts as answered now.
    fn was_just_answered(&mut self, host: HostId) -> bool {
        if self.answered.get(&host).is_some_and(|at| at.elapsed() < ASK_INTERVAL) {
            return true;
        }
        if self.answered.len() >= MAX_REMEMBERED {
            self.answered.retain(|_, at| at.elapsed() < ASK_INTERVAL);
        }
        if self.answered.len() >= MAX_REMEMBERED {
            return true;
        }
        self.answered.insert(host, Instant::now());
        false
    }

    /// Sends a frame that must not answer each frame of a hostile sender.
    fn answer(&mut self, host: HostId, frame: Vec<u8>) {
        if !self.was_just_answered(host) {
            self.send(host, frame);
        }
    }

    fn delay(&mut self, host: HostId) {
        let next = Instant::now() + REFUSED_FOR;
        self.attempts.insert(host, Attempts { next, timeout: FIRST_TIMEOUT });
    }

    /// Refuses a host, and tells it why.
    fn refuse(&mut self, host: HostId, why: &str) {
        self.delay(host);
        self.shared.sink.on_refused(host, why);
        self.send(host, refused(&format!("{why} (says {})", self.keys.certificate().name)));
    }

    /// Begins a handshake with each present host of which this one is the client, if it has no session or
    /// needs another.
    fn begin_handshakes(&mut self) {
        let now = Instant::now();
        let present: Vec<(HostId, u64)> = self.present.iter().copied().collect();
        for (host, term) in present {
            if !self.is_client_of(host) {
                continue;
            }
            let session = self.session_of(host);
            let is_good = session.is_some_and(|session| {
                let is_wanted =
                    self.wanted.contains(&host) && session.began.elapsed() >= ASK_INTERVAL;
                session.term >= term && !Self::needs_another(&session) && !is_wanted
            });
            if is_good || self.attempts.get(&host).is_some_and(|attempts| now < attempts.next) {
                continue;
            }
            self.handshakes.retain(|handshake| handshake.peer != host);
            let timeout =
                self.attempts.get(&host).map_or(FIRST_TIMEOUT, |attempts| attempts.timeout);
            let attempts =
                Attempts { next: now + timeout, timeout: (2 * timeout).min(MAX_TIMEOUT) };
            self.attempts.insert(host, attempts);
            self.wanted.remove(&host);
            let term = self.shared.own.term;
            match Handshake::client(&self.keys, term, host, random()) {
                Ok(handshake) => self.add(handshake),
                Err(error) => self.shared.sink.on_refused(host, &KeyError::handshake(&error)),
            }
        }
    }

    fn add(&mut self, mut handshake: Handshake) {
        if let Some(part) = handshake.take_part() {
            self.send(handshake.peer, part);
        }
        let peer = handshake.peer;
        let is_of_peer = |of: &Handshake| of.peer == peer;
        if self.handshakes.iter().filter(|of| is_of_peer(of)).count() >= MAX_HANDSHAKES_OF_HOST
            && let Some(oldest) = self.handshakes.iter().position(is_of_peer)
        {
            self.handshakes.remove(oldest);
        }
        if self.handshakes.len() >= MAX_HANDSHAKES {
            self.handshakes.remove(0);
        }
        self.handshakes.push(handshake);
    }

    fn receive_part(&mut self, from: HostId, part: &HandshakePart) {
        let is_client = !part.from_client;
        let found = self.handshakes.iter().position(|handshake| {
            (handshake.peer, handshake.attempt, handshake.is_client)
                == (from, part.attempt, is_client)
        });
        let mut handshake = match found {
            Some(at) => self.handshakes.remove(at),
            None if part.from_client && part.number == 0 && !self.is_client_of(from) => {
                let term = self.shared.own.term;
                match Handshake::server(&self.keys, term, from, part.attempt) {
                    Ok(handshake) => handshake,
                    Err(error) => {
                        return self.shared.sink.on_refused(from, &KeyError::handshake(&error));
                    }
                }
            }
            None => return,
        };
        if let Err(error) = handshake.receive(part) {
            return self.refuse(from, &KeyError::handshake(&error));
        }
        if !handshake.is_done() {
            return self.add(handshake);
        }
        match handshake.finish(&self.keys, self.shared.own.host, &self.shared.domain) {
            Ok(established) => self.establish(established, handshake.take_part()),
            Err(why) => self.refuse(from, &why),
        }
    }

    /// Accepts the other side. `last` is the last part of a client.
    fn establish(&mut self, established: Established, last: Option<Vec<u8>>) {
        let host = established.peer;
        if let Some(why) = self.objection(host, &established.certificate) {
            return self.refuse(host, &why);
        }
        let Some(session) = Session::new(established).map(Arc::new) else { return };
        let mut sessions = self.shared.sessions.write().unwrap_or_else(PoisonError::into_inner);
        sessions.by_id.insert(session.id, session.clone());
        drop(sessions);
        // The server may answer it with a sealed frame at once.
        if let Some(part) = last {
            self.send(host, part);
        }
        match session.is_client {
            // Until the server has sealed a frame, it may still refuse this host.
            true => drop(self.ending.insert(session.id, Instant::now())),
            false => self.promote(&session),
        }
    }

    /// Seals with this session from now on.
    fn promote(&mut self, session: &Arc<Session>) {
        let host = session.peer;
        let mut sessions = self.shared.sessions.write().unwrap_or_else(PoisonError::into_inner);
        let earlier = sessions.current.insert(host, session.clone());
        drop(sessions);
        self.ending.remove(&session.id);
        if let Some(earlier) = earlier {
            self.ending.insert(earlier.id, Instant::now());
        }
        self.attempts.remove(&host);
        self.wanted.remove(&host);
        // To the client, the first sealed frame means that it is accepted.
        self.send_number(session);
        self.send_revocations(session);
        self.report();
    }

    /// Why a host with this certificate gets no session, if so.
    fn objection(&self, host: HostId, certificate: &HostCertificate) -> Option<String> {
        let HostCertificate { name, serial, .. } = certificate;
        if self.revocations.contains(certificate) {
            return Some(format!("the certificate {serial} of {name} is revoked"));
        }
        let other = self.session_of(host)?;
        let is_another =
            other.certificate.name != *name && self.present.contains(&(host, other.term));
        is_another.then(|| format!("{name} uses the number of the host {}", other.certificate.name))
    }

    /// Whether the keys of a session have to be replaced.
    fn needs_another(session: &Session) -> bool {
        session.is_worn() || session.began.elapsed() >= MAX_AGE
    }

    /// Tells the link above which hosts are present and have proved who they are.
    fn report(&mut self) {
        let proved: BTreeMap<(HostId, u64), Arc<HostCertificate>> = {
            let sessions = self.shared.sessions();
            let current = sessions.current.values();
            let of = |session: &Arc<Session>| {
                ((session.peer, session.term), session.certificate.clone())
            };
            current.map(of).filter(|(link, _)| self.present.contains(link)).collect()
        };
        let is_same = |link: &(HostId, u64), certificate: &Arc<HostCertificate>| {
            proved.get(link).is_some_and(|now| {
                now.serial == certificate.serial || now.rights == certificate.rights
            })
        };
        let gone: Vec<(HostId, u64)> = self
            .reported
            .iter()
            .filter(|(link, certificate)| !is_same(link, certificate))
            .map(|(link, _)| *link)
            .collect();
        for (host, term) in gone {
            self.reported.remove(&(host, term));
            self.shared.sink.on_down(Presence { host, term });
        }
        for ((host, term), certificate) in proved {
            if self.reported.insert((host, term), certificate).is_none() {
                self.shared.sink.on_up(Presence { host, term });
            }
        }
    }

    /// Ends sessions that have expired, were replaced, or whose link is long gone, and asks for another one
    /// where this host is the server.
    fn end_sessions(&mut self) {
        self.handshakes.retain(|handshake| handshake.began.elapsed() < MAX_TIMEOUT);
        let current: Vec<Arc<Session>> = self.shared.sessions().current.values().cloned().collect();
        for session in current {
            if session.certificate.expires_in().is_none() {
                let HostCertificate { name, serial, .. } = &*session.certificate;
                let why = format!("the certificate {serial} of {name} has expired");
                self.end(&session);
                self.refuse(session.peer, &why);
            }
            match self.present.contains(&(session.peer, session.term)) {
                true => self.ending.remove(&session.id),
                false => Some(*self.ending.entry(session.id).or_insert_with(Instant::now)),
            };
        }
        let mut sessions = self.shared.sessions.write().unwrap_or_else(PoisonError::into_inner);
        self.ending.retain(|id, since| {
            let Some(session) = sessions.by_id.get(id) else { return false };
            let is_current = sessions.current.get(&session.peer).is_some_and(|of| of.id == *id);
            let kept_for = if is_current { ABSENT_FOR } else { REPLACED_FOR };
            if since.elapsed() < kept_for {
                return true;
            }
            let peer = session.peer;
            if is_current {
                sessions.current.remove(&peer);
            }
            sessions.by_id.remove(id);
            false
        });
    }

    fn end(&mut self, session: &Session) {
        let mut sessions = self.shared.sessions.write().unwrap_or_else(PoisonError::into_inner);
        sessions.by_id.retain(|_, of| of.peer != session.peer);
        sessions.current.remove(&session.peer);
        drop(sessions);
        self.report();
    }

    /// Tells the other side which revocation list this host has.
    fn send_number(&self, session: &Session) {
        let number = self.revocations.number().to_le_bytes();
        self.send(session.peer, session.seal(Content::Revocations, Lane::Urgent, &number));
    }

    /// Sends the revocation list, unless the other side has it.
    fn send_revocations(&self, session: &Session) {
        let list = self.revocations.der();
        let is_known = session.acknowledged.load(Ordering::Relaxed) >= self.revocations.number();
        // A longer one does not fit into a frame; it reaches the others as a file.
        if !is_known && list.len() <= MAX_FRAME_LEN {
            self.send(session.peer, session.seal(Content::Revocations, Lane::Urgent, list));
        }
    }

    /// Repeats the list to those that have not acknowledged it: a frame may be lost.
    fn repeat_revocations(&self) {
        let current: Vec<Arc<Session>> = self.shared.sessions().current.values().cloned().collect();
        current.iter().for_each(|session| self.send_revocations(session));
    }

    fn receive_revocations(&mut self, id: u64, list: &[u8]) {
        let Some(session) = self.shared.sessions().by_id.get(&id).cloned() else { return };
        if let Ok(number) = list.try_into() {
            session.acknowledged.fetch_max(u64::from_le_bytes(number), Ordering::Relaxed);
            return;
        }
        let from = session.peer;
        let verified = self.keys.verify_revocations(list);
        if let Ok(list) = &verified {
            session.acknowledged.fetch_max(list.number(), Ordering::Relaxed);
        }
        match verified {
            Ok(list) if list.number() > self.revocations.number() => {
                // What cannot be kept is in force until this link ends.
                if let Err(error) = self.keys.save_revocations(&list) {
                    self.shared.sink.on_key_problem(&error.to_string());
                }
                self.apply(list);
                self.send_number(&session);
            }
            Ok(_) => self.send_number(&session),
            Err(error) => {
                let why = format!("it has sent an invalid revocation list: {error}");
                self.shared.sink.on_refused(from, &why);
            }
        }
    }

    /// Ends the sessions of revoked certificates, and gives the list to all others.
    fn apply(&mut self, list: Revocations) {
        self.revocations = list;
        let current: Vec<Arc<Session>> = self.shared.sessions().current.values().cloned().collect();
        for session in current {
            // A revoked host learns it, too.
            self.send_revocations(&session);
            if self.revocations.contains(&session.certificate) {
                let HostCertificate { name, serial, .. } = &*session.certificate;
                let why = format!("the certificate {serial} of {name} is revoked");
                self.end(&session);
                self.refuse(session.peer, &why);
            }
        }
        if self.revocations.contains(self.keys.certificate()) {
            self.shared.sink.on_key_problem(
                "the certificate of this host is revoked: other hosts refuse it. `rnet keys add-host` on the machine of \
                 the authority makes another keys file",
            );
        }
    }

    fn look_at_revocations(&mut self) {
        if self.revocations_watch.has_changed() {
            match self.keys.revocations() {
                Ok(list) if list.number() > self.revocations.number() => self.apply(list),
                Ok(_) => {}
                Err(error) => {
                    let text = format!("{error} (the earlier list stays in effect)");
                    self.shared.sink.on_key_problem(&text);
                }
            }
        }
    }
}

/// A number that names an attempt. It must only differ from those of other attempts.
fn random() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(Instant::now())
}
