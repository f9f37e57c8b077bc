//! How long a call takes, beside a message one way and one that is sent back: 64 bytes, adaptive, medians.

use std::time::{Duration, Instant};

use rnet::Node;

const TURNS: usize = 100_000;

fn main() -> rnet::Result<()> {
    let dir = std::env::temp_dir().join(format!("round-trip-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("the directory can be made");
    let node = |name: &str| Node::builder(name).dir(&dir).domain("t").open();
    let (a, b) = (node("a")?, node("b")?);

    let service = a.service::<[u8], [u8]>("/echo").serve(|bytes| Ok(bytes.to_vec()))?;
    let client = b.client::<[u8], [u8]>("/echo")?;
    let call = median(|| client.call(&[7; 64], None).map(|_| ()))?;
    drop((client, service));

    let (mut ping, mut pong) = (b.publisher::<[u8]>("/ping")?, a.publisher::<[u8]>("/pong")?);
    let (mut pinged, mut ponged) = (a.subscriber::<[u8]>("/ping")?, b.subscriber::<[u8]>("/pong")?);
    pinged.wait_for_publishers(1, None)?;
    ponged.wait_for_publishers(1, None)?;
    std::thread::spawn(move || {
        while let Ok(sample) = pinged.recv(Some(Duration::from_secs(5))) {
            let bytes = sample.to_vec();
            pong.send(&bytes).expect("it is sent");
        }
    });
    let there_and_back = median(|| {
        ping.send(&[7; 64])?;
        ponged.recv(None).map(|_| ())
    })?;
    println!(
        "call {call:?}, message there and back {there_and_back:?}: {:.2} x one way",
        2.0 * call.as_secs_f64() / there_and_back.as_secs_f64()
    );
    let _ = std::fs::remove_dir_all(dir);
    Ok(())
}

fn median(mut turn: impl FnMut() -> rnet::Result<()>) -> rnet::Result<Duration> {
    let mut times = Vec::with_capacity(TURNS);
    for _ in 0..TURNS {
        let began = Instant::now();
        turn()?;
        times.push(began.elapsed());
    }
    times.sort_unstable();
    Ok(times[TURNS / 2])
}
