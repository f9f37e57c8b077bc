//! Threads that share a client: one of them reads the replies for all.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};

use rnet::CallOptions;

use crate::common::{LONG, Net};

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, rnet::Plain)]
struct Number {
    value: u64,
}

fn number(value: u64) -> Number {
    Number { value }
}

#[test]
fn many_threads_share_a_client() {
    let net = Net::new("threads");
    let (a, b) = (net.node("a"), net.node("b"));
    let service = a
        .service::<Number, Number>("/double")
        .at_once(4)
        .backlog(1000)
        .serve(|x| Ok(number(2 * x.value)))
        .unwrap();
    let client = b.client::<Number, Number>("/double").open().unwrap();
    std::thread::scope(|scope| {
        for thread in 0..8_u64 {
            let client = client.clone();
            scope.spawn(move || {
                for x in thread * 100..thread * 100 + 50 {
                    assert_eq!(*client.call_timeout(&number(x), LONG).unwrap(), number(2 * x));
                }
            });
        }
    });
    let pending: Vec<_> = (0..200)
        .map(|x| client.start(&number(x), CallOptions::new().timeout(LONG)).unwrap())
        .collect();
    for (x, call) in pending.into_iter().enumerate().rev() {
        assert_eq!(*call.wait().unwrap(), number(2 * x as u64));
    }
    assert_eq!((service.stats().calls, client.stats().late), (600, 0));
}

/// The reading thread hands over to a thread that still waits, not to one whose reply has arrived.
#[test]
fn reading_is_handed_over_until_the_last_thread_has_its_reply() {
    let net = Net::new("last_threads");
    let (a, b) = (net.node("a"), net.node("b"));
    let _service = a
        .service::<Number, Number>("/double")
        .at_once(4)
        .serve(|x| Ok(number(2 * x.value)))
        .unwrap();
    let client = b.client::<Number, Number>("/double").open().unwrap();
    for _ in 0..300 {
        std::thread::scope(|scope| {
            for x in 0..6 {
                let client = client.clone();
                scope.spawn(move || {
                    assert_eq!(*client.call_timeout(&number(x), LONG).unwrap(), number(2 * x))
                });
            }
        });
    }
}

struct PanickingWaker;

impl Wake for PanickingWaker {
    fn wake(self: Arc<Self>) {
        panic!("on purpose");
    }
}

/// The reading thread calls the wakers of tasks, which are user code.
#[test]
fn a_waker_that_panics_stops_no_other_call() {
    let net = Net::new("panicking_waker");
    let (a, b) = (net.node("a"), net.node("b"));
    let client = b.client::<Number, Number>("/double").open().unwrap();
    let options = || CallOptions::new().timeout(LONG);
    let mut first = client.start(&number(1), options()).unwrap();
    let waker = Waker::from(Arc::new(PanickingWaker));
    let polled = Future::poll(Pin::new(&mut first), &mut Context::from_waker(&waker));
    assert!(polled.is_pending());
    let serve = a.service::<Number, Number>("/double");
    let _service = serve.serve(|x| Ok(number(2 * x.value))).unwrap();
    assert_eq!(*client.call_timeout(&number(2), LONG).unwrap(), number(4));
    assert_eq!(*first.wait().unwrap(), number(2));
    assert_eq!(*client.call_timeout(&number(3), LONG).unwrap(), number(6));
}
