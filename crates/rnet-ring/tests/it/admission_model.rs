//! Every order of the steps by which a publisher and a reader meet, part, and meet again.
//!
//! The steps are those of docs/design/admission.md, made by the functions that `rnet-shm` calls
//! ([`ReaderRequests`] for the publisher, [`Follower`] for the reader); the log is reduced to numbers. All
//! states that any order of steps leads to are visited. From each of them both sides go on until
//! nothing is left to do, once with the publisher there and once with it gone, and it is asked
//! whether the reader hears again, and whether each message was received or counted, once, for the
//! right reason. The words of an entry are the matter of `loom_models.rs`.

use std::collections::HashSet;

use rnet_ring::admission::{AdmissionState, AdmissionTable, Grant, RequestId};
use rnet_ring::follower::{AfterDetach, AfterExit, Follower, Gap, ReadStart};
use rnet_ring::layout::Admission;
use rnet_ring::reader_requests::ReaderRequests;
use rnet_ring::sync::Ordering;

const US: u64 = 7;
const OTHER: u64 = 8;
/// Messages that the log holds.
const CAPACITY: u64 = 2;
const MAX_SENT: u64 = 6;
const MAX_DETACHED: u32 = 2;

/// What the reader found when it looked last, and has yet to act upon.
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
    // What both sides see.
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
    // What happened to it.
    received: u64,
    detached: u64,
    overrun: u64,
    detached_seen: u32,
    // What is true.
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

    /// Lets `act` work on the entries as memory.
    fn with<T>(&mut self, act: impl FnOnce(&mut Model, AdmissionTable<'_>) -> T) -> T {
        let memory: Vec<Admission> = self.entries.iter().map(to_memory).collect();
        let result = act(self, AdmissionTable::contiguous(&memory));
        self.entries = memory.iter().map(from_memory).collect();
        result
    }

    fn ask(&self) -> RequestId {
        RequestId { subscription: US, generation: self.generation }
    }

    /// From where on the writer keeps the log; `None` if the reader does not hold it back.
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
            // It is looked at again when a place is free.
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
        // Positions are multiples of eight; any number that grows will do.
        let grant = Grant { request: ask, start, start_seq: start };
        let standing = self.with(|w, memory| w.admissions.answer(memory, grant)).unwrap();
        if let Some(listed) = self.listed.as_mut().filter(|l| l.generation == generation) {
            (listed.start, listed.answered) = (start, true);
        }
        self.promised.get_or_insert(start);
        if standing == AdmissionState::Detached {
            // It was let go before its answer, which says so.
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

    /// One step of `Reader::take`; `false` if there was nothing to do.
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

    /// The subscription gives its page up and binds itself anew, as one that nothing was promised.
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
        // What is still answered to the request before is none of the new one's.
    }

    /// All steps that may come next.
    fn next(&self) -> Vec<(&'static str, Model)> {
        let mut steps = Vec::new();
        let mut step = |name, act: &dyn Fn(&mut Model)| {
            let mut world = self.clone();
            act(&mut world);
            steps.push((name, world));
        };
        let unanswered = self.listed.filter(|l| !l.answered);
        // The control thread admits one after the other; let go meanwhile, it still answers.
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

    /// The request that was listed and has no answer yet.
    fn owes(&self) -> Option<u64> {
        match self.listed {
            Some(listed) if !listed.answered => Some(listed.generation),
            None if self.detached_unanswered > 0 => Some(self.generation),
            _ => None,
        }
    }

    /// Whatever was promised was received or counted, for the right reason, and told as often as it
    /// happened.
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
            "{path}: told as often as let go: {self:#?}"
        );
    }

    /// Both sides go on until nothing is left to do.
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
        panic!("it never settles: {self:#?}");
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

/// The reader hears again, whatever came before.
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

/// The publisher leaves: what it had promised is received or counted, and the channel ends.
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
    assert!(seen.len() > 1000, "the steps lead nowhere");
}

#[test]
fn a_reader_is_never_deaf_and_every_gap_is_counted_once() {
    walk(2);
}

/// With the one place there is taken or wanted by another.
#[test]
fn nor_where_places_are_short() {
    walk(1);
}
