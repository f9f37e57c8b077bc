//! The receiving end of every subscription: counts, checks and times each message.

use crate::clock::now_ns;
use crate::message::{self, HEADER_LEN, Header, Kind};
use crate::result::{Received, Recorder};
use crate::spec::Expect;

/// What a collector reports.
#[derive(Debug)]
pub enum Report {
    /// Each publisher of the topic has been heard.
    Joined,
    /// A phase is over: all Ends are here.
    Phase {
        /// Its number.
        phase: usize,
        /// The messages received in it.
        received: Box<Received>,
    },
}

/// Known messages of one publisher in this phase.
#[derive(Clone, Default)]
struct Publisher {
    heard: bool,
    next: u64,
    count: u64,
    ended: Option<u64>,
}

/// Collects one subscription's messages, phase after phase.
pub struct Collector {
    topic: String,
    expects: Vec<Expect>,
    template: Vec<u8>,
    publishers: Vec<Publisher>,
    unheard: usize,
    phase: usize,
    first_ns: u64,
    last_ns: u64,
    now: Received,
    latency: Recorder,
    report: Box<dyn FnMut(Report) + Send>,
}

impl Collector {
    /// A collector of a topic with `publishers` publishers and messages up to `max_len` bytes, which
    /// calls `report` when all have been heard and after each phase.
    pub fn new(
        topic: &str,
        publishers: usize,
        max_len: usize,
        expects: Vec<Expect>,
        report: impl FnMut(Report) + Send + 'static,
    ) -> Self {
        Self {
            topic: topic.into(),
            expects,
            template: message::patterned(max_len.max(HEADER_LEN)),
            publishers: vec![Publisher::default(); publishers],
            unheard: publishers,
            phase: 0,
            first_ns: 0,
            last_ns: 0,
            now: Received::default(),
            latency: Recorder::default(),
            report: Box::new(report),
        }
    }

    /// Takes one message; the sink.
    #[inline]
    pub fn take(&mut self, bytes: &[u8]) {
        let now_ns = now_ns();
        if bytes.len() < HEADER_LEN {
            return self.take_short(bytes, now_ns);
        }
        let Some(header) = Header::read(bytes) else {
            self.now.corrupt += 1;
            return;
        };
        if !matches!(header.kind, Kind::Data | Kind::Filled) {
            return self.take_marker(header);
        }
        // A straggler of a phase that is over was counted as lost there, and must not count here.
        if usize::from(header.phase) != self.phase & 0xff {
            return;
        }
        let Some(publisher) = self.publishers.get_mut(usize::from(header.publisher)) else {
            self.now.corrupt += 1;
            return;
        };
        if header.number < publisher.next {
            self.now.out_of_order += 1;
            return;
        }
        publisher.next = header.number + 1;
        publisher.count += 1;
        let right = match header.kind {
            Kind::Filled => message::sum_is_right(bytes, header.number),
            _ => message::content_is_right(bytes, header.number, &self.template),
        };
        self.now.corrupt += u64::from(!right);
        self.count_time(now_ns, now_ns.saturating_sub(header.stamp_ns));
    }

    #[inline]
    fn count_time(&mut self, now_ns: u64, latency_ns: u64) {
        if self.now.count == 0 {
            self.first_ns = now_ns;
        }
        self.now.count += 1;
        self.last_ns = now_ns;
        self.latency.record(latency_ns);
        if let Some(Expect { late_ns: Some(late), too_late_ns: Some(too_late), .. }) =
            self.expects.get(self.phase)
        {
            if latency_ns > *too_late {
                self.now.too_late += 1;
            } else if latency_ns > *late {
                self.now.late += 1;
            }
        }
    }

    /// A message without a header: only its length, content and count can be checked.
    fn take_short(&mut self, bytes: &[u8], now_ns: u64) {
        let expected = self.expects.get(self.phase).map_or(0, |e| e.len);
        let right = bytes.len() == expected && self.template.starts_with(bytes);
        self.now.corrupt += u64::from(!right);
        if let [publisher] = &mut self.publishers[..] {
            publisher.count += 1;
        }
        if self.now.count == 0 {
            self.first_ns = now_ns;
        }
        self.now.count += 1;
        self.last_ns = now_ns;
    }

    fn take_marker(&mut self, header: Header) {
        let Some(publisher) = self.publishers.get_mut(usize::from(header.publisher)) else {
            self.now.corrupt += 1;
            return;
        };
        if header.kind == Kind::Hello {
            if !publisher.heard {
                publisher.heard = true;
                self.unheard -= 1;
                if self.unheard == 0 {
                    (self.report)(Report::Joined);
                }
            }
            return;
        }
        if usize::from(header.phase) != self.phase & 0xff || publisher.ended.is_some() {
            return;
        }
        publisher.ended = Some(header.number);
        if self.publishers.iter().all(|p| p.ended.is_some()) {
            self.finish_phase();
        }
    }

