//! The program whose instructions `cargo xtask instructions` counts: `send` and `recv` in the steady state,
//! on one thread without sleeping.
//!
//! Callgrind counts only while [`counted_by_callgrind`] is on the stack. This excludes opening nodes, the
//! other side of the channel and the node's control thread. A round is short enough for its messages to fit
//! the log. The caller runs a number of rounds and twice that number, and divides the difference by the
//! messages, which excludes one-time work. How the counts are kept: docs/benchmark-method.md.

use std::hint::black_box;
use std::process::ExitCode;
use std::time::Duration;

use rnet::Subscriber;
use rnet::{Client, Error, Node, OnFull, Publisher, Result};

/// Far longer than a step takes under valgrind; a missing message ends the program.
const WAIT_LIMIT: Duration = Duration::from_secs(60);

/// The half of the path that is counted.
#[derive(Clone, Copy, PartialEq)]
enum Counted {
    Send,
    SendUnread,
    Loan,
    Recv,
    /// A call on both sides, except while they wait.
    Call,
}

struct Case {
    name: &'static str,
    counted: Counted,
    len_bytes: usize,
    /// Messages per round: all of them fit the log, and the pool for large ones.
    per_round: u64,
}

const fn case(name: &'static str, counted: Counted, len_bytes: usize, per_round: u64) -> Case {
    Case { name, counted, len_bytes, per_round }
}

/// 22 bytes are the message of the founding study, 64 a small state, 1 KiB a scan. 64 KiB use a chunk, which
/// is loaned, sent without a copy, and read in place.
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
    // `cargo bench` appends this argument.
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

/// Runs a case in its own domain. Returns the number of counted messages.
fn run(case: &Case, rounds: u64) -> Result<u64> {
    let domain = format!("instructions{}", std::process::id());
    let node = Node::builder("instructions").domain(&domain).open()?;
    let path = node.domain_path().to_owned();
    let outcome = run_in(&node, case, rounds);
    drop(node);
    // A leftover directory does no harm.
    let _ = std::fs::remove_dir_all(path);
    outcome
}

fn run_in(node: &Node, case: &Case, rounds: u64) -> Result<u64> {
    if case.counted == Counted::Call {
        return run_calls(node, case, rounds);
    }
    let mut publisher: Publisher<[u8]> =
        node.publisher("/counted").reliable(OnFull::Refuse).open()?;
    let n = case.per_round;
    let message = vec![7u8; case.len_bytes];
    if case.counted == Counted::SendUnread {
        for _ in 0..rounds {
            counted_by_callgrind(&mut || send(&mut publisher, &message, n))?;
        }
        return Ok(rounds * n);
    }
    let mut subscriber: Subscriber<[u8]> = node.subscriber("/counted").reliable().open()?;
    publisher.wait_for_subscribers_timeout(1, WAIT_LIMIT)?;
    subscriber.wait_for_publishers_timeout(1, WAIT_LIMIT)?;
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
    // After an error the count would be low and wrong.
    let received: u64 = subscriber.stats().iter().map(|stats| stats.received).sum();
    if received != rounds * n || publisher.sent() != rounds * n {
        let what = format!("{received} of {} messages", publisher.sent());
        return Err(Error::BadValue { what, why: "each message must arrive".into() });
    }
    Ok(rounds * n)
}

fn run_calls(node: &Node, case: &Case, rounds: u64) -> Result<u64> {
    let echo = node.service::<[u8], [u8]>("/counted");
    let _service = echo.serve(|request| Ok(black_box(request).to_vec()))?;
    let client: Client<[u8], [u8]> = node.client("/counted").open()?;
    let message = vec![7u8; case.len_bytes];
    for _ in 0..rounds * case.per_round {
        black_box(client.call_timeout(black_box(&message), WAIT_LIMIT)?);
    }
    let stats = client.stats();
    if stats.calls != rounds * case.per_round || stats.late > 0 {
        let what = format!("{stats:?}");
        return Err(Error::BadValue { what, why: "each call must get its reply".into() });
    }
    Ok(rounds * case.per_round)
}

/// Callgrind counts the code inside this function, which it finds by name.
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
        black_box(&*subscriber.recv_timeout(WAIT_LIMIT)?);
    }
    Ok(())
}
