//! Errors of a node's callbacks: panics, and exceptions of a binding. Each error is counted for the tools,
//! and reported at most once per second and callback.

use std::any::Any;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::{Duration, Instant};

use crate::sync::lock;
use rnet_core::Error;
use rnet_shm::domain::node::OwnNode;

/// Minimum time between two reports of one callback.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum number of callbacks with a separate limit.
const MAX_CALLBACKS: usize = 256;

/// Panic payload of a binding that has already counted its exception.
#[derive(Debug)]
pub struct AlreadyCounted;

/// An error for the node's log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// What failed, and why.
    pub text: String,
    /// The source file that raised the error, if known.
    pub file: String,
    /// Line number in that file.
    pub line: u32,
    /// Whether the error was printed on stderr. If not, the log prints it.
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

/// Counts and reports the errors of one node's callbacks. It does not keep the node alive.
pub struct CallbackErrors {
    own: Weak<OwnNode>,
    reporter: OnceLock<Reporter>,
    repeated: Mutex<HashMap<String, ReportLimit>>,
}

impl CallbackErrors {
    pub(crate) fn new(own: &Arc<OwnNode>) -> Arc<CallbackErrors> {
        let (reporter, repeated) = Default::default();
        Arc::new(CallbackErrors { own: Arc::downgrade(own), reporter, repeated })
    }

    /// Sets the function that reports errors.
    pub fn set_reporter(&self, reporter: impl Fn(&Report) + Send + Sync + 'static) {
        let _ = self.reporter.set(Box::new(reporter));
    }

    /// Reports an error that no callback raised. The error is not counted.
    pub fn report_other(&self, error: &Error) {
        if let Some(reporter) = self.reporter.get() {
            reporter(&Report { text: error.to_string(), ..Report::default() });
        }
    }

    /// Makes errors raised on this thread count here. For the threads of the node.
    pub fn attach_thread(self: &Arc<Self>) {
        THREAD_ERRORS.with_borrow_mut(|errors| *errors = Some(self.clone()));
    }

    /// The counters of the node that owns this thread.
    pub fn of_this_thread() -> Option<Arc<CallbackErrors>> {
        // An exiting thread may close objects after its thread-local values are gone.
        THREAD_ERRORS.try_with(|errors| errors.borrow().clone()).ok().flatten()
    }

    /// Whether this thread calls callbacks or handlers of a node. Nothing waits there for another callback, which
    /// may wait for this one.
    pub fn is_callback_thread() -> bool {
        CallbackErrors::of_this_thread().is_some()
    }

    /// Counts an error of `callback`. Returns how many of its errors were not reported, if this one is to be
    /// reported.
    pub fn count(&self, callback: &str) -> Option<u64> {
        self.own()?.count_callback_error();
        self.admit(callback)
    }

    /// Reports a counted error.
    pub fn report(&self, callback: &str, unreported: u64, error: Report) {
        let Some(reporter) = self.reporter.get() else { return };
        let more = match unreported {
            0 => String::new(),
            more => format!(" ({more} more since the last report)"),
        };
        let text = format!("{callback} failed{more}: {}", error.text);
        reporter(&Report { text, ..error });
    }

    /// Counts and reports a panic of `callback`. The panic hook has printed it with its location.
    pub fn note_panic(&self, callback: &str, panic: &(dyn Any + Send)) {
        if !panic.is::<AlreadyCounted>()
            && let Some(unreported) = self.count(callback)
        {
            let text = format!("it panicked: {}", text_of_panic(panic));
            self.report(callback, unreported, Report { text, printed: true, ..Report::default() });
        }
    }

    /// Reports an error that `callback` returned. The error is not counted.
    pub fn note_returned(&self, callback: &str, error: &str) {
        if let Some(unreported) = self.own().and_then(|_| self.admit(callback)) {
            let text = error.to_owned();
            self.report(callback, unreported, Report { text, ..Report::default() });
        }
    }

    /// Counts a callback that is not called again because it panicked.
    pub fn note_dropped(&self) {
        if let Some(own) = self.own() {
            own.count_dropped_callback();
        }
    }

    /// The node, unless this process is a forked child.
    fn own(&self) -> Option<Arc<OwnNode>> {
        self.own.upgrade().filter(|own| !own.fork_guard().is_from_parent())
    }

    /// Returns how many errors of `callback` were not reported, if a report is allowed now.
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
