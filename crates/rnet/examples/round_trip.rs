//! How long a call takes, beside a message that is sent back by two topics: 64 bytes, adaptive, two nodes.
//!
//! Calls, messages, and messages with the word that calls have take turns in short blocks, so that whatever else the
//! machine does at a time falls on all three. The figure of a block is its median, and the ratio is that of two
//! blocks that follow each other.

use std::time::{Duration, Instant};

use rnet::{Meta, Node, Publisher, Subscriber};

const BLOCKS: usize = 60;
const TURNS: usize = 3_000;
const BYTES: [u8; 64] = [7; 64];

fn main() -> rnet::Result<()> {
    let dir = std::env::temp_dir().join(format!("round-trip-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("the directory can be made");
    let node = |name: &str| Node::builder(name).dir(&dir).domain("t").open();
    let (a, b) = (node("a")?, node("b")?);

    let service = a.service::<[u8], [u8]>("/echo").serve(|bytes| Ok(bytes.to_vec()))?;
    let client = b.client::<[u8], [u8]>("/echo").open()?;
    let mut plain = Echoed::open(&a, &b, "plain")?;
    let mut worded = Echoed::open(&a, &b, "worded")?;

    let mut blocks = Vec::with_capacity(BLOCKS);
    for _ in 0..BLOCKS {
        let call = median(|| client.call(&BYTES).map(drop))?;
        let message = median(|| plain.there_and_back(None))?;
        let word = median(|| worded.there_and_back(Some(7)))?;
        blocks.push([call, message, word, 2.0 * call / message, 2.0 * word / message]);
    }
    // The first ones have not learnt yet what pays.
    let column = |at: usize| quartiles(blocks[BLOCKS / 6..].iter().map(|block| block[at]));
    println!("call                     {}", in_us(column(0)));
    println!("message there and back   {}", in_us(column(1)));
    println!("the same with a word     {}", in_us(column(2)));
    println!("call : message one way   {:.2?}", column(3));
    println!("with a word : one way    {:.2?}", column(4));
    drop((client, service));
    let _ = std::fs::remove_dir_all(dir);
    Ok(())
}

/// Two topics, of which a thread sends back on the second what comes on the first.
struct Echoed {
    ping: Publisher<[u8]>,
    pong: Subscriber<[u8]>,
}

impl Echoed {
    fn open(a: &Node, b: &Node, name: &str) -> rnet::Result<Echoed> {
        let (there, back) = (format!("/{name}/there"), format!("/{name}/back"));
        let (ping, mut back_again) =
            (b.publisher::<[u8]>(&there).open()?, a.publisher::<[u8]>(&back).open()?);
        let (mut pinged, mut pong) =
            (a.subscriber::<[u8]>(&there).open()?, b.subscriber::<[u8]>(&back).open()?);
        pinged.wait_for_publishers(1)?;
        pong.wait_for_publishers(1)?;
        std::thread::spawn(move || {
            while let Ok(sample) = pinged.recv_timeout(Duration::from_secs(5)) {
                let (bytes, word) = (sample.to_vec(), sample.correlation());
                send(&mut back_again, &bytes, word).expect("it is sent");
            }
        });
        Ok(Echoed { ping, pong })
    }

    fn there_and_back(&mut self, word: Option<u64>) -> rnet::Result<()> {
        send(&mut self.ping, &BYTES, word)?;
        self.pong.recv().map(drop)
    }
}

fn send(publisher: &mut Publisher<[u8]>, bytes: &[u8], word: Option<u64>) -> rnet::Result<()> {
    match word {
        Some(word) => publisher.send_with(bytes, Meta::default().with_correlation(word)),
        None => publisher.send(bytes),
    }
}

/// In µs.
fn median(mut turn: impl FnMut() -> rnet::Result<()>) -> rnet::Result<f64> {
    let mut times = Vec::with_capacity(TURNS);
    for _ in 0..TURNS {
        let began = Instant::now();
        turn()?;
        times.push(began.elapsed());
    }
    times.sort_unstable();
    Ok(times[TURNS / 2].as_secs_f64() * 1e6)
}

/// The median, and the quartiles below and above it.
fn quartiles(figures: impl Iterator<Item = f64>) -> [f64; 3] {
    let mut figures: Vec<f64> = figures.collect();
    figures.sort_unstable_by(f64::total_cmp);
    [2, 1, 3].map(|quarter| figures[figures.len() * quarter / 4])
}

fn in_us([median, below, above]: [f64; 3]) -> String {
    format!("{median:.2} µs ({below:.2} to {above:.2})")
}
