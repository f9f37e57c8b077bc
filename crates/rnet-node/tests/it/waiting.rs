//! One wait for many topics: wait sets, and async streams under a minimal executor.

use crate::common;

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

use common::{LONG, Net};
use futures_core::Stream;
use rnet::{OwnedSample, Sample, SampleStream, Subscriber, Wait, WaitSet, Waitable};

const TOPICS: usize = 40;

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs one future on this thread.
fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// The next item of any stream, polled in turn.
struct Any<'a> {
    streams: &'a mut [SampleStream<[u8]>],
    from: usize,
}

impl Future for Any<'_> {
    type Output = (usize, rnet::Result<OwnedSample<[u8]>>);

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        for step in 0..self.streams.len() {
            let at = (self.from + step) % self.streams.len();
            if let Poll::Ready(item) = Pin::new(&mut self.streams[at]).poll_next(context) {
                self.from = at + 1;
                return Poll::Ready((at, item.expect("a stream of samples does not end")));
            }
        }
        Poll::Pending
    }
}

#[test]
fn a_stream_yields_every_message() {
    let net = Net::new("stream");
    let node = net.node("reader");
    let mut stream = node.subscriber::<[u8]>("/t").keep_all().open().unwrap().into_stream();
    let sender = std::thread::spawn({
        let writer = net.node("writer");
        move || {
            let mut publisher = writer.publisher::<[u8]>("/t").open().unwrap();
            publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
            for i in 0..2000_u32 {
                publisher.send(&i.to_le_bytes()).unwrap();
            }
            publisher
        }
    });
    block_on(async {
        for i in 0..2000_u32 {
            assert_eq!(*stream.recv().await.unwrap(), i.to_le_bytes());
        }
    });
    drop(sender.join().unwrap());
}

/// The task sleeps before each message, so that each wake-up counts.
#[test]
fn a_sleeping_task_is_woken_for_each_message() {
    let net = Net::new("woken");
    let node = net.node("both");
    let mut question = node.publisher::<[u8]>("/question").open().unwrap();
    let mut answers = node.subscriber::<[u8]>("/answer").open().unwrap().into_stream();
    let mut answer = node.publisher::<[u8]>("/answer").open().unwrap();
    let mut questions = node.subscriber::<[u8]>("/question").open().unwrap();
    question.wait_for_subscribers_timeout(1, LONG).unwrap();
    answer.wait_for_subscribers_timeout(1, LONG).unwrap();
    let echo = std::thread::spawn(move || {
        for _ in 0..500 {
            let bytes = questions.recv_timeout(LONG).unwrap().to_vec();
            answer.send(&bytes).unwrap();
        }
    });
    block_on(async {
        for i in 0..500_u32 {
            question.send(&i.to_le_bytes()).unwrap();
            assert_eq!(*answers.recv().await.unwrap(), i.to_le_bytes());
        }
    });
    echo.join().unwrap();
}

/// Records whether it was woken.
#[derive(Default)]
struct WakeFlag(AtomicBool);

impl Wake for WakeFlag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Release);
    }
}

/// Polls `recv` once, sends, and drops the future when its task is woken, as a timeout does.
#[test]
fn a_future_that_is_dropped_after_its_wake_has_taken_nothing() {
    let net = Net::new("dropped future");
    let node = net.node("both");
    let mut publisher = node.publisher::<[u8]>("/t").open().unwrap();
    let mut stream = node.subscriber::<[u8]>("/t").open().unwrap().into_stream();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    for i in 0..500_u32 {
        let reported = Arc::new(WakeFlag::default());
        let waker = Waker::from(reported.clone());
        let mut context = Context::from_waker(&waker);
        {
            let mut future = pin!(stream.recv());
            assert!(future.as_mut().poll(&mut context).is_pending());
            publisher.send(&i.to_le_bytes()).unwrap();
            while !reported.0.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
        }
        assert!(stream.poll_ready(&mut context).is_ready());
        let got = match i % 3 {
            0 => block_on(stream.recv()).unwrap(),
            1 => stream.try_recv().unwrap().unwrap(),
            _ => {
                let mut subscriber = stream.into_source().unwrap();
                let got = subscriber.try_recv().unwrap().unwrap().into_owned();
                stream = subscriber.into_stream();
                got
            }
        };
        assert_eq!(*got, i.to_le_bytes());
        assert!(stream.try_recv().unwrap().is_none());
    }
    assert_eq!(stream.with_source(|s| s.stats()).unwrap()[0].lost.total(), 0);
}

/// A task that waited before a blocking call is woken after it: the call has moved the wake-ups to the caller's
/// thread and back.
#[test]
fn blocking_and_async_receives_alternate_on_one_stream() {
    let net = Net::new("blocking stream");
    let node = net.node("both");
    let mut publisher = node.publisher::<[u8]>("/t").open().unwrap();
    let mut stream = node.subscriber::<[u8]>("/t").open().unwrap().into_stream();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    for i in 0..100_u32 {
        let woken = Arc::new(WakeFlag::default());
        let waker = Waker::from(woken.clone());
        assert!(stream.try_recv().unwrap().is_none());
        assert!(stream.poll_ready(&mut Context::from_waker(&waker)).is_pending());
        let short = Duration::from_millis(1);
        let nothing = stream.blocking(|s| s.recv_timeout(short).map(drop)).unwrap();
        assert!(matches!(nothing, Err(rnet::Error::Timeout { .. })), "{nothing:?}");
        publisher.send(&i.to_le_bytes()).unwrap();
        common::eventually("the task is woken", || woken.0.load(Ordering::Acquire));
        let got = match i % 2 {
            0 => block_on(stream.recv()).unwrap(),
            _ => stream.blocking(|s| s.recv().map(Sample::into_owned)).unwrap().unwrap(),
        };
        assert_eq!(*got, i.to_le_bytes());
    }
    let panicked = catch_unwind(AssertUnwindSafe(|| stream.blocking(|_| panic!("expected"))));
    assert!(panicked.is_err());
    publisher.send(b"on").unwrap();
    assert_eq!(*block_on(stream.recv()).unwrap(), *b"on");
}

