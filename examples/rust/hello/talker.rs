//! Publishes ten greetings. Start it and the listener in any order.

fn main() -> rnet::Result<()> {
    let node = rnet::Node::new("talker")?;
    let mut hello = node.publisher::<[u8]>("/hello").open()?;
    hello.wait_for_subscribers(1)?;
    for n in 0..10 {
        hello.send(format!("hello, robot {n}").as_bytes())?;
    }
    Ok(())
}
