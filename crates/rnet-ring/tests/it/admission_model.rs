//! Explores all interleavings of the admission protocol between a publisher and a reader.
//!
//! The steps are those of docs/design/admission.md, executed by the functions that `rnet-shm` calls
//! ([`ReaderRequests`] for the publisher, [`Follower`] for the reader); the log is reduced to numbers. The
//! test visits all reachable states. From each state both sides continue until they are idle, once with the
//! publisher alive and once with it gone. The test checks that the reader receives messages again, and that
//! each message was received or counted once, with the correct cause. `loom_models.rs` covers the words of an
//! entry.

use std::collections::HashSet;

use rnet_ring::admission::{AdmissionState, AdmissionTable, Grant, RequestId};
use rnet_ring::layout::Admission;
use rnet_ring::reader_admission::{AfterDetach, AfterExit, Follower, Gap, ReadStart};
use rnet_ring::reader_requests::ReaderRequests;
use rnet_ring::sync::Ordering;

const US: u64 = 7;
const OTHER: u64 = 8;
/// Messages that the log holds.
const CAPACITY: u64 = 2;
const MAX_SENT: u64 = 6;
const MAX_DETACHED: u32 = 2;

/// The reader's last observation, which it has not handled yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Observation {
    Nothing,
    PublisherExit,
    Lap,
}

/// A reader in the writer's list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Listed {
    generation: u64,
    start: u64,
    answered: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Model {
    places: usize,
    // State that both sides see.
    entries: Vec<[u64; 5]>,
    bound: bool,
    generation: u64,
    cursor: u64,
    head: u64,
    tail: u64,
    // The publisher.
    there: bool,
    admissions: ReaderRequests,
    listed: Option<Listed>,
    rung: bool,
    other: u8,
    // The reader.
    follower: Follower,
    knows: bool,
    saw: Observation,
    position: u64,
    next_seq: Option<u64>,
    rebound: bool,
    over: bool,
    // The reader's results.
    received: u64,
    detached: u64,
    overrun: u64,
    detached_seen: u32,
    // The ground truth.
    promised: Option<u64>,
    detached_owed: u32,
    detached_unanswered: u32,
    times_detached: u32,
}

impl Model {
    fn new(places: usize) -> Model {
        let ask = RequestId { subscription: US, generation: 1 };
        Model {
            places,
            entries: vec![[0; 5]; places],
            bound: true,
            generation: 1,
            cursor: 0,
            head: 0,
            tail: 0,
            there: true,
            admissions: ReaderRequests::default(),
            listed: None,
            rung: true,
            other: 0,
            follower: Follower::new(ask),
            knows: true,
            saw: Observation::Nothing,
            position: 0,
            next_seq: None,
            rebound: false,
            over: false,
            received: 0,
            detached: 0,
            overrun: 0,
            detached_seen: 0,
            promised: None,
            detached_owed: 0,
            detached_unanswered: 0,
            times_detached: 0,
        }
    }

