//! Worker processes of a benchmark, and the protocol between them and the program that starts them.
//!
//! The comparison and `rnet bench` measure with such workers. The program writes lines of JSON to a worker's
//! standard input and reads lines of JSON from its standard output, whatever the worker's language:
//!
//! ```text
//! worker                                    program
//!                                      <-  the job, in the program's own format
//! {"event":"ready"}                    ->  endpoints open and matched
//!                                      <-  {"go":0,"rates_hz":[null]}
//! {"event":"sent"}                     ->  optional: everything is sent, it still receives
//! {"event":"done","phase":0,…}         ->  what was measured
//!                                      <-  {"go":1,…}     … one for each phase
//!                                      <-  {"stop":true}  the worker closes its endpoints and exits
//! {"event":"failed","why":"…"}         ->  at any time, instead
//! ```

mod process;

pub use process::{Process, Worker, WorkerLine};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, Write};

/// The next order for a worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Order {
    /// Run a phase.
    Go {
        /// Number of the phase.
        go: usize,
        /// For each publisher of the process, the rate that replaces the one of its load.
        #[serde(default)]
        rates_hz: Vec<Option<f64>>,
    },
    /// Close and exit.
    Stop {
        /// Always true.
        stop: bool,
    },
}

impl Order {
    /// The order to run phase `go`.
    pub fn phase(go: usize) -> Self {
        Self::Go { go, rates_hz: Vec::new() }
    }

    /// The order to close and exit.
    pub fn stop() -> Self {
        Self::Stop { stop: true }
    }
}

/// An event of a worker; `R` is the result of a phase, a struct or map.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event<R> {
    /// Ready for the first phase.
    Ready,
    /// Everything is sent; it still receives.
    Sent,
    /// A phase has ended.
    Done {
        /// Number of the phase.
        phase: usize,
        /// The measured result.
        #[serde(flatten)]
        result: Box<R>,
    },
    /// The worker cannot continue.
    Failed {
        /// The reason.
        why: String,
        /// Whether an event did not happen in time.
        #[serde(default)]
        timed_out: bool,
    },
}

/// Reads the job of this worker, the first line of standard input.
///
/// # Errors
/// The line cannot be read, or is not a job: `InvalidData` for another format.
pub fn read_job<J: DeserializeOwned>() -> io::Result<J> {
    let mut first = String::new();
    io::stdin().lock().read_line(&mut first)?;
    Ok(serde_json::from_str(&first)?)
}

/// Reads orders on a thread named `orders`: `take` gets each line, as an order or as the error text of an
/// invalid line, and `None` at the end of the input. `take` returns whether to continue.
///
/// # Errors
/// The thread cannot be started.
pub fn spawn_order_reader(
    mut take: impl FnMut(Option<Result<Order, String>>) -> bool + Send + 'static,
) -> io::Result<()> {
    let read = move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            let order = serde_json::from_str(&line);
            if !take(Some(order.map_err(|e| format!("{line:?} is not a valid order: {e}")))) {
                return;
            }
        }
        take(None);
    };
    std::thread::Builder::new().name("orders".into()).spawn(read).map(drop)
}

/// Sends an event to the program.
///
/// # Errors
/// The program no longer reads.
pub fn send_event<R: Serialize>(event: &Event<R>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    serde_json::to_writer(&mut out, event)?;
    out.write_all(b"\n")?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn lines_have_format_of_workers_in_other_languages() {
        for (order, line) in
            [(Order::phase(3), r#"{"go":3,"rates_hz":[]}"#), (Order::stop(), r#"{"stop":true}"#)]
        {
            assert_eq!(serde_json::to_string(&order).expect("it is JSON"), line);
            assert_eq!(serde_json::from_str::<Order>(line).expect("an order"), order);
        }
        let done = r#"{"event":"done","phase":2,"lost":7}"#;
        let event: Event<BTreeMap<String, u64>> = serde_json::from_str(done).expect("an event");
        assert!(matches!(&event, Event::Done { phase: 2, result } if result["lost"] == 7));
        assert_eq!(serde_json::to_string(&event).expect("it is JSON"), done);
        let failed = r#"{"event":"failed","why":"full"}"#;
        let event: Event<BTreeMap<String, u64>> = serde_json::from_str(failed).expect("an event");
        assert!(matches!(event, Event::Failed { timed_out: false, .. }));
    }
}
