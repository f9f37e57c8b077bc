//! Errors of the callbacks of a node: panics, and exceptions of a binding. Each is counted where tools read it, and
//! reported, at most once a second for each callback.

use std::any::Any;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::{Duration, Instant};

use crate::sync::lock;
use rnet_core::Error;
use rnet_shm::domain::node::OwnNode;

/// How long a callback that fails again and again is counted without a report.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);
/// Callbacks that are told apart.
const MAX_CALLBACKS: usize = 256;

/// The panic of a binding whose exception it has counted.
#[derive(Debug)]
pub struct AlreadyCounted;

/// An error for the node's log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    pub text: String,
    /// The source file that raised it, if it is known.
    pub file: String,
    /// Its line.
    pub line: u32,
    /// Whether it was printed on stderr.
    pub printed: bool,
}

type Reporter = Box<dyn Fn(&Report) + Send + Sync>;

struct ReportLimit {
    reported: Instant,
    unreported: u64,
}

thread_local! {
    static THREAD_ERRORS: RefCell<Option<Arc<CallbackErrors>>> = const { RefCell::new(None) };
}

/// Counts and reports the errors of the callbacks of one node. It does not keep the node alive.
pub struct CallbackErrors {
    own: Weak<OwnNode>,
    reporter: OnceLock<Reporter>,
    repeated: Mutex<HashMap<String, ReportLimit>>,
}

impl CallbackErrors {
    pub fn new(own: &Arc<OwnNode>) -> Arc<CallbackErrors> {
        let (reporter, repeated) = Default::default();
        Arc::new(CallbackErrors { own: Arc::downgrade(own), reporter, repeated })
    }

    /// Has errors reported in this way.
    pub fn set_reporter(&self, reporter: impl Fn(&Report) + Send + Sync + 'static) {
        let _ = self.reporter.set(Box::new(reporter));
    }

    /// Reports an error that no callback raised. It is not counted.
    pub fn report_other(&self, error: &Error) {
        if let Some(reporter) = self.reporter.get() {
            reporter(&Report { text: error.to_string(), ..Report::default() });
        }
    }

    /// Has what the program raises on this thread counted here. For the threads of the node.
    pub fn attach_thread(self: &Arc<Self>) {
        THREAD_ERRORS.with_borrow_mut(|errors| *errors = Some(self.clone()));
    }

    /// Those of the node whose thread this is.
    pub fn of_this_thread() -> Option<Arc<CallbackErrors>> {
        THREAD_ERRORS.with_borrow(Clone::clone)
    }

    /// Counts an error of `callback`. How many of it were not reported, if it is to be reported now.
    pub fn count(&self, callback: &str) -> Option<u64> {
        self.own()?.count_callback_error();
        self.admit(callback)
    }

    /// Reports an error that was counted: what it says, and where it was raised.
    pub fn report(&self, callback: &str, error: &str, unreported: u64, file: &str, line: u32) {
        let Some(reporter) = self.reporter.get() else { return };
        let more = match unreported {
            0 => String::new(),
            more => format!(" ({more} more since the last report)"),
        };
        let text = format!("{callback} failed{more}: {error}");
        reporter(&Report { text, file: file.to_owned(), line, printed: true });
    }

    /// Counts and reports a panic of `callback`. The panic hook has printed it with its place.
    pub fn note_panic(&self, callback: &str, panic: &(dyn Any + Send)) {
        if !panic.is::<AlreadyCounted>()
            && let Some(unreported) = self.count(callback)
        {
            let error = format!("it panicked: {}", text_of_panic(panic));
            self.report(callback, &error, unreported, "", 0);
        }
    }

    /// Counts a callback that is not called again because it panicked.
    pub fn note_dropped(&self) {
        if let Some(own) = self.own() {
            own.count_dropped_callback();
        }
    }

    /// Its node, unless this is a forked child.
    fn own(&self) -> Option<Arc<OwnNode>> {
        self.own.upgrade().filter(|own| !own.fork_guard().is_from_parent())
    }

    /// How many errors of it were not reported, if one may be now.
    fn admit(&self, callback: &str) -> Option<u64> {
        let now = Instant::now();
        let mut repeated = lock(&self.repeated);
        if let Some(known) = repeated.get_mut(callback) {
            if now.duration_since(known.reported) < REPORT_INTERVAL {
                known.unreported += 1;
                return None;
            }
            known.reported = now;
            return Some(std::mem::take(&mut known.unreported));
        }
        if repeated.len() >= MAX_CALLBACKS {
            repeated.retain(|_, known| now.duration_since(known.reported) < REPORT_INTERVAL);
            if repeated.len() >= MAX_CALLBACKS {
                return None;
            }
        }
        repeated.insert(callback.to_owned(), ReportLimit { reported: now, unreported: 0 });
        Some(0)
    }
}

/// The message of a panic.
pub fn text_of_panic(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_owned())
}
