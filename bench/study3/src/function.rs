//! One function of the benchmark: a system with connected endpoints, with or without a mutex.

use crate::{Arrivals, MESSAGES};
use bench_harness::{Error, Result};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The publisher of a system. Dropping it closes both endpoints.
pub trait Publish: Send {
    /// Publishes `count` messages, each encoded again.
    ///
    /// # Errors
    /// The library's own.
    fn publish(&mut self, count: u64) -> Result<()>;
}

enum Shared {
    Plain(Box<dyn Publish>),
    Locked(Arc<Mutex<Box<dyn Publish>>>),
}

/// A system ready to be measured, and the counts so far.
pub struct Function {
    publisher: Shared,
    arrivals: Arc<Arrivals>,
    published: u64,
    /// Messages published or received before the measurement.
    before: (u64, u64),
    failed: Option<Error>,
}

impl Function {
    /// Waits until messages of `publisher` arrive, at most five seconds.
    ///
    /// # Errors
    /// When none arrives, or publishing fails.
    pub fn new(
        mut publisher: Box<dyn Publish>,
        arrivals: Arc<Arrivals>,
        mutex: bool,
    ) -> Result<Self> {
        let start = Instant::now();
        let mut hellos = 0;
        while arrivals.count() == 0 {
            if start.elapsed() > crate::arrivals::WAIT_LIMIT {
                return Err(Error::new("publisher and subscriber did not find each other in 5 s"));
            }
            publisher.publish(1)?;
            hellos += 1;
            arrivals.wait(hellos, Duration::from_millis(5));
        }
        // Later hellos may still be on their way.
        arrivals.wait(hellos, Duration::from_millis(50));
        let publisher = match mutex {
            true => Shared::Locked(Arc::new(Mutex::new(publisher))),
            false => Shared::Plain(publisher),
        };
        let mut function = Self { publisher, arrivals, published: 0, before: (0, 0), failed: None };
        function.start_counting();
        Ok(function)
    }

    /// Sets the counts to zero.
    pub fn start_counting(&mut self) {
        self.before = (self.published, self.arrivals.count());
    }

    /// How many were published and how many delivered since [`start_counting`](Self::start_counting).
    /// Waits for those on their way, at most five seconds.
    ///
    /// # Errors
    /// The error of an iteration.
    pub fn counts(&mut self) -> Result<(u64, u64)> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let published = self.published - self.before.0;
        self.arrivals.wait_for(self.before.1 + published);
        Ok((published, self.arrivals.count() - self.before.1))
    }

    /// The study's loop: `iterations` of 1,000 messages each. Returns the time that it took.
    pub fn publish(&mut self, iterations: u64) -> Duration {
        self.run(iterations, |_| ())
    }

    /// The same, each iteration waiting until its messages were counted.
    pub fn publish_and_wait(&mut self, iterations: u64) -> Duration {
        // From here: an iteration that lost messages makes the next one wait for no others.
        let mut arrived = self.arrivals.count();
        self.run(iterations, |arrivals| {
            if arrivals.wait_for(arrived + MESSAGES) {
                arrived += MESSAGES;
            } else {
                arrived = arrivals.count();
            }
        })
    }

    fn run(&mut self, iterations: u64, mut after_each: impl FnMut(&Arrivals)) -> Duration {
        let start = Instant::now();
        for _ in 0..iterations {
            if self.failed.is_some() {
                // The time means nothing now, but criterion wants one above zero.
                return start.elapsed().max(Duration::from_millis(1));
            }
            match self.iterate() {
                Ok(()) => self.published += MESSAGES,
                Err(error) => self.failed = Some(error),
            }
            after_each(&self.arrivals);
        }
        start.elapsed()
    }

    fn iterate(&mut self) -> Result<()> {
        match &mut self.publisher {
            Shared::Plain(publisher) => publisher.publish(MESSAGES),
            Shared::Locked(mutex) => {
                let mutex = Arc::clone(mutex);
                let mut publisher = mutex.lock().unwrap_or_else(PoisonError::into_inner);
                publisher.publish(MESSAGES)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Delivers at once, except each `drops`th message, and fails after `fails` messages.
    struct Fake {
        arrivals: Arc<Arrivals>,
        sent: u64,
        drops: u64,
        fails: u64,
    }

    impl Publish for Fake {
        fn publish(&mut self, count: u64) -> Result<()> {
            for _ in 0..count {
                self.sent += 1;
                if self.sent > self.fails {
                    return Err(Error::new("out of order"));
                }
                if !self.sent.is_multiple_of(self.drops) {
                    self.arrivals.add();
                }
            }
            Ok(())
        }
    }

    fn function(drops: u64, fails: u64, mutex: bool) -> Result<Function> {
        let arrivals = Arc::new(Arrivals::default());
        let fake = Fake { arrivals: arrivals.clone(), sent: 0, drops, fails };
        Function::new(Box::new(fake), arrivals, mutex)
    }

    #[test]
    fn what_is_delivered_is_counted() {
        for mutex in [false, true] {
            let mut all = function(u64::MAX, u64::MAX, mutex).expect("they meet");
            all.publish(3);
            assert_eq!(all.counts().expect("nothing fails"), (3000, 3000));
            all.start_counting();
            all.publish_and_wait(2);
            assert_eq!(all.counts().expect("nothing fails"), (2000, 2000));
        }
    }

    #[test]
    fn what_is_lost_is_not_delivered() {
        let mut lossy = function(500, u64::MAX, false).expect("they meet");
        assert!(lossy.publish_and_wait(1) >= crate::arrivals::SILENCE);
        assert_eq!(lossy.counts().expect("nothing fails"), (1000, 998));
    }

    #[test]
    fn a_failure_is_told_and_ends_the_function() {
        let mut failing = function(u64::MAX, 1500, false).expect("they meet");
        assert!(failing.publish(5) > Duration::ZERO);
        assert!(failing.counts().is_err_and(|e| e.to_string() == "out of order"));
        assert!(function(1, u64::MAX, false).is_err(), "nothing ever arrives");
    }
}
