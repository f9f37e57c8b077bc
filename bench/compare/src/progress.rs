//! How far the comparison is: a bar on a terminal, lines elsewhere.

use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::time::Instant;

/// Shows progress on standard error. Work is counted in ms that a run is expected to take.
pub struct Progress {
    bar: Option<ProgressBar>,
    start: Instant,
    total_ms: u64,
    done_ms: u64,
    said: String,
}

impl Progress {
    /// Begins.
    pub fn new(total_s: f64) -> Self {
        let total_ms = (total_s * 1000.0) as u64;
        let bar = std::io::stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template(
                "{elapsed_precise} [{wide_bar}] {percent} %, {eta_precise} left  {msg}",
            );
            let bar = ProgressBar::new(total_ms);
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar
        });
        Self { bar, start: Instant::now(), total_ms, done_ms: 0, said: String::new() }
    }

    /// Shows the current run. `part` is the coarser step, a separate line without a bar.
    pub fn now(&mut self, part: &str, run: &str) {
        match &self.bar {
            Some(bar) => bar.set_message(format!("{part} {run}")),
            None if self.said != part => {
                self.said = part.into();
                let passed = self.start.elapsed().as_secs_f64();
                let left = match self.done_ms {
                    0 => self.total_ms as f64 / 1000.0,
                    done => passed * (self.total_ms as f64 / done as f64 - 1.0),
                };
                eprintln!("compare: {passed:6.0} s passed, about {left:4.0} s left: {part}");
            }
            None => {}
        }
    }

    /// A run that was expected to take so long is over.
    pub fn done(&mut self, seconds: f64) {
        let ms = (seconds * 1000.0) as u64;
        self.done_ms += ms;
        if let Some(bar) = &self.bar {
            bar.inc(ms);
        }
    }

    /// Prints a permanent line.
    pub fn say(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.println(text),
            None => eprintln!("{text}"),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