    fn finish_phase(&mut self) {
        let mut received = std::mem::take(&mut self.now);
        for publisher in &mut self.publishers {
            received.lost += publisher.ended.unwrap_or(0).saturating_sub(publisher.count);
            *publisher = Publisher { heard: publisher.heard, ..Publisher::default() };
        }
        received.topic.clone_from(&self.topic);
        received.span_ns = self.last_ns - self.first_ns;
        received.latency = self.latency.take();
        let phase = self.phase;
        self.phase += 1;
        (self.first_ns, self.last_ns) = (0, 0);
        (self.report)(Report::Phase { phase, received: Box::new(received) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, channel};

    fn collector(publishers: usize) -> (Collector, Receiver<Report>) {
        let (sender, reports) = channel();
        let report = move |report| sender.send(report).expect("the test listens");
        (Collector::new("t", publishers, 64, vec![Expect::default(); 2], report), reports)
    }

    fn message(kind: Kind, phase: u8, publisher: u16, number: u64) -> Vec<u8> {
        let mut message = message::patterned(22);
        Header { stamp_ns: now_ns(), kind, phase, publisher, number }.write(&mut message);
        message
    }

    fn phase(reports: &Receiver<Report>) -> (usize, Received) {
        match reports.try_recv() {
            Ok(Report::Phase { phase, received }) => (phase, *received),
            other => panic!("no phase: {other:?}"),
        }
    }

    #[test]
    fn a_gap_is_lost_a_repeat_is_out_of_order_and_changed_bytes_are_corrupt() {
        let (mut collector, reports) = collector(1);
        for number in [0, 1, 3, 3, 2] {
            collector.take(&message(Kind::Data, 0, 0, number));
        }
        let mut changed = message(Kind::Data, 0, 0, 4);
        changed[20] ^= 1;
        collector.take(&changed);
        collector.take(&message(Kind::End, 0, 0, 7));
        let (number, received) = phase(&reports);
        assert_eq!(number, 0);
        // 0, 1, 3 and 4 count for the publisher's seven; the two out of order may be repeats.
        assert_eq!((received.count, received.out_of_order, received.corrupt), (4, 2, 1));
        assert_eq!(received.lost, 3);
        assert_eq!(received.latency.count, 4);
    }

    #[test]
    fn a_phase_waits_for_the_end_of_every_publisher() {
        let (mut collector, reports) = collector(2);
        collector.take(&message(Kind::Hello, 0, 0, 0));
        collector.take(&message(Kind::Hello, 0, 0, 0));
        assert!(reports.try_recv().is_err());
        collector.take(&message(Kind::Hello, 0, 1, 0));
        assert!(matches!(reports.try_recv(), Ok(Report::Joined)));
        collector.take(&message(Kind::Data, 0, 0, 0));
        collector.take(&message(Kind::End, 0, 0, 1));
        collector.take(&message(Kind::End, 0, 0, 1));
        assert!(reports.try_recv().is_err());
        collector.take(&message(Kind::End, 0, 1, 5));
        assert_eq!(phase(&reports).1.lost, 5);
        // Stragglers of phase 0 leave phase 1 alone.
        collector.take(&message(Kind::Data, 0, 1, 2));
        collector.take(&message(Kind::End, 0, 1, 5));
        collector.take(&message(Kind::End, 1, 0, 0));
        collector.take(&message(Kind::End, 1, 1, 0));
        let (number, received) = phase(&reports);
        assert_eq!((number, received.count, received.lost), (1, 0, 0));
    }

    #[test]
    fn empty_messages_are_counted_and_those_of_another_length_are_corrupt() {
        let (mut collector, reports) = collector(1);
        collector.take(&[]);
        collector.take(&[7]);
        collector.take(&message(Kind::End, 0, 0, 3));
        let (_, received) = phase(&reports);
        assert_eq!((received.count, received.lost, received.corrupt), (2, 1, 1));
    }

    #[test]
    fn lateness_has_two_limits() {
        let (sender, reports) = channel();
        let expects =
            vec![Expect { len: 22, late_ns: Some(1_000_000), too_late_ns: Some(1_000_000_000) }];
        let report = move |report| sender.send(report).expect("the test listens");
        let mut collector = Collector::new("t", 1, 64, expects, report);
        for (number, age_ns) in [(0, 0), (1, 100_000_000), (2, 5_000_000_000)] {
            let mut message = message::patterned(22);
            let stamp_ns = now_ns() - age_ns;
            Header { stamp_ns, kind: Kind::Data, phase: 0, publisher: 0, number }
                .write(&mut message);
            collector.take(&message);
        }
        collector.take(&message(Kind::End, 0, 0, 3));
        let (_, received) = phase(&reports);
        assert_eq!((received.late, received.too_late), (1, 1));
    }
}