#[test]
fn many_streams_are_polled_as_one() {
    let net = Net::new("many streams");
    let node = net.node("reader");
    let mut streams: Vec<_> = (0..TOPICS).map(|i| keeps_all(&node, i).into_stream()).collect();
    let sender = std::thread::spawn({
        let writer = net.node("writer");
        move || send_on_all(&writer)
    });
    let mut counts = [0_u32; TOPICS];
    block_on(async {
        let mut any = Any { streams: &mut streams, from: 0 };
        for _ in 0..TOPICS * 20 {
            let (at, sample) = Pin::new(&mut any).await;
            let sample = sample.unwrap();
            assert_eq!(*sample, [at as u8, counts[at] as u8]);
            counts[at] += 1;
        }
    });
    assert_eq!(counts, [20; TOPICS]);
    drop(sender.join().unwrap());
}

fn keeps_all(node: &rnet::Node, i: usize) -> Subscriber<[u8]> {
    node.subscriber(&format!("/t{i}")).keep_all().open().unwrap()
}

fn send_on_all(writer: &rnet::Node) -> Vec<rnet::Publisher<[u8]>> {
    let mut publishers: Vec<_> =
        (0..TOPICS).map(|i| writer.publisher::<[u8]>(&format!("/t{i}")).open().unwrap()).collect();
    for publisher in &publishers {
        publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    }
    for round in 0..20 {
        for (at, publisher) in publishers.iter_mut().enumerate() {
            publisher.send(&[at as u8, round]).unwrap();
        }
    }
    publishers
}

#[test]
fn dropped_stream_unsubscribes() {
    let net = Net::new("stream drop");
    let node = net.node("reader");
    let publisher = node.publisher::<[u8]>("/t").open().unwrap();
    let mut stream = node.subscriber::<[u8]>("/t").open().unwrap().into_stream();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    // Polled once, so that its waker is stored.
    let mut context = Context::from_waker(Waker::noop());
    assert!(pin!(stream.recv()).poll(&mut context).is_pending());
    drop(stream);
    common::eventually("the subscriber is gone", || publisher.subscriber_count() == 0);
}

#[test]
fn one_wait_for_many_topics() {
    let net = Net::new("wait set");
    let node = net.node("reader");
    let mut subscribers: Vec<Subscriber<[u8]>> = (0..TOPICS).map(|i| keeps_all(&node, i)).collect();
    let sender = std::thread::spawn({
        let writer = net.node("writer");
        move || send_on_all(&writer)
    });
    let mut set = WaitSet::new(&node);
    let mut counts = [0_u32; TOPICS];
    while counts.iter().sum::<u32>() < TOPICS as u32 * 20 {
        let mut all: Vec<&mut dyn Waitable> =
            subscribers.iter_mut().map(|s| s as &mut dyn Waitable).collect();
        assert!(set.wait_timeout(&mut all, LONG).unwrap());
        for (at, subscriber) in subscribers.iter_mut().enumerate() {
            while let Some(sample) = subscriber.try_recv().unwrap() {
                assert_eq!(*sample, [at as u8, counts[at] as u8]);
                counts[at] += 1;
            }
        }
    }
    let mut all: Vec<&mut dyn Waitable> =
        subscribers.iter_mut().map(|s| s as &mut dyn Waitable).collect();
    let begun = std::time::Instant::now();
    assert!(!set.wait_timeout(&mut all, Duration::from_millis(30)).unwrap());
    assert!(begun.elapsed() >= Duration::from_millis(30));
    // A subscriber can return to waiting alone.
    let mut publishers = sender.join().unwrap();
    let waiting = std::thread::spawn(move || subscribers[7].recv_timeout(LONG).map(|s| s.to_vec()));
    publishers[7].send(b"alone").unwrap();
    assert_eq!(waiting.join().unwrap().unwrap(), b"alone");
}

/// Request and reply, so that each side sleeps (or spins) before each message.
#[test]
fn every_way_of_waiting_receives_every_message() {
    for wait in [Wait::Spin, Wait::Adaptive, Wait::Block] {
        let net = Net::new("ways");
        let (a, b) = (net.node("a"), net.node("b"));
        let mut ask = a.publisher::<[u8]>("/ask").open().unwrap();
        let mut say = b.publisher::<[u8]>("/say").open().unwrap();
        let mut asked = b.subscriber::<[u8]>("/ask").wait(wait).open().unwrap();
        let mut said = a.subscriber::<[u8]>("/say").wait(wait).open().unwrap();
        ask.wait_for_subscribers_timeout(1, LONG).unwrap();
        say.wait_for_subscribers_timeout(1, LONG).unwrap();
        let echo = std::thread::spawn(move || {
            for _ in 0..300 {
                let bytes = asked.recv_timeout(LONG).unwrap().to_vec();
                say.send(&bytes).unwrap();
            }
            say
        });
        for i in 0..300_u32 {
            ask.send(&i.to_le_bytes()).unwrap();
            assert_eq!(*said.recv_timeout(LONG).unwrap(), i.to_le_bytes(), "{wait:?}");
        }
        drop(echo.join().unwrap());
        let late: u64 = net
            .inspect()
            .subscriptions
            .iter()
            .flat_map(|s| &s.channels)
            .map(|c| c.late_wakes)
            .sum();
        assert_eq!(late, 0, "no wake-up was lost");
    }
}
