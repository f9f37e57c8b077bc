//! Cleanup after clients that close, and after one-shot calls.

use crate::common;

use common::{LONG, Net, eventually};
use rnet::{Error, Node, Service};

#[repr(C)]
#[derive(Clone, Copy, Debug, rnet::Plain)]
struct N {
    x: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, rnet::Plain)]
struct F {
    x: f64,
}

fn double(node: &Node) -> Service {
    node.service::<N, N>("/double").serve(|n| Ok(N { x: 2 * n.x })).unwrap()
}

#[test]
fn callers_that_close_leave_nothing_in_the_server() {
    let net = Net::new("callers leave");
    let (a, b) = (net.node("a"), net.node("b"));
    let _service = double(&a);
    let publishers = || net.inspect().publishers.iter().filter(|end| end.node == "/a").count();
    let before = publishers();
    for turn in 0..20 {
        let client = b.client::<N, N>("/double").open().unwrap();
        assert_eq!(client.call_timeout(&N { x: turn }, LONG).unwrap().x, 2 * turn);
    }
    eventually("the server has forgotten them", || publishers() == before);
}

#[test]
fn one_shot_calls_of_a_node_share_a_client() {
    let net = Net::new("one-shot calls");
    let (a, b) = (net.node("a"), net.node("b"));
    let _service = double(&a);
    let clients = || {
        let ends = net.inspect().subscriptions;
        ends.iter().filter(|end| end.node == "/b" && end.topic.ends_with("/reply")).count()
    };
    std::thread::scope(|scope| {
        for thread in 0..16 {
            let b = &b;
            scope.spawn(move || {
                for turn in 0..10 {
                    let x = 100 * thread + turn;
                    assert_eq!(b.call_timeout::<N, N>("/double", &N { x }, LONG).unwrap().x, 2 * x);
                }
            });
        }
    });
    assert_eq!(clients(), 1);
    // A call of another type uses another client.
    let error = b.call_timeout::<F, N>("/double", &F { x: 1.0 }, LONG).err().unwrap();
    assert!(matches!(error, Error::IncompatibleType { .. }), "{error}");
    assert_eq!(clients(), 2);
    // The cached clients do not keep the node alive.
    drop(b);
    eventually("the node has left", || net.inspect().node("/b").is_none());
}
