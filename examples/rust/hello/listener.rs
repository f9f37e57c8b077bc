//! Prints ten messages of the talker, then exits.

fn main() -> rnet::Result<()> {
    let node = rnet::Node::new("listener")?;
    for heard in node.subscriber::<[u8]>("/hello").open()?.iter().take(10) {
        println!("{}", String::from_utf8_lossy(&heard));
    }
    Ok(())
}
