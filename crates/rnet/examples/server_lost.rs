//! How long after the SIGKILL of a server its caller has `ServerLost`: `server_lost [TRIALS]`, 1,000 by default.
//!
//! Every trial has a server process of its own, whose handler runs when it is killed. The time is taken from before the
//! signal is sent to when the call has returned in a thread that was asleep in it. A trial whose caller hears anything
//! else ends the program with 1, and so does a p99 that is longer than allowed.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use rnet::{Client, Error, Node};

const SERVICE: &str = "/wait";
/// What issue 11 and DESIGN section 5 allow.
const LIMIT: Duration = Duration::from_millis(10);
/// Longer than any trial.
const PATIENCE: Duration = Duration::from_secs(60);

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let ran = match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve", dir] => serve(dir.as_ref()),
        [] => judge(1_000),
        [trials] => trials.parse().map_err(Into::into).and_then(judge),
        _ => Err("usage: server_lost [TRIALS]".into()),
    };
    match ran {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("server_lost: {error}");
            ExitCode::FAILURE
        }
    }
}

fn node(dir: &Path, name: &str) -> rnet::Result<Node> {
    Node::builder(name).dir(dir).domain("t").open()
}

/// Says a line when it was asked, and answers nothing.
fn serve(dir: &Path) -> Outcome<()> {
    let node = node(dir, "victim")?;
    let service = node.service::<[u8], [u8]>(SERVICE).serve(|_| -> Result<Vec<u8>, _> {
        println!("asked");
        std::io::stdout().flush()?;
        loop {
            std::thread::park();
        }
    })?;
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
    drop(service);
    Ok(())
}

fn judge(trials: usize) -> Outcome<()> {
    let dir = PathBuf::from(format!("/dev/shm/rnet-server-lost-{}", std::process::id()));
    std::fs::create_dir_all(&dir)?;
    let times = run(&dir, trials);
    let _ = std::fs::remove_dir_all(&dir);
    let mut times = times?;
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    let within = times.iter().filter(|time| **time <= LIMIT).count();
    println!(
        "ServerLost after SIGKILL: {trials} trials, median {:?}, p99 {:?}, max {:?}; {within} within {LIMIT:?}",
        at(0.5),
        at(0.99),
        at(1.0),
    );
    if within < trials {
        return Err(
            format!("{} of {trials} were not told within {LIMIT:?}", trials - within).into()
        );
    }
    Ok(())
}

fn run(dir: &Path, trials: usize) -> Outcome<Vec<Duration>> {
    let node = node(dir, "caller")?;
    let client = node.client::<[u8], [u8]>(SERVICE).open()?;
    (0..trials.max(1)).map(|_| trial(dir, &client)).collect()
}

fn trial(dir: &Path, client: &Client<[u8], [u8]>) -> Outcome<Duration> {
    let mut victim = Command::new(std::env::current_exe()?)
        .arg("serve")
        .arg(dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut said = BufReader::new(victim.stdout.take().ok_or("the victim has no output")?);
    let (killed, ended, called) = std::thread::scope(|scope| {
        let caller = scope.spawn(|| {
            let called = client.call_timeout(b"", PATIENCE).map(drop);
            (Instant::now(), called)
        });
        let asked = said.read_line(&mut String::new());
        let killed = Instant::now();
        let _ = victim.kill();
        let (ended, called) = caller.join().map_err(|_| "the caller panicked")?;
        asked?;
        Outcome::Ok((killed, ended, called))
    })?;
    victim.wait()?;
    match called {
        Err(Error::ServerLost { .. }) => Ok(ended - killed),
        other => Err(format!("the call ended with {other:?}").into()),
    }
}
