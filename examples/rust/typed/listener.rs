//! Prints the ranges of every scan until Ctrl-C.

fn main() -> rnet::Result<()> {
    for scan in rnet::Node::new("map")?.subscriber::<rnet::msgs::LaserScan>("/scan").open()? {
        println!("{} {:?}", scan.frame_id, scan.ranges);
    }
    Ok(())
}
