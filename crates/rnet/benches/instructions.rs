//! The program whose instructions `cargo xtask instructions` counts: `send` and `recv` in the
//! steady state, one thread, nobody asleep.
//!
//! Callgrind counts while [`counted_by_callgrind`] is on the stack and at no other time, so that
//! opening nodes, the other side of the channel and the node's control thread are not in the
//! figure. A round is short enough for its messages to fit the log; the caller runs a number of
//! rounds and twice that number, and divides the difference by the messages, which leaves out
//! whatever happens only once. How the counts are kept: docs/benchmark-method.md.

use std::hint::black_box;
use std::process::ExitCode;
use std::time::Duration;

use rnet::{Client, Error, Node, OnFull, Publisher, PublisherOptions, Result};
use rnet::{Subscriber, SubscriberOptions};

/// Far longer than any step takes under valgrind; a message that is missing ends the program.
const WAIT_LIMIT: Option<Duration> = Some(Duration::from_secs(60));

/// The half of the path that is counted.
#[derive(Clone, Copy, PartialEq)]
enum Counted {
    Send,
    SendUnread,
    Loan,
    Recv,
    /// A call at both its ends, but for what these do while they wait.
    Call,
}

struct Case {
    name: &'static str,
    counted: Counted,
    len_bytes: usize,
    /// Messages in a round: all of them fit the log, and the pool for large ones.
    per_round: u64,
}

const fn case(name: &'static str, counted: Counted, len_bytes: usize, per_round: u64) -> Case {
    Case { name, counted, len_bytes, per_round }
}

/// 22 bytes are the message of the founding study, 64 a small state, 1 KiB a scan, and 64 KiB
/// lies in a chunk of its own, which is lent, sent as it is, and read in place.
const CASES: &[Case] = &[
    case("send", Counted::Send, 22, 1000),
    case("send_unread", Counted::SendUnread, 22, 1000),
    case("recv", Counted::Recv, 22, 1000),
    case("send_64", Counted::Send, 64, 1000),
    case("recv_64", Counted::Recv, 64, 1000),
    case("send_1k", Counted::Send, 1024, 100),
    case("recv_1k", Counted::Recv, 1024, 100),
    case("loan_64k", Counted::Loan, 64 << 10, 4),
    case("recv_64k", Counted::Recv, 64 << 10, 4),
    case("call_64", Counted::Call, 64, 20),
];

fn main() -> ExitCode {
    // `cargo bench` adds this to what it was given.
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let outcome = match args[..] {
        ["--list"] => {
            CASES.iter().for_each(|case| println!("{}", case.name));
            return ExitCode::SUCCESS;
        }
        [name, rounds] => {
            let case = CASES.iter().find(|case| case.name == name);
            case.zip(rounds.parse().ok()).map(|(case, rounds)| run(case, rounds))
        }
        _ => None,
    };
    match outcome {
        Some(Ok(messages)) => {
            println!("{messages}");
            ExitCode::SUCCESS
        }
        Some(Err(error)) => {
            eprintln!("instructions: {error}");
            ExitCode::FAILURE
        }
        None if args.is_empty() => {
            println!("instructions are counted by `cargo xtask instructions`, under valgrind");
            ExitCode::SUCCESS
        }
        None => {
            eprintln!("usage: instructions --list | instructions CASE ROUNDS");
            ExitCode::from(2)
        }
    }
}

/// Runs a case in a domain of its own; returns the number of messages that were counted.
fn run(case: &Case, rounds: u64) -> Result<u64> {
    let domain = format!("instructions{}", std::process::id());
    let node = Node::builder("instructions").domain(&domain).open()?;
    let path = node.domain_path().to_owned();
    let outcome = run_in(&node, case, rounds);
    drop(node);
    // What is left here is in nobody's way.
    let _ = std::fs::remove_dir_all(path);
    outcome
}

fn run_in(node: &Node, case: &Case, rounds: u64) -> Result<u64> {
    if case.counted == Counted::Call {
        return run_calls(node, case, rounds);
    }
    let options = PublisherOptions::new().reliable(OnFull::Refuse);
    let mut publisher: Publisher<[u8]> = node.publisher_with("/counted", options)?;
    let n = case.per_round;
    let message = vec![7u8; case.len_bytes];
    if case.counted == Counted::SendUnread {
        for _ in 0..rounds {
            counted_by_callgrind(&mut || send(&mut publisher, &message, n))?;
        }
        return Ok(rounds * n);
    }
    let options = SubscriberOptions::new().reliable();
    let mut subscriber: Subscriber<[u8]> = node.subscriber_with("/counted", options)?;
    publisher.wait_for_subscribers(1, WAIT_LIMIT)?;
    subscriber.wait_for_publishers(1, WAIT_LIMIT)?;
    for _ in 0..rounds {
        match case.counted {
            Counted::Loan => {
                counted_by_callgrind(&mut || loan(&mut publisher, case.len_bytes, n))?;
                recv(&mut subscriber, n)?;
            }
            Counted::Recv => {
                send(&mut publisher, &message, n)?;
                counted_by_callgrind(&mut || recv(&mut subscriber, n))?;
            }
            _ => {
                counted_by_callgrind(&mut || send(&mut publisher, &message, n))?;
                recv(&mut subscriber, n)?;
            }
        }
    }
    // A count of something that went wrong would be a good figure and a false one.
    let received: u64 = subscriber.stats().iter().map(|stats| stats.received).sum();
    if received != rounds * n || publisher.sent() != rounds * n {
        let what = format!("{received} of {} messages", publisher.sent());
        return Err(Error::BadValue { what, why: "every one should have arrived".into() });
    }
    Ok(rounds * n)
}

fn run_calls(node: &Node, case: &Case, rounds: u64) -> Result<u64> {
    let echo = node.service::<[u8], [u8]>("/counted");
    let _service = echo.serve(|request| Ok(black_box(request).to_vec()))?;
    let client: Client<[u8], [u8]> = node.client("/counted")?;
    let message = vec![7u8; case.len_bytes];
    for _ in 0..rounds * case.per_round {
        black_box(client.call(black_box(&message), WAIT_LIMIT)?);
    }
    let stats = client.stats();
    if stats.calls != rounds * case.per_round || stats.late > 0 {
        let what = format!("{stats:?}");
        return Err(Error::BadValue { what, why: "every call should have its answer".into() });
    }
    Ok(rounds * case.per_round)
}

/// Callgrind counts what runs inside of this function, which it finds by its name.
#[inline(never)]
#[unsafe(no_mangle)]
fn counted_by_callgrind(work: &mut dyn FnMut() -> Result<()>) -> Result<()> {
    work()
}

#[inline(never)]
fn send(publisher: &mut Publisher<[u8]>, message: &[u8], count: u64) -> Result<()> {
    for _ in 0..count {
        publisher.send(black_box(message))?;
    }
    Ok(())
}

#[inline(never)]
fn loan(publisher: &mut Publisher<[u8]>, len_bytes: usize, count: u64) -> Result<()> {
    for _ in 0..count {
        let mut loan = publisher.loan(black_box(len_bytes))?;
        black_box(&mut *loan);
        loan.send().map_err(|(_, error)| error)?;
    }
    Ok(())
}

#[inline(never)]
fn recv(subscriber: &mut Subscriber<[u8]>, count: u64) -> Result<()> {
    for _ in 0..count {
        black_box(&*subscriber.recv(WAIT_LIMIT)?);
    }
    Ok(())
}
