//! Two streams over a simulated network: time is a number, and randomness has a seed.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use proptest::collection::vec;
use proptest::prelude::*;
use rnet::{Lane, Meta};
use rnet_net::stream::{Accept, ClockOffset, Limits, PushError, Stream};
use rnet_net::wire::{ACK_ONLY, Data, Header, Item, Items};

const MS: u64 = 1_000_000;
const S: u64 = 1_000 * MS;

/// A cable in one direction.
#[derive(Clone, Copy, Debug)]
struct Cable {
    delay_ns: u64,
    /// Additional random delay: frames overtake each other.
    jitter_ns: u64,
    /// The longest delay of the receiver; frames keep their order.
    late_ns: Option<u64>,
    /// Of 100 frames.
    lost: u64,
    /// Of 100 frames.
    doubled: u64,
    cut: bool,
    /// Of its slowest hop, bytes per second; frames queue there.
    rate: Option<u64>,
}

const IDEAL_CABLE: Cable = Cable {
    delay_ns: MS,
    jitter_ns: 0,
    late_ns: None,
    lost: 0,
    doubled: 0,
    cut: false,
    rate: None,
};

/// Pushed or read messages, by the terms of sender and receiver.
type Log = BTreeMap<(u64, u64), Vec<u64>>;

/// A frame in flight: its arrival, its order, its receiver, its bytes.
type Arriving = (u64, u64, usize, Vec<u8>);

struct Side {
    stream: Stream,
    term: u64,
    lane: Lane,
    /// The offset of its clock from the simulation's at time 0.
    clock_ns: u64,
    /// How much faster it is.
    ppm: u64,
    cable: Cable,
    busy_until_ns: u64,
    /// When the last frame arrives.
    last_ns: u64,
    pushed: Log,
    read: Log,
    read_bytes: u64,
    frames: u64,
}

impl Side {
    fn new(lane: Lane, cable: Cable) -> Self {
        Self {
            stream: Stream::new(1, Limits::of(lane)),
            term: 1,
            lane,
            clock_ns: 0,
            ppm: 0,
            cable,
            busy_until_ns: 0,
            last_ns: 0,
            pushed: Log::new(),
            read: Log::new(),
            read_bytes: 0,
            frames: 0,
        }
    }
}

impl Side {
    /// The time of its clock.
    fn clock(&self, now_ns: u64) -> u64 {
        now_ns + self.clock_ns + now_ns / 1_000_000 * self.ppm
    }
}

struct Network {
    sides: [Side; 2],
    now_ns: u64,
    seed: u64,
    under_way: BinaryHeap<Reverse<Arriving>>,
    sent: u64,
    next_message: u64,
}

impl Network {
    fn new(lane: Lane, cable: Cable, seed: u64) -> Self {
        let sides = [Side::new(lane, cable), Side::new(lane, cable)];
        let under_way = BinaryHeap::new();
        Self { sides, now_ns: S, seed, under_way, sent: 0, next_message: 0 }
    }

