//! Laser scans.

use prost::Message as _;
use rnet::inspect::ObservedMessage;
use rnet::msgs::LaserScan;
use serde_json::json;

use super::picture::EncodedPicture;
use super::ros2;
use crate::wire::MAX_CLOUD_POINTS;

/// Converts a scan.
pub fn scan(observed: &ObservedMessage<'_>, bytes: &[u8]) -> Result<EncodedPicture, String> {
    let scan = match observed.type_desc.name() {
        Some("foxglove.LaserScan") => {
            LaserScan::decode(bytes).map_err(|error| error.to_string())?
        }
        Some(ros2::LASER_SCAN) => {
            let scan = ros2::Fields::decode(observed, bytes)?;
            LaserScan {
                start_angle: scan.number("angle_min"),
                end_angle: scan.number("angle_max"),
                ranges: scan.numbers("ranges"),
                frame_id: scan.frame_id(),
                ..LaserScan::default()
            }
        }
        _ => return Err(format!("{} is not a laser scan", observed.type_desc)),
    };
    let every = scan.ranges.len().div_ceil(MAX_CLOUD_POINTS).max(1);
    let ranges: Vec<u8> =
        scan.ranges.iter().step_by(every).flat_map(|range| (*range as f32).to_le_bytes()).collect();
    let head = json!({
        "ranges": ranges.len() / 4,
        "angle_min": scan.start_angle,
        "angle_max": scan.end_angle,
        "frame_id": scan.frame_id,
    });
    Ok((head, ranges))
}
