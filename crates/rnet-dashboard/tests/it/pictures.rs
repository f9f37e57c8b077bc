//! Messages that pages draw: images, clouds, scans and transforms; and messages that contain them.

use rnet::msgs::{FrameTransform, LaserScan};
use serde_json::json;

use crate::util::{Page, TestDomain, what};

#[test]
fn shows_plain_texts_as_strings_and_long_integers_exactly() {
    let place = TestDomain::new();
    let node = place.node("camera");
    let image = rnet::msgs::Image::new(2, 1, "mono8").unwrap();
    let image = image.with_frame_id("lens").unwrap().with_timestamp_ns(1_790_000_000_123_456_789);
    let ty: rnet::MessageType = <rnet::msgs::Image as rnet::PlainHeader>::header_type().into();
    let mut images =
        node.publisher::<[u8]>("/image").transient_local(1).message_type(ty).open().unwrap();
    images.send(&[image.header_bytes(), &[1, 2]].concat()).unwrap();
    let dashboard = place.start();
    let mut page = Page::open(&dashboard);
    let messages = page.sub(json!({"what": "messages", "topic": "/image"}));
    let message = page.data(messages, |data| Some(data.clone()));
    let json = &message["json"];
    assert_eq!((&json["frame_id"], &json["encoding"]), (&json!("lens"), &json!("mono8")));
    assert_eq!((&json["timestamp_ns"], &json["width"]), (&json!("1790000000123456789"), &json!(2)));
    assert_eq!(message["units"]["timestamp_ns"], "ns", "{message}");
}

/// Types as `rnet play` publishes them from a ROS 2 recording.
const ROS2: &str = r#"syntax = "proto3"; package sensor_msgs.msg;
message Header { string frame_id = 2; }
message Image { Header header = 1; uint32 height = 2; uint32 width = 3; string encoding = 4; uint32 is_bigendian = 5;
  uint32 step = 6; bytes data = 7; }
message CompressedImage { Header header = 1; string format = 2; bytes data = 3; }
message LaserScan { Header header = 1; float angle_min = 2; float angle_max = 3; repeated float ranges = 9; }
message PointField { string name = 1; uint32 offset = 2; uint32 datatype = 3; uint32 count = 4; }
message PointCloud2 { Header header = 1; uint32 height = 2; uint32 width = 3; repeated PointField fields = 4;
  bool is_bigendian = 5; uint32 point_step = 6; uint32 row_step = 7; bytes data = 8; }
"#;

#[test]
fn draws_pictures_of_played_ros_2_recording() {
    let place = TestDomain::new();
    let node = place.node("play");
    let types = rnet::schema::compile_text("ros2.proto", ROS2).unwrap();
    let point: Vec<u8> = [1.0_f32, 2.0, 3.0].iter().flat_map(|x| x.to_le_bytes()).collect();
    let field =
        |name: &str, at: u32| json!({"name": name, "offset": at, "datatype": 7, "count": 1});
    let base64 = rnet_format::value::base64;
    let header = json!({"frame_id": "lens"});
    let sent = [
        (
            "Image",
            json!({"header": header, "width": 1, "height": 1, "encoding": "8UC3", "step": 3, "data": base64(&[1, 2, 3])}),
        ),
        (
            "CompressedImage",
            json!({"header": header, "format": "rgb8; jpeg compressed bgr8", "data": base64(&[0xff, 0xd8, 0xff])}),
        ),
        ("LaserScan", json!({"header": header, "angle_max": 1.0, "ranges": [1.5, 2.5]})),
        (
            "PointCloud2",
            json!({"header": header, "width": 1, "height": 1, "point_step": 12, "row_step": 12, "data": base64(&point),
            "fields": [field("x", 0), field("y", 4), field("z", 8)]}),
        ),
    ];
    let mut publishers = Vec::new();
    for (name, message) in sent {
        let schema = types.schema(&format!("sensor_msgs.msg.{name}")).unwrap();
        let bytes = rnet::schema::Dynamic::from_json(&schema, &message).unwrap().encode();
        let mut publisher = node
            .publisher::<[u8]>(&format!("/{name}"))
            .transient_local(1)
            .message_type(schema)
            .open()
            .unwrap();
        publisher.send(&bytes).unwrap();
        publishers.push(publisher);
    }
    let dashboard = place.start();
    let mut page = Page::open(&dashboard);
    let mut drawn = |what: &str, topic: &str| {
        let sub = page.sub(json!({"what": what, "topic": topic}));
        let received =
            page.until(|received| (received.json["sub"] == sub).then(|| received.clone()));
        assert_eq!(received.json["data"]["frame_id"], "lens", "{}", received.json);
        received
    };
    assert_eq!(drawn("image", "/Image").payload, [3, 2, 1, 255]);
    assert_eq!(drawn("image", "/CompressedImage").json["data"]["encoding"], "jpeg");
    assert_eq!(drawn("scan", "/LaserScan").json["data"]["ranges"], 2);
    assert_eq!(drawn("cloud", "/PointCloud2").payload, point);
}

#[test]
fn sends_downsampled_binary_pictures() {
    let place = TestDomain::new();
    let node = place.node("camera");
    let mut scans = node.publisher::<LaserScan>("/scan").transient_local(1).open().unwrap();
    let ranges = vec![1.5; 8];
    scans
        .send(&LaserScan { end_angle: 1.0, ranges, frame_id: "laser".into(), ..Default::default() })
        .unwrap();
    let image = rnet::msgs::Image::new(64, 32, "rgb8").unwrap();
    let mut bytes = image.header_bytes().to_vec();
    bytes.extend(vec![200; image.data_len_bytes()]);
    let (schema, bytes) =
        rnet::msgs::plain::to_protobuf("rnet.msgs.Image", &bytes).unwrap().unwrap();
    let mut images =
        node.publisher::<[u8]>("/image").transient_local(1).message_type(schema).open().unwrap();
    images.send(&bytes).unwrap();
    let mut tf = node.publisher::<FrameTransform>("/tf").transient_local(1).open().unwrap();
    let transform = FrameTransform {
        parent_frame_id: "base".into(),
        child_frame_id: "laser".into(),
        ..Default::default()
    };
    tf.send(&transform).unwrap();
    let dashboard = place.start();
    let mut page = Page::open(&dashboard);
    let scan = page.sub(json!({"what": "scan", "topic": "/scan"}));
    let received = page.until(|received| (received.json["sub"] == scan).then(|| received.clone()));
    assert_eq!(received.json["data"]["ranges"], 8);
    assert_eq!(received.payload.len(), 32);
    assert_eq!(received.payload[..4], 1.5f32.to_le_bytes());
    let image = page.sub(json!({"what": "image", "topic": "/image", "max_px": 512}));
    let received = page.until(|received| (received.json["sub"] == image).then(|| received.clone()));
    let data = &received.json["data"];
    assert_eq!(
        (&data["width"], &data["height"], &data["full_width"]),
        (&json!(32), &json!(16), &json!(64))
    );
    assert_eq!(received.payload.len(), 32 * 16 * 4);
    assert_eq!(received.payload[..4], [200, 200, 200, 255]);
    let tf = page.sub(what("tf"));
    let frame = page.data(tf, |data| data["frames"].get(0).cloned());
    assert_eq!((&frame["frame"], &frame["parent"]), (&json!("laser"), &json!("base")));
    let wrong = page.sub(json!({"what": "cloud", "topic": "/scan"}));
    page.until(|received| {
        (received.json["sub"] == wrong && received.json["error"].is_object()).then_some(())
    });
}
