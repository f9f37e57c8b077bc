//! A laser scanner that sends one scan. Start it and the listener in any order.

use rnet::msgs::LaserScan;

fn main() -> rnet::Result<()> {
    let node = rnet::Node::new("lidar")?;
    let mut scans = node.publisher::<LaserScan>("/scan").open()?;
    scans.wait_for_subscribers(1)?;
    let ranges = vec![1.5, 1.25, 2.0];
    scans.send(&LaserScan { frame_id: "laser".into(), ranges, ..Default::default() })
}
