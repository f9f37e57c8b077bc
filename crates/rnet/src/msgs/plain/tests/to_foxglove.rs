//! The tables of the page, row by row: to the protobuf message and back.

use super::*;

#[test]
fn image_survives_round_trip_through_raw_image() {
    let mut bytes = image();
    // The last row ends with its pixels.
    bytes.pop();
    bytes[16] = 7;
    let (header, data) = read::<Image>(&bytes).unwrap();
    let raw = header.with_data(data).to_foxglove();
    let expected = foxglove::RawImage {
        timestamp: Some(timestamp_from_ns(-1)),
        frame_id: "camera".to_owned(),
        width: 3,
        height: 2,
        encoding: "mono8".to_owned(),
        step: 4,
        data: vec![1, 2, 3, 0, 4, 5, 6, 0],
    };
    assert_eq!(raw, expected);
    assert_eq!(raw.timestamp.unwrap().nanos, 999_999_999);
    let back = Image::from_foxglove(&raw).unwrap();
    assert_eq!(message(&back, &raw.data), image());

    // Data beyond the rows is omitted, and a time of 0 is unknown.
    let image = Image::new(1, 1, "mono8").unwrap();
    let mut long = message(&image, &[1, 2, 3]);
    long[16] = 3;
    let (header, data) = read::<Image>(&long).unwrap();
    let raw = header.with_data(data).to_foxglove();
    assert_eq!((raw.timestamp, &raw.data[..]), (None, &[1][..]));
    assert_eq!(Image::from_foxglove(&raw).unwrap(), image);
}

#[test]
fn invalid_raw_image_is_rejected() {
    let (header, data) = (image(), [0; 8]);
    let (header, _) = read::<Image>(&header).unwrap();
    let good = header.with_data(&data).to_foxglove();
    let change = |change: fn(&mut foxglove::RawImage)| {
        let mut raw = good.clone();
        change(&mut raw);
        Image::from_foxglove(&raw)
    };
    change(|_| ()).unwrap();
    refused(change(|raw| raw.frame_id = "f".repeat(65)), "frame_id");
    refused(change(|raw| raw.encoding = "e".repeat(33)), "encoding");
    refused(change(|raw| raw.height = 3), "3 rows end 11 bytes");
    refused(change(|raw| raw.step = 2), "row_stride is 2");
    refused(change(|raw| raw.timestamp.as_mut().unwrap().seconds = i64::MAX), "64 bits of ns");
}

#[test]
fn cloud_loses_only_its_rows() {
    let mut bytes = cloud();
    // A gap of 4 bytes between the rows.
    bytes[108] = 28;
    bytes[16] = 52;
    bytes.splice(832 + 24..832 + 24, [0xee; 4]);
    let (header, data) = read::<PointCloud>(&bytes).unwrap();
    let turned = [0.0, 0.0, 1.0, 0.0];
    let header =
        header.with_pose([1.0, 2.0, 3.0], turned).with_nan().with_timestamp_ns(1_500_000_000);
    let packed = header.with_data(data).to_foxglove();
    assert_eq!(packed.data, cloud()[832..]);
    assert_eq!(packed.timestamp, Some(timestamp_from_ns(1_500_000_000)));
    assert_eq!((packed.frame_id.as_str(), packed.point_stride), ("lidar", 12));
    let fields: Vec<_> = packed.fields.iter().map(|f| (&*f.name, f.offset, f.r#type)).collect();
    assert_eq!(fields, [("x", 0, 7), ("y", 4, 7), ("z", 8, 7)]);
    let pose = packed.pose.unwrap();
    let (position, orientation) = (pose.position.unwrap(), pose.orientation.unwrap());
    assert_eq!([position.x, position.y, position.z], [1.0, 2.0, 3.0]);
    assert_eq!([orientation.x, orientation.y, orientation.z, orientation.w], turned);

    let back = PointCloud::from_foxglove(&packed).unwrap();
    let one_row = PointCloud::new(4, 1, &XYZ).unwrap().with_frame_id("lidar").unwrap();
    let one_row = one_row.with_pose([1.0, 2.0, 3.0], turned).with_timestamp_ns(1_500_000_000);
    assert_eq!(back, one_row);
    assert_eq!(back.with_data(&packed.data).to_foxglove(), packed);
}

#[test]
fn unset_pose_is_no_shift_and_no_rotation() {
    let bytes = cloud();
    let (header, data) = read::<PointCloud>(&bytes).unwrap();
    // All zeros means no rotation; the position does not matter then.
    let header = header.with_pose([5.0; 3], [0.0; 4]);
    assert_eq!(header.pose(), ([0.0; 3], [0.0, 0.0, 0.0, 1.0]));
    let mut packed = header.with_data(data).to_foxglove();
    let pose = packed.pose.unwrap();
    assert_eq!(pose.position, Some(foxglove::Vector3::default()));
    assert_eq!(pose.orientation.unwrap().w, 1.0);
    assert_eq!(packed.timestamp, None);
    packed.pose = None;
    assert_eq!(PointCloud::from_foxglove(&packed).unwrap().pose().1, [0.0, 0.0, 0.0, 1.0]);
    // Shifted, with unset rotation.
    let position = Some(foxglove::Vector3 { x: 1.0, y: 0.0, z: 0.0 });
    packed.pose = Some(foxglove::Pose { position, orientation: None });
    let shifted = PointCloud::from_foxglove(&packed).unwrap();
    assert_eq!(shifted.pose(), ([1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]));
}

#[test]
fn invalid_foxglove_cloud_is_rejected() {
    let bytes = cloud();
    let (header, data) = read::<PointCloud>(&bytes).unwrap();
    let good = header.with_data(data).to_foxglove();
    let change = |change: fn(&mut foxglove::PointCloud)| {
        let mut cloud = good.clone();
        change(&mut cloud);
        PointCloud::from_foxglove(&cloud)
    };
    refused(change(|cloud| cloud.fields.clear()), "0 fields");
    refused(change(|cloud| cloud.fields[1].r#type = 0), "\"y\" has type 0");
    refused(change(|cloud| cloud.fields[1].name.push_str(&"y".repeat(32))), "33 bytes");
    refused(change(|cloud| cloud.point_stride = 0), "whole number of points of 0 bytes");
    refused(change(|cloud| cloud.point_stride = 11), "whole number of points of 11 bytes");
    refused(change(|cloud| cloud.point_stride = 8), "does not lie within point_stride 8");
    refused(change(|cloud| cloud.frame_id = "f".repeat(65)), "frame_id");
}

#[test]
fn recorded_bytes_are_converted_by_type_name() {
    let (schema, bytes) = to_protobuf("rnet.msgs.Image", &image()).unwrap().unwrap();
    rnet_schema::Dynamic::decode(&schema, &bytes).unwrap();
    let decoded = <foxglove::RawImage as prost::Message>::decode(&bytes[..]).unwrap();
    assert_eq!((schema.name(), decoded.width), ("foxglove.RawImage", 3));
    let (schema, bytes) = to_protobuf("rnet.msgs.PointCloud", &cloud()).unwrap().unwrap();
    rnet_schema::Dynamic::decode(&schema, &bytes).unwrap();
    assert_eq!(schema.name(), "foxglove.PointCloud");
    for other in ["rnet.msgs.Tensor", "foxglove.RawImage", ""] {
        assert!(to_protobuf(other, &image()).unwrap().is_none());
    }
    refused(to_protobuf("rnet.msgs.Image", &image()[1..]), "rnet.msgs.Image");
}
