//! What `hz` and `bw` share: a window of the last messages, and a report on it each second.

use std::collections::VecDeque;

use rnet::inspect::{Follow, Heard};

use super::listen::{Go, Listener, Quiet, listen};
use crate::args::WatchArgs;
use crate::context::Context;
use crate::failure::Outcome;

/// The last messages of a topic.
pub struct Window {
    pub topic: String,
    /// When each was sent, in ns, and its length in bytes.
    pub last: VecDeque<(u64, usize)>,
    /// Messages so far.
    pub seen: u64,
}

/// Prints what there is to say of a window; whether there was anything.
type Report = fn(&mut Context, &Window) -> Outcome<bool>;

struct Rates {
    window: Window,
    capacity: usize,
    report: Report,
    wanted: Option<u64>,
    /// `seen` at the last report.
    reported: u64,
    reports: u64,
    quiet: Quiet,
}

/// Reports on the last `capacity` messages until there is enough.
pub fn run(context: &mut Context, args: &WatchArgs, capacity: usize, report: Report) -> Outcome {
    let window = Window { topic: args.topic.to_string(), last: VecDeque::new(), seen: 0 };
    let wanted = args.count;
    let quiet = Quiet::default();
    let mut rates = Rates { window, capacity, report, wanted, reported: 0, reports: 0, quiet };
    listen(context, args.topic.as_str(), false, args.timeout, &mut rates)
}

impl Rates {
    fn report(&mut self, context: &mut Context) -> Outcome {
        self.reported = self.window.seen;
        self.reports += u64::from((self.report)(context, &self.window)?);
        Ok(())
    }
}

impl Listener for Rates {
    fn message(&mut self, _: &mut Context, heard: &Heard<'_>, bytes: &[u8]) -> Outcome<Go> {
        if self.window.last.len() >= self.capacity {
            self.window.last.pop_front();
        }
        self.window.last.push_back((heard.stamp.sent_ns, bytes.len()));
        self.window.seen += 1;
        Ok(Go::On)
    }

    fn second(&mut self, context: &mut Context, follow: &Follow) -> Outcome<Go> {
        if self.window.seen == self.reported {
            // That nobody is there yet was said.
            if self.window.seen > 0 || follow.publisher_count() > 0 {
                self.quiet.tell(context, follow.publishers());
            }
            return Ok(Go::On);
        }
        self.quiet.end();
        self.report(context)?;
        Ok(if Some(self.reports) == self.wanted { Go::Enough } else { Go::On })
    }

    fn finish(&mut self, context: &mut Context) -> Outcome {
        if self.window.seen > self.reported { self.report(context) } else { Ok(()) }
    }

    fn satisfied(&self) -> bool {
        self.window.seen > 0
    }
}
