//! Stopped processes and callbacks that never return: their peers continue according to their options, and
//! each loss is counted.

mod callback;
mod churn;
use crate::common;
mod crowd;
mod peer;
mod reader;

use common::{Net, orders, role, tell};
use rnet::{Error, Node, OnFull, PublisherBuilder, Subscriber};

/// Entry point of the child processes: runs the role that the parent names.
#[test]
#[ignore = "entry point of the child processes"]
fn child_entry() {
    let Some(role) = role() else { return };
    let net = Net::of_parent();
    match role.as_str() {
        "reader" => reader::reads_when_told(&net, false),
        "persister" => reader::reads_when_told(&net, true),
        "crowd" => crowd::reads_with_many(&net),
        "writer" => peer::writes(&net),
        "peer" => peer::has_one_of_each(&net),
        "joiners" => churn::joins_and_leaves(&net),
        "writers" => churn::writes_and_leaves(&net),
        other => panic!("unknown role: {other}"),
    }
}

fn message(number: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![number as u8; len];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    bytes
}

fn number(bytes: &[u8]) -> u64 {
    let (number, rest) = bytes.split_first_chunk::<8>().expect("the message has a number");
    let number = u64::from_le_bytes(*number);
    assert!(rest.iter().all(|byte| *byte == number as u8), "message {number} is torn");
    number
}

fn reliable(node: &Node, on_full: OnFull) -> PublisherBuilder<[u8]> {
    node.publisher("/t")
        .reliable(on_full)
        .log_len_bytes(rnet::limits::MIN_LOG_LEN_BYTES)
        .pool_limit_bytes(1 << 20)
}

fn reader_of(node: &Node, topic: &str) -> Subscriber<[u8]> {
    node.subscriber(topic).reliable().open().unwrap()
}

fn is_full(error: &Error, reader: &str) {
    let right = matches!(error, Error::Full { topic, reader_node }
        if &**topic == "/t" && &**reader_node == reader);
    assert!(right, "{error}");
}

/// Sends the child's last line, and then waits for its end.
fn stay(words: &str) {
    let orders = orders();
    tell(words);
    let _ = orders.recv();
}
