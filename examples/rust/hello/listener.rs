//! Prints what the talker says: ten messages, then it ends.

fn main() -> rnet::Result<()> {
    let node = rnet::Node::new("listener")?;
    for heard in node.subscriber::<[u8]>("/hello")?.iter().take(10) {
        println!("{}", String::from_utf8_lossy(&heard));
    }
    Ok(())
}
