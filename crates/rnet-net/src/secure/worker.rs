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
    /// When each host was refused last.
    refused: HashMap<HostId, Instant>,
    /// The certificates of the hosts that have proved to be the owners of their numbers.
    owners: HashMap<HostId, Arc<HostCertificate>>,
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
    pub fn new(shared: Arc<Shared>, keys: KeysFile) -> Self {
        // Before the list is read: a change since then is noticed.
        let revocations_watch = WatchedFile::new(&keys.revocations_path());
        let revocations = keys.revocations().unwrap_or_else(|error| {
            let text = format!("{error} (the list in the keys file is in effect)");
            shared.sink.on_key_problem(&text);
            keys.issued_revocations().clone()
        });
        Worker {
            shared,
            revocations_watch,
            keys,
            revocations,
            present: BTreeSet::new(),
            reported: BTreeMap::new(),
            handshakes: Vec::new(),
            attempts: HashMap::new(),
            answered: HashMap::new(),
            refused: HashMap::new(),
            owners: HashMap::new(),
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
            Item::Confirmed(id) => self.confirm(id),
            Item::Part { from, attempt, term, from_client, number, bytes } => {
                let part = HandshakePart { attempt, term, from_client, number, bytes: &bytes };
                self.receive_part(from, &part);
            }
            Item::UnknownSession(host, _) if !self.is_present(host) => {}
            Item::UnknownSession(host, _) if self.is_client_of(host) => {
                self.wanted.insert(host);
            }
            Item::UnknownSession(host, session) => self.answer(host, no_session(session)),
            Item::NoSession(host) => {
                if self.is_client_of(host) && self.is_present(host) {
                    self.wanted.insert(host);
                }
            }
            Item::Refused(host, text) => {
                // Anybody may have sent it: it only explains a missing session.
                let is_of_use = self.is_present(host) && self.session_of(host).is_none();
                if is_of_use && !was_just(&mut self.refused, host) {
                    let text = format!("it refuses this host: {text}");
                    self.shared.sink.on_refused(host, &text);
                }
            }
            Item::Revocations(session, list) => self.receive_revocations(session, &list),
            Item::Plain(host) => {
                if was_just(&mut self.answered, host) {
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

    /// Sends a frame that must not answer each frame of a hostile sender.
    fn answer(&mut self, host: HostId, frame: Vec<u8>) {
        if !was_just(&mut self.answered, host) {
            self.send(host, frame);
        }
    }

    /// Refuses a host, and tells it why; at most once a second, because anybody may send in its name.
    fn refuse(&mut self, host: HostId, why: &str) {
        if self.is_present(host) {
            let next = Instant::now() + REFUSED_FOR;
            self.attempts.insert(host, Attempts { next, timeout: FIRST_TIMEOUT });
        }
        if !was_just(&mut self.refused, host) {
            self.report_refused(host, why);
        }
    }

    fn report_refused(&self, host: HostId, why: &str) {
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
                let is_missing = session.term < term || self.wanted.contains(&host);
                // A session is not replaced at once: presences and requests may be forged.
                session.began.elapsed() < ASK_INTERVAL
                    || !(is_missing || Self::needs_another(&session))
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
        let mut sessions = self.shared.change_sessions();
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

    /// Handles the first frame of a session of which this host is the client.
    fn confirm(&mut self, id: u64) {
        let Some(session) = self.shared.sessions().by_id.get(&id).cloned() else { return };
        // It may have waited for long.
        match self.objection(session.peer, &session.certificate) {
            Some(why) => {
                self.shared.change_sessions().by_id.remove(&id);
                self.refuse(session.peer, &why);
            }
            None => self.promote(&session),
        }
    }

    /// Seals with this session from now on.
    fn promote(&mut self, session: &Arc<Session>) {
        let host = session.peer;
        let mut sessions = self.shared.change_sessions();
        let earlier = sessions.current.insert(host, session.clone());
        let serial = &session.certificate.serial;
        sessions.by_id.retain(|_, of| of.peer != host || of.certificate.serial == *serial);
        drop(sessions);
        self.owners.insert(host, session.certificate.clone());
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
        let owner = self.owners.get(&host)?;
        let is_another = owner.name != *name && !self.revocations.contains(owner);
        is_another.then(|| {
            format!(
                "{name} uses the number of the host {}: if that computer has another name now, restart it or revoke \
                 {}",
                owner.name, owner.name
            )
        })
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
            proved
                .get(link)
                .is_some_and(|now| now.name == certificate.name && now.rights == certificate.rights)
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

    /// Ends sessions that have expired, were replaced, or whose link is long gone.
    fn end_sessions(&mut self) {
        self.handshakes.retain(|handshake| handshake.began.elapsed() < MAX_TIMEOUT);
        let present: HashSet<HostId> = self.present.iter().map(|(host, _)| *host).collect();
        self.wanted.retain(|host| present.contains(host));
        self.attempts.retain(|host, _| present.contains(host));
        if self.owners.len() > MAX_REMEMBERED {
            self.owners.retain(|host, _| present.contains(host));
        }
        let current: Vec<Arc<Session>> = self.shared.sessions().current.values().cloned().collect();
        for session in current {
            if session.certificate.expires_in().is_none() {
                let HostCertificate { name, serial, .. } = &*session.certificate;
                let why = format!("the certificate {serial} of {name} has expired");
                self.end(session.peer);
                self.report_refused(session.peer, &why);
            }
            match self.present.contains(&(session.peer, session.term)) {
                true => self.ending.remove(&session.id),
                false => Some(*self.ending.entry(session.id).or_insert_with(Instant::now)),
            };
        }
        let mut sessions = self.shared.change_sessions();
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

    /// Ends all sessions with a host.
    fn end(&mut self, host: HostId) {
        let mut sessions = self.shared.change_sessions();
        sessions.by_id.retain(|_, of| of.peer != host);
        sessions.current.remove(&host);
        drop(sessions);
        self.report();
    }

    /// Tells the other side which revocation list this host has.
    fn send_number(&self, session: &Session) {
        self.send_sealed(session, &self.revocations.number().to_le_bytes());
    }

    /// Sends the revocation list, unless the other side has it.
    fn send_revocations(&self, session: &Session) {
        let list = self.revocations.der();
        let is_known = session.acknowledged.load(Ordering::Relaxed) >= self.revocations.number();
        // A longer one does not fit into a frame; it reaches the others as a file.
        if !is_known && list.len() <= MAX_FRAME_LEN {
            self.send_sealed(session, list);
        }
    }

    fn send_sealed(&self, session: &Session, plain: &[u8]) {
        if let Some(frame) = session.seal(Content::Revocations, Lane::Urgent, plain) {
            self.send(session.peer, frame);
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
        // A revoked host learns it, too.
        self.repeat_revocations();
        let sessions = self.shared.sessions();
        let revoked =
            sessions.by_id.values().filter(|of| self.revocations.contains(&of.certificate));
        let revoked: BTreeMap<HostId, Arc<HostCertificate>> =
            revoked.map(|session| (session.peer, session.certificate.clone())).collect();
        drop(sessions);
        for (host, certificate) in revoked {
            let HostCertificate { name, serial, .. } = &*certificate;
            self.end(host);
            self.report_refused(host, &format!("the certificate {serial} of {name} is revoked"));
        }
        if self.revocations.contains(self.keys.certificate()) {
            let hosts: Vec<HostId> = self.shared.sessions().current.keys().copied().collect();
            hosts.into_iter().for_each(|host| self.end(host));
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

/// Whether this happened to a host within the last second; if not, it counts as happening now. The map has a
/// limit, beyond which it counts as having happened.
fn was_just(latest: &mut HashMap<HostId, Instant>, host: HostId) -> bool {
    if latest.get(&host).is_some_and(|at| at.elapsed() < ASK_INTERVAL) {
        return true;
    }
    if latest.len() >= MAX_REMEMBERED {
        latest.retain(|_, at| at.elapsed() < ASK_INTERVAL);
    }
    if latest.len() >= MAX_REMEMBERED {
        return true;
    }
    latest.insert(host, Instant::now());
    false
}

/// A number that names an attempt. It must only differ from those of other attempts.
fn random() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(Instant::now())
}
