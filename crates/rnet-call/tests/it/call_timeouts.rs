//! Error text of a call that times out.

use crate::common;

use std::sync::{Mutex, mpsc};
use std::time::Duration;

use common::{Net, eventually};

#[repr(C)]
#[derive(Clone, Copy, Debug, rnet::Plain)]
struct N {
    x: u64,
}

#[test]
fn the_server_that_does_not_answer_in_time_is_named() {
    let net = Net::new("slow");
    let (a, b) = (net.node("a"), net.node("b"));
    let (go, wait) = mpsc::channel::<()>();
    let wait = Mutex::new(wait);
    let service = a.service::<N, N>("/slow").serve(move |x| {
        let _ = wait.lock().unwrap().recv();
        Ok(*x)
    });
    let client = b.client::<N, N>("/slow").open().unwrap();
    eventually("the server is found", || client.server_count() == 1);
    let mut text = String::new();
    // The first call may time out before it finds the endpoints of the server.
    eventually("the call has left for the server", || {
        text = client.call_timeout(&N { x: 1 }, Duration::from_millis(50)).unwrap_err().to_string();
        text.contains("an answer of /slow")
    });
    assert!(text.contains("from /a on "), "{text}");
    drop(go);
    drop(service);
}