    /// Calls `act` with the entries as memory.
    fn with<T>(&mut self, act: impl FnOnce(&mut Model, AdmissionTable<'_>) -> T) -> T {
        let memory: Vec<Admission> = self.entries.iter().map(to_memory).collect();
        let result = act(self, AdmissionTable::contiguous(&memory));
        self.entries = memory.iter().map(from_memory).collect();
        result
    }

    fn ask(&self) -> RequestId {
        RequestId { subscription: US, generation: self.generation }
    }

    /// The position from which the writer keeps the log; `None` if the reader does not block it.
    fn needed(&self) -> Option<u64> {
        let listed = self.listed.filter(|l| self.bound && l.generation == self.generation)?;
        Some(listed.start.max(self.cursor))
    }

    fn is_full(&self) -> bool {
        self.needed().is_some_and(|needed| self.tail - needed >= CAPACITY)
    }

    fn send(&mut self) {
        self.tail += 1;
        self.head = self.head.max(self.tail.saturating_sub(CAPACITY));
    }

    /// `Matching::match_subscription` and the first half of `ReaderTable::admit`.
    fn list(&mut self) {
        self.rung = false;
        let ask = self.ask();
        let served = self.listed.is_some_and(|listed| listed.generation == ask.generation);
        if !self.bound || served || self.admissions.state(ask).is_some() {
            return;
        }
        let Some(place) = self.admissions.entry_for(ask.subscription, self.places) else {
            // Checked again when an entry is free.
            self.rung = true;
            return;
        };
        self.admissions.reserve(ask, place);
        let (generation, start) = (ask.generation, self.tail);
        self.listed = Some(Listed { generation, start, answered: false });
    }

    /// The second half of `ReaderTable::admit`.
    fn answer(&mut self, generation: u64) {
        let start = self.tail;
        let ask = RequestId { subscription: US, generation };
        // Positions are multiples of eight; any increasing number works.
        let grant = Grant { request: ask, start, start_seq: start };
        let standing = self.with(|w, memory| w.admissions.answer(memory, grant)).unwrap();
        if let Some(listed) = self.listed.as_mut().filter(|l| l.generation == generation) {
            (listed.start, listed.answered) = (start, true);
        }
        self.promised.get_or_insert(start);
        if standing == AdmissionState::Detached {
            // It was detached before its answer, which contains that.
            self.detached_unanswered -= 1;
            self.detached_owed += 1;
        }
    }

    /// `ReaderTable::detach`, by the thread that sends.
    fn detach(&mut self) {
        self.times_detached += 1;
        match self.listed.take() {
            Some(listed) if !listed.answered => self.detached_unanswered += 1,
            _ => self.detached_owed += 1,
        }
        self.with(|w, memory| w.admissions.detach(memory, US));
    }

    fn forget(&mut self, subscription: u64) {
        self.with(|w, memory| w.admissions.forget(memory, subscription));
    }

    fn begin_at(&mut self, begun: ReadStart) {
        self.detached += begun.missed;
        (self.position, self.next_seq) = (begun.start, Some(begun.start_seq));
        self.cursor = self.position;
    }

    /// One step of `Reader::take`; `false` if it was idle.
    fn take_step(&mut self) -> bool {
        if self.follower.is_awaiting_admission() {
            let begun = self.with(|w, memory| w.follower.begin(memory, w.next_seq));
            return begun.map(|begun| self.begin_at(begun)).is_some();
        }
        let saw = std::mem::replace(&mut self.saw, Observation::Nothing);
        let was_detached = self.with(|w, memory| w.follower.was_detached(memory));
        if saw != Observation::Nothing && was_detached {
            self.detached_seen += 1;
            let next = self.generation + 1;
            if let AfterDetach::Request(ask) = self.follower.note_detach(|| next) {
                self.generation = ask.generation;
                self.rung = true;
            }
            return true;
        }
        if saw == Observation::Lap {
            self.position = self.head;
            return true;
        }
        if saw == Observation::PublisherExit {
            return true;
        }
        if self.head > self.position {
            self.saw = Observation::Lap;
            return true;
        }
        if self.tail == self.position {
            let over = self.with(|w, memory| w.follower.is_finished(memory));
            if !over && was_detached {
                self.saw = Observation::PublisherExit;
            }
            let changed = over && !self.over;
            self.over |= over;
            return changed || self.saw == Observation::PublisherExit;
        }
        let lost = self.position - self.next_seq.unwrap();
        if lost != 0 {
            match self.with(|w, memory| w.follower.gap(memory)) {
                Gap::Detached => self.detached += lost,
                Gap::Overrun => self.overrun += lost,
            }
        }
        self.received += 1;
        self.position += 1;
        self.next_seq = Some(self.position);
        self.cursor = self.position;
        true
    }

    /// `Reader::publisher_left`.
    fn handle_publisher_exit(&mut self) {
        self.knows = true;
        match self.with(|w, memory| w.follower.publisher_left(memory, w.next_seq)) {
            AfterExit::Continue => {}
            AfterExit::Begin(begun) => self.begin_at(begun),
            AfterExit::Nothing => {
                (self.position, self.next_seq) = (self.tail, Some(self.tail));
            }
        }
    }

    /// The subscription frees its page and binds it again, without an earlier promise.
    fn rebind(&mut self) {
        let generation = self.generation + 1;
        let (follower, rung) = (Follower::new(RequestId { subscription: US, generation }), true);
        *self = Model {
            generation,
            follower,
            rung,
            rebound: true,
            saw: Observation::Nothing,
            cursor: 0,
            position: 0,
            next_seq: None,
            received: 0,
            detached: 0,
            overrun: 0,
            detached_seen: 0,
            promised: None,
            detached_owed: 0,
            detached_unanswered: 0,
            ..self.clone()
        };
        // Answers to the earlier request do not apply to the new one.
    }

    /// All possible next steps.
    fn next(&self) -> Vec<(&'static str, Model)> {
        let mut steps = Vec::new();
        let mut step = |name, act: &dyn Fn(&mut Model)| {
            let mut world = self.clone();
            act(&mut world);
            steps.push((name, world));
        };
        let unanswered = self.listed.filter(|l| !l.answered);
        // The control thread admits one request at a time; if the reader is detached meanwhile, it still
        // answers.
        let owes = self.owes();
        if self.there {
            if let Some(generation) = owes {
                step("answer", &|w| w.answer(generation));
            } else if self.rung {
                step("list", &Model::list);
            }
            if owes.is_none() && self.other == 0 {
                step("other comes", &|w| {
                    let ask = RequestId { subscription: OTHER, generation: 1 };
                    w.other = 1;
                    if let Some(place) = w.admissions.entry_for(OTHER, w.places) {
                        w.admissions.reserve(ask, place);
                        let grant = Grant { request: ask, start: w.tail, start_seq: w.tail };
                        w.with(|w, memory| w.admissions.answer(memory, grant));
                    }
                });
            }
            if owes.is_none() && self.other == 1 {
                step("other goes", &|w| {
                    w.other = 2;
                    w.forget(OTHER);
                });
            }
            if self.is_full() {
                if self.times_detached < MAX_DETACHED {
                    step("detach", &Model::detach);
                }
            } else if self.tail < MAX_SENT {
                step("send", &Model::send);
            }
            step("leave", &|w| {
                w.there = false;
                w.knows = false;
            });
        } else if !self.knows {
            step("hear", &Model::handle_publisher_exit);
        }
        if self.there && !self.rebound && unanswered.is_none() && owes.is_none() {
            step("rebind", &Model::rebind);
        }
        step("look", &|w| {
            w.take_step();
        });
        steps
    }

    /// The listed request that has no answer yet.
    fn owes(&self) -> Option<u64> {
        match self.listed {
            Some(listed) if !listed.answered => Some(listed.generation),
            None if self.detached_unanswered > 0 => Some(self.generation),
            _ => None,
        }
    }

    /// Every promised message was received or counted with the correct cause, and every detachment was
    /// reported once.
    fn check(&self, path: &str) {
        let promised = self.promised.unwrap_or(self.tail);
        assert_eq!(self.overrun, 0, "{path}: a reliable reader was overrun: {self:#?}");
        assert_eq!(
            self.received + self.detached,
            self.tail - promised,
            "{path}: received or counted: {self:#?}"
        );
        assert_eq!(
            self.detached_seen, self.detached_owed,
            "{path}: reports equal detachments: {self:#?}"
        );
    }

    /// Runs both sides until they are idle.
    fn settle(&mut self) {
        for _ in 0..100 {
            let mut changed = self.take_step();
            if self.there {
                if let Some(generation) = self.owes() {
                    self.answer(generation);
                    changed = true;
                } else if self.rung {
                    self.list();
                    changed |= self.owes().is_some();
                }
            }
            if !changed {
                return;
            }
        }
        panic!("it never becomes idle: {self:#?}");
    }
}

fn to_memory(words: &[u64; 5]) -> Admission {
    let entry = Admission::default();
    let all =
        [&entry.subscription, &entry.generation, &entry.start, &entry.start_seq, &entry.state];
    for (word, value) in all.into_iter().zip(words) {
        word.store(*value, Ordering::Relaxed);
    }
    entry
}

fn from_memory(entry: &Admission) -> [u64; 5] {
    [&entry.subscription, &entry.generation, &entry.start, &entry.start_seq, &entry.state]
        .map(|word| word.load(Ordering::Relaxed))
}

/// The reader receives messages again, whatever happened before.
fn goes_on(world: &Model, path: &str) {
    let mut world = world.clone();
    if world.other == 1 {
        world.forget(OTHER);
    }
    world.settle();
    world.check(path);
    let before = world.received;
    world.send();
    world.settle();
    assert_eq!(world.received, before + 1, "{path}: deaf: {world:#?}");
    world.check(path);
}

/// The publisher exits: what it promised is received or counted, and the channel ends.
fn ends(world: &Model, path: &str) {
    let mut world = world.clone();
    if world.there {
        (world.there, world.knows) = (false, false);
    }
    if !world.knows {
        world.handle_publisher_exit();
    }
    world.settle();
    assert!(world.over, "{path}: it never ends: {world:#?}");
    world.check(path);
}

fn walk(places: usize) {
    let mut seen = HashSet::new();
    let mut todo = vec![(Model::new(places), String::new())];
    while let Some((world, path)) = todo.pop() {
        if !seen.insert(world.clone()) {
            continue;
        }
        ends(&world, &path);
        if world.there {
            goes_on(&world, &path);
        }
        for (name, next) in world.next() {
            if !seen.contains(&next) {
                todo.push((next, format!("{path} / {name}")));
            }
        }
    }
    println!("{} states with {places} places", seen.len());
    assert!(seen.len() > 1000, "too few states");
}

#[test]
fn reader_recovers_and_every_gap_is_counted_once() {
    walk(2);
}

/// The only entry is used or requested by another reader.
#[test]
fn reader_recovers_if_entries_are_scarce() {
    walk(1);
}
