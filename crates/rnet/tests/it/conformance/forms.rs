//! The forms of receiving behind one function: each must return the same messages.

use std::future::Future;
use std::ops::ControlFlow;
use std::pin::pin;
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

use rnet::{Node, OwnedSample, PublisherStats, Sample, Subscriber, WaitSet};
use serde::{Deserialize, Serialize};

use crate::common::{LONG, eventually};

/// A form of receiving.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Form {
    Recv,
    TryRecv,
    Iterator,
    Batch,
    WaitSet,
    Stream,
    Callback,
}

impl Form {
    pub const ALL: [Form; 7] = [
        Form::Recv,
        Form::TryRecv,
        Form::Iterator,
        Form::Batch,
        Form::WaitSet,
        Form::Stream,
        Form::Callback,
    ];
}

/// Result of a receive.
pub struct Received {
    pub samples: Vec<OwnedSample<[u8]>>,
    pub stats: Vec<PublisherStats>,
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

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

/// Receives `count` messages by one form. Asserts that no more arrive.
pub fn receive(
    node: &Node,
    mut subscriber: Subscriber<[u8]>,
    form: Form,
    count: usize,
) -> Received {
    let mut samples = Vec::new();
    match form {
        Form::Recv => {
            let next = |_| subscriber.recv_timeout(LONG).unwrap().into_owned();
            samples.extend((0..count).map(next));
        }
        Form::TryRecv => {
            let next =
                |_| subscriber.try_recv().unwrap().expect("a message is available").into_owned();
            samples.extend((0..count).map(next));
        }
        Form::Iterator => samples.extend(subscriber.iter().take(count)),
        Form::Batch => {
            let keep = |sample: Sample<'_, [u8]>| {
                samples.push(sample.into_owned());
                ControlFlow::Continue(())
            };
            assert_eq!(subscriber.recv_batch_timeout(2 * count, LONG, keep).unwrap(), count);
        }
        Form::WaitSet => {
            let mut set = WaitSet::new(node);
            for _ in 0..count {
                assert!(set.wait_timeout(&mut [&mut subscriber], LONG).unwrap());
                samples.push(
                    subscriber.try_recv().unwrap().expect("a message is available").into_owned(),
                );
            }
            assert!(!set.wait_timeout(&mut [&mut subscriber], Duration::ZERO).unwrap());
        }
        Form::Stream => {
            let mut stream = subscriber.into_stream();
            let next = |_| block_on(stream.recv()).unwrap();
            samples.extend((0..count).map(next));
            assert_eq!(stream.with_source(|s| s.behind().messages), Some(0));
            subscriber = stream.into_source().unwrap();
        }
        Form::Callback => return call(subscriber, count),
    }
    assert!(subscriber.try_recv().unwrap().is_none(), "{form:?}: more than {count}");
    Received { samples, stats: subscriber.stats() }
}

fn call(subscriber: Subscriber<[u8]>, count: usize) -> Received {
    let (tell, receiver) = mpsc::channel();
    let subscription = subscriber.on(move |sample| tell.send(sample.into_owned()).unwrap());
    let next = |_| receiver.recv_timeout(LONG).expect("the callback is called");
    let samples: Vec<_> = (0..count).map(next).collect();
    eventually("all messages are received", || subscription.behind().messages == 0);
    let stats = subscription.stats();
    drop(subscription);
    assert!(receiver.recv().is_err(), "more than {count}");
    Received { samples, stats }
}