    /// A number below `below`.
    fn chance(&mut self, below: u64) -> u64 {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.seed >> 33) % below.max(1)
    }

    fn restart(&mut self, side: usize) {
        let side = &mut self.sides[side];
        side.term += 1;
        side.stream = Stream::new(side.term, Limits::of(side.lane));
    }

    fn push(&mut self, at: usize, payload: &[u8]) -> Result<(), PushError> {
        let side = &mut self.sides[at];
        let seq = self.next_message;
        let sent_ns = self.now_ns;
        let meta = Meta::default();
        side.stream.push(&Item::Data(Data {
            channel: 1,
            seq,
            sent_ns,
            meta,
            payload,
            compressed: false,
        }))?;
        self.next_message += 1;
        let terms = (side.term, side.stream.peer_term().unwrap());
        side.pushed.entry(terms).or_default().push(seq);
        Ok(())
    }

    fn push_nowhere(&mut self) -> Result<(), PushError> {
        self.sides[0].stream.push(&Item::Unsubscribe { channel: 1 })
    }

    /// Sends the frames that may leave.
    fn poll(&mut self) {
        for at in 0..2 {
            let mut frames = 0;
            loop {
                let side = &mut self.sides[at];
                let Some(frame) = side.stream.poll(side.clock(self.now_ns)) else { break };
                let (cable, frame) = (side.cable, frame.to_vec());
                side.frames += 1;
                frames += 1;
                assert!(frames < 10_000, "one moment sends without limit");
                let start_ns = match cable.rate {
                    None => self.now_ns,
                    Some(rate) => {
                        let takes_ns = frame.len() as u64 * S / rate;
                        side.busy_until_ns = side.busy_until_ns.max(self.now_ns) + takes_ns;
                        side.busy_until_ns
                    }
                };
                if cable.cut || self.chance(100) < cable.lost {
                    continue;
                }
                let copies = 1 + u64::from(self.chance(100) < cable.doubled);
                for _ in 0..copies {
                    let mut arrives_ns =
                        start_ns + cable.delay_ns + self.chance(cable.jitter_ns + 1);
                    if let Some(most_ns) = cable.late_ns {
                        // Mostly a little.
                        let late_ns = self.chance(most_ns + 1) * self.chance(1000) / 1000;
                        let side = &mut self.sides[at];
                        side.last_ns = side.last_ns.max(arrives_ns + late_ns);
                        arrives_ns = side.last_ns;
                    }
                    self.sent += 1;
                    self.under_way.push(Reverse((arrives_ns, self.sent, 1 - at, frame.clone())));
                }
            }
        }
    }

    fn arrive(&mut self, at: usize, frame: &[u8]) {
        let side = &mut self.sides[at];
        let (header, items) = Header::decode(frame).unwrap();
        match side.stream.accept(side.clock(self.now_ns), &header) {
            Accept::New => {
                let read = side.read.entry((header.from_term, header.to_term)).or_default();
                for item in Items::new(items) {
                    let Ok(Item::Data(data)) = item else { panic!("{item:?}") };
                    read.push(data.seq);
                    side.read_bytes += frame.len() as u64;
                }
            }
            Accept::Corrupt => panic!("a valid frame counts as corrupt: {header:?}"),
            _ => {}
        }
    }

    /// Runs the next moment with an event, before `until_ns`.
    fn step(&mut self, until_ns: u64) -> bool {
        self.poll();
        let wakes = self.sides.iter().filter_map(|side| {
            // A little late if its clock is fast.
            side.stream.wake_at().map(|at_ns| at_ns.saturating_sub(side.clock_ns))
        });
        let arrives = self.under_way.peek().map(|Reverse((at_ns, ..))| *at_ns);
        let Some(next_ns) = wakes.chain(arrives).min().filter(|next_ns| *next_ns <= until_ns)
        else {
            self.now_ns = until_ns;
            return false;
        };
        self.now_ns = self.now_ns.max(next_ns);
        while let Some(Reverse((at_ns, ..))) = self.under_way.peek()
            && *at_ns <= self.now_ns
        {
            let Reverse((_, _, at, frame)) = self.under_way.pop().unwrap();
            self.arrive(at, &frame);
        }
        true
    }

    fn run(&mut self, for_ns: u64) {
        let until_ns = self.now_ns + for_ns;
        while self.step(until_ns) {}
    }

    /// Runs until nothing is in flight or awaited.
    fn settle(&mut self) {
        let until_ns = self.now_ns + 100 * S;
        while self.step(until_ns) {}
        assert!(self.under_way.is_empty());
        for side in &self.sides {
            assert_eq!(side.stream.wake_at(), None, "a stream without work wants to be woken");
            assert_eq!(side.stream.stats().unacknowledged_bytes, 0);
            assert_eq!(side.stream.stats().unacknowledged_since_ns, None);
        }
    }

    fn meet(lane: Lane, cable: Cable, seed: u64) -> Self {
        let mut network = Network::new(lane, cable, seed);
        network.settle();
        // Links send at least each 100 ms, which these streams do not.
        network.sides.iter_mut().for_each(|s| s.stream.note_heard(s.clock(network.now_ns)));
        network
    }

    /// The read messages are a prefix of the pushed ones, and all of them in the current terms.
    fn check(&self) {
        for (from, to) in [(0, 1), (1, 0)] {
            let (from, to) = (&self.sides[from], &self.sides[to]);
            for (terms, read) in &to.read {
                let pushed = from.pushed.get(terms).map_or(&[][..], Vec::as_slice);
                assert!(pushed.starts_with(read), "{terms:?}: pushed {pushed:?}, read {read:?}");
            }
            let terms = (from.term, to.term);
            assert_eq!(from.stream.peer_term(), Some(to.term));
            assert_eq!(to.read.get(&terms), from.pushed.get(&terms), "in the terms {terms:?}");
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Push { side: usize, count: usize, len: usize, flush: bool },
    Run { ns: u64 },
    Cable { side: usize, cable: Cable },
    Restart { side: usize },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let cable = (0..20 * MS, 0..5 * MS, 0..40_u64, 0..20_u64, any::<bool>(), any::<bool>());
    let cable = cable.prop_map(|(delay_ns, jitter_ns, lost, doubled, cut, overtakes)| {
        let jitter_ns = if overtakes { jitter_ns } else { 0 };
        Cable { delay_ns, jitter_ns, late_ns: None, lost, doubled, cut, rate: None }
    });
    let step = prop_oneof![
        6 => (0..2_usize, 1..40_usize, 0..3000_usize, any::<bool>())
            .prop_map(|(side, count, len, flush)| Step::Push { side, count, len, flush }),
        6 => (0..400 * MS).prop_map(|ns| Step::Run { ns }),
        2 => (0..2_usize, cable).prop_map(|(side, cable)| Step::Cable { side, cable }),
        1 => (0..2_usize).prop_map(|side| Step::Restart { side }),
    ];
    vec(step, 1..40)
}

proptest! {
    #[test]
    fn pushed_messages_arrive_once_and_in_order(
        steps in steps(), seed in any::<u64>(), bulk in any::<bool>(),
    ) {
        let lane = if bulk { Lane::Bulk } else { Lane::Urgent };
        let mut network = Network::new(lane, IDEAL_CABLE, seed);
        let payload = [7; 3000];
        for step in steps {
            match step {
                Step::Push { side, count, len, flush } => {
                    for _ in 0..count {
                        let _ = network.push(side, &payload[..len]);
                    }
                    if flush {
                        network.sides[side].stream.flush();
                    }
                    let kept = network.sides[side].stream.stats().unacknowledged_bytes;
                    prop_assert!(kept <= (4 << 20) + (64 << 10));
                }
                Step::Run { ns } => network.run(ns),
                Step::Cable { side, cable } => network.sides[side].cable = cable,
                Step::Restart { side } => network.restart(side),
            }
        }
        for side in &mut network.sides {
            side.cable = IDEAL_CABLE;
            side.stream.flush();
        }
        let kept: u64 =
            network.sides.iter().map(|side| side.stream.stats().unacknowledged_bytes).sum();
        let before = network.sides[0].frames + network.sides[1].frames;
        network.settle();
        network.check();
        let frames = network.sides[0].frames + network.sides[1].frames - before;
        // Each of 1,400 bytes at least, except the last, with an acknowledgement, and once more.
        prop_assert!(frames <= 40 + kept / 1400 * 6, "{frames} frames for {kept} bytes");
    }
}

/// Fills the stream of side 0 for `for_ns`; returns the bytes read per second, and the longest queue in
/// bytes, after the first `warm_ns`.
fn saturate(network: &mut Network, warm_ns: u64, for_ns: u64) -> (u64, u64) {
    let payload = vec![1; 64 << 10];
    let rate = network.sides[0].cable.rate.unwrap();
    let (start_ns, mut read, mut longest_ns) = (network.now_ns + warm_ns, None, 0);
    let end_ns = start_ns + for_ns;
    while network.now_ns < end_ns {
        let len = network.sides[0].stream.fragment_len();
        while network.push(0, &payload[..len]).is_ok() {}
        // Like a lane that has no more to read, or no capacity for it.
        network.sides[0].stream.flush();
        network.step(end_ns);
        if network.now_ns >= start_ns {
            read.get_or_insert(network.sides[1].read_bytes);
            let queue_ns = network.sides[0].busy_until_ns.saturating_sub(network.now_ns);
            longest_ns = queue_ns.max(longest_ns);
        }
    }
    let read = network.sides[1].read_bytes - read.unwrap();
    (read * S / for_ns, longest_ns * rate / S)
}

/// 20 Mbit/s and 2 ms of round trip, for longer than a smallest round trip is valid.
#[test]
fn narrow_cable_is_full_with_a_short_queue() {
    let rate = 2_500_000;
    let mut network = Network::meet(Lane::Bulk, Cable { rate: Some(rate), ..IDEAL_CABLE }, 1);
    let (read, queue) = saturate(&mut network, 2 * S, 30 * S);
    assert!(read >= rate * 9 / 10, "{read} bytes per second");
    assert!(queue <= 5 * 1400, "{queue} bytes in the queue");
}

#[test]
fn fast_cable_is_full() {
    let rate = 125_000_000;
    let cable = Cable { rate: Some(rate), delay_ns: 100_000, ..IDEAL_CABLE };
    let mut network = Network::meet(Lane::Bulk, cable, 1);
    let (read, queue) = saturate(&mut network, S / 2, 2 * S);
    assert!(read >= rate * 9 / 10, "{read} bytes per second");
    // 1 ms.
    assert!(queue <= rate / 1000, "{queue} bytes in the queue");
}

/// The delays of busy hosts do not count as a queue.
#[test]
fn cable_between_busy_hosts_is_full() {
    for (rate, late_ns, queue_ns) in
        [(1_250_000_000, MS / 5, 3 * MS), (125_000_000, MS, 2 * MS), (2_500_000, MS, 4 * MS)]
    {
        let late_ns = Some(late_ns);
        let cable = Cable { rate: Some(rate), delay_ns: 30_000, late_ns, ..IDEAL_CABLE };
        let mut network = Network::meet(Lane::Bulk, cable, 1);
        let (read, queue) = saturate(&mut network, S / 2, 2 * S);
        assert!(read >= rate * 9 / 10, "{read} bytes per second of {rate}");
        assert!(queue <= rate * queue_ns / S, "{queue} bytes in the queue at {rate}");
    }
}

/// Frames that have arrived and are not acknowledged yet carry no information about the cable: a window
/// that they widen would let a burst queue before the urgent lane.
#[test]
fn half_used_cable_does_not_widen_the_window() {
    let cable = Cable { rate: Some(125_000_000), delay_ns: 100_000, ..IDEAL_CABLE };
    let mut network = Network::meet(Lane::Bulk, cable, 1);
    for _ in 0..2000 {
        // The window is small at first.
        for _ in 0..60 {
            let _ = network.push(0, &[1; 1000]);
        }
        network.sides[0].stream.flush();
        network.run(MS);
    }
    let window_bytes = network.sides[0].stream.stats().window_bytes;
    assert!((200 << 10..1 << 20).contains(&window_bytes), "{window_bytes}");
}

#[test]
fn narrowed_cable_is_not_flooded() {
    let mut network =
        Network::meet(Lane::Bulk, Cable { rate: Some(125_000_000), ..IDEAL_CABLE }, 1);
    saturate(&mut network, S, S);
    let rate = 2_500_000;
    network.sides[0].cable.rate = Some(rate);
    let (read, queue) = saturate(&mut network, 2 * S, 10 * S);
    assert!(read >= rate * 9 / 10, "{read} bytes per second");
    assert!(queue <= 5 * 1400, "{queue} bytes in the queue");
}

/// Messages in both directions, for `for_ns`.
fn chat(network: &mut Network, for_ns: u64) {
    for _ in 0..for_ns / (10 * MS) {
        for side in 0..2 {
            network.push(side, &[1; 22]).unwrap();
            network.sides[side].stream.flush();
        }
        network.run(10 * MS);
    }
}

/// Compares what both sides know of each other's clock with the truth.
fn check_clocks(network: &Network, largest_ns: u64) {
    let now = |side: usize| network.sides[side].clock(network.now_ns);
    for (own, other) in [(0, 1), (1, 0)] {
        let offset = network.sides[own].stream.clock(now(own)).unwrap();
        let ClockOffset { offset_ns, uncertainty_ns, round_trip_ns } = offset;
        let truth_ns = now(other).wrapping_sub(now(own)).cast_signed();
        assert!(offset_ns.abs_diff(truth_ns) <= uncertainty_ns, "{offset:?}, really {truth_ns}");
        assert!(uncertainty_ns <= largest_ns && round_trip_ns <= 2 * largest_ns, "{offset:?}");
    }
}

#[test]
fn clock_offsets_are_within_their_uncertainty() {
    // One way is three times the other, and both have jitter.
    let cable = Cable { jitter_ns: 10 * MS, ..IDEAL_CABLE };
    let mut network = Network::new(Lane::Urgent, cable, 7);
    network.sides[0].cable.delay_ns = 3 * MS;
    (network.sides[1].clock_ns, network.sides[1].ppm) = (500 * S, 50);
    network.settle();
    for _ in 0..20 {
        chat(&mut network, S);
        check_clocks(&network, 8 * MS);
    }
    assert_eq!(network.sides.each_ref().map(|side| side.stream.steps()), [(0, 0), (0, 0)]);
    network.sides[1].clock_ns += 3 * S;
    chat(&mut network, S);
    check_clocks(&network, 8 * MS);
    let steps = network.sides.each_ref().map(|side| side.stream.steps());
    assert_eq!(steps.map(|(count, _)| count), [1, 1]);
    for ((_, by_ns), really_s) in steps.into_iter().zip([3, -3]) {
        assert!(by_ns.abs_diff(really_s * S.cast_signed()) < 50 * MS, "{by_ns} ns");
    }
}

#[test]
fn drift_is_within_its_uncertainty() {
    let mut network = Network::meet(Lane::Urgent, IDEAL_CABLE, 1);
    network.sides[1].ppm = 50;
    for _ in 0..30 {
        chat(&mut network, S);
    }
    for (side, really) in [(0, 50e-6), (1, -50e-6)] {
        let of = &network.sides[side];
        let drift = of.stream.drift(of.clock(network.now_ns)).expect("the drift was measured");
        assert!((drift.rate - really).abs() <= drift.uncertainty + 1e-8, "{drift:?}");
        assert!(drift.uncertainty < 1e-4, "{drift:?}");
    }
}

#[test]
fn cut_cable_fills_the_stream_without_loss() {
    for lane in [Lane::Urgent, Lane::Bulk] {
        let mut network = Network::meet(lane, IDEAL_CABLE, 1);
        network.sides[0].cable.cut = true;
        while network.push(0, &[3; 4000]).is_ok() {
            network.poll();
        }
        assert_eq!(network.push(0, &[]), Err(PushError::Full));
        assert!(!network.sides[0].stream.has_room());
        let kept = network.sides[0].stream.stats().unacknowledged_bytes;
        assert!(kept <= (4 << 20) + (64 << 10), "{kept} bytes");
        let since = network.sides[0].stream.stats().unacknowledged_since_ns;
        assert_eq!(since, Some(network.now_ns));
        // Nothing is heard: one frame at intervals.
        let before = network.sides[0].frames;
        network.run(60 * S);
        assert!(network.sides[0].frames - before <= 60 * 5);
        network.sides[0].cable.cut = false;
        network.sides[0].stream.flush();
        network.run(S);
        network.check();
        network.settle();
        // Twice at most, except those that probe the cable.
        let Side { frames, stream, .. } = &network.sides[0];
        assert!(stream.stats().frames_repeated <= kept / 1000 + 300, "{frames} frames");
    }
}

#[test]
fn frame_is_acknowledged_soon_and_an_acknowledgement_never() {
    let mut network = Network::meet(Lane::Urgent, IDEAL_CABLE, 1);
    let before = network.sides.each_ref().map(|side| side.frames);
    network.push(0, &[1; 22]).unwrap();
    network.sides[0].stream.flush();
    network.run(MS);
    let now_ns = network.now_ns;
    assert_eq!(network.sides[1].stream.wake_at(), Some(now_ns + 20 * MS));
    network.settle();
    let after = network.sides.each_ref().map(|side| side.frames);
    assert_eq!([after[0] - before[0], after[1] - before[1]], [1, 1]);
}

/// Each acknowledgement wakes five threads of two hosts: more than one for a few messages would cost more
/// than these.
#[test]
fn steady_stream_is_acknowledged_rarely() {
    for late_ns in [None, Some(MS / 10), Some(MS / 2), Some(2 * MS)] {
        let cable = Cable { rate: Some(125_000_000), delay_ns: 50_000, late_ns, ..IDEAL_CABLE };
        let mut network = Network::meet(Lane::Bulk, cable, 1);
        let mut before = 0;
        for sent in 0..10_000 {
            if sent == 2_000 {
                before = network.sides[1].frames;
            }
            network.push(0, &[1; 1024]).unwrap();
            network.sides[0].stream.flush();
            network.run(MS);
        }
        let acknowledgements = network.sides[1].frames - before;
        assert!(acknowledgements < 8_000 / 5, "{acknowledgements} of 8000, late {late_ns:?}");
    }
}

#[test]
fn rejects_item_larger_than_frame() {
    let mut network = Network::new(Lane::Urgent, IDEAL_CABLE, 1);
    assert_eq!(network.push_nowhere(), Err(PushError::NoPeer));
    network.settle();
    let long = vec![1; 64 << 10];
    assert!(matches!(network.push(0, &long), Err(PushError::TooLong(len)) if len > 64 << 10));
    let len = network.sides[0].stream.fragment_len();
    assert!(len > 63 << 10);
    network.push(0, &long[..len]).unwrap();
    network.settle();
    network.check();
}

#[test]
fn acknowledgement_of_unsent_frame_is_corrupt() {
    let mut network = Network::meet(Lane::Urgent, IDEAL_CABLE, 1);
    let header = Header { flags: ACK_ONLY, from_term: 1, to_term: 1, ..Header::default() };
    let side = &mut network.sides[0].stream;
    assert_eq!(side.accept(0, &Header { next: 1, ..header }), Accept::Corrupt);
    assert_eq!(side.accept(0, &Header { flags: 0, to_term: 0, ..header }), Accept::Corrupt);
    assert_eq!(side.accept(0, &Header { from_term: 0, ..header }), Accept::Stale);
    assert_eq!(side.accept(0, &Header { to_term: 2, ..header }), Accept::Stale);
    assert_eq!(side.accept(0, &header), Accept::Acknowledgement);
}

proptest! {
    /// Any terms, numbers and times of a peer.
    #[test]
    fn accepts_any_header_without_panic(
        headers in vec((any::<u8>(), any::<[u8; 7]>(), any::<[u64; 7]>()), 1..60),
        bulk in any::<bool>(),
    ) {
        let lane = if bulk { Lane::Bulk } else { Lane::Urgent };
        let mut network = Network::meet(lane, IDEAL_CABLE, 1);
        let stream = &mut network.sides[0].stream;
        let mut now_ns = network.now_ns;
        for (flags, small, words) in headers {
            // Near the valid values, or anything.
            let near = [1, 1, 0, 0, now_ns, now_ns, 0];
            let word = |at: usize| match small[at] {
                0..200 => u64::wrapping_add(near[at], u64::from(small[at] % 3)),
                200..230 => near[at] / 2,
                _ => words[at],
            };
            let [from_term, to_term, number, next, sent_ns, echo_ns, held_ns] =
                std::array::from_fn(word);
            let len = words[0] as u32;
            stream.accept(now_ns, &Header {
                version: 1, flags, len, from_term, to_term, number, next, sent_ns, echo_ns, held_ns,
            });
            let _ = stream.push(&Item::Unsubscribe { channel: 1 });
            stream.flush();
            let frames = std::iter::from_fn(|| stream.poll(now_ns)).take(100).count();
            prop_assert!(frames < 100);
            let _ = (stream.clock(now_ns), stream.stats(), stream.wake_at());
            now_ns += words[6] % (100 * MS);
        }
    }
}
