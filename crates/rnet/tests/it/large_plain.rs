//! Images, point clouds and tensors on a topic: filled in place, read in place, and invalid ones counted.

use crate::common;

use common::{LONG, Net};
use rnet::msgs::plain::{DType, NumberType};
use rnet::msgs::{Image, PointCloud, Tensor};
use rnet::{Error, MessageType, PlainHeader};

#[test]
fn small_and_large_images_arrive_unchanged() {
    let net = Net::new("images");
    let (a, b) = (net.node("a"), net.node("b"));
    let mut publisher = a.publisher::<Image>("/camera").open().unwrap();
    let mut subscriber = b.subscriber::<Image>("/camera").open().unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    // One in the log, and one in a chunk.
    for (width, height) in [(3, 2), (640, 480), (1, 1)] {
        let header = Image::new(width, height, "rgb8").unwrap().with_frame_id("camera").unwrap();
        let data: Vec<u8> = (0..header.data_len_bytes()).map(|i| i as u8).collect();
        publisher.send_data(&header, &data).unwrap();
        let sample = subscriber.recv_timeout(LONG).unwrap();
        assert_eq!((*sample, sample.data()), (header, &data[..]));
        let start = sample.bytes().as_ptr() as usize;
        assert_eq!(sample.data().as_ptr() as usize - start, 192);
        assert!(sample.view().rows().eq(data.chunks(3 * width as usize)));

        let mut loan = publisher.loan_with(&header).unwrap();
        loan.fill(7);
        loan.set_timestamp_ns(5);
        loan.send().unwrap();
        let kept = subscriber.recv_timeout(LONG).unwrap().into_owned();
        assert_eq!((kept.timestamp_ns(), kept.view().row(0).unwrap()[0]), (5, 7));
        assert_eq!(kept.view().pixels::<u8>().unwrap().shape()[2], 3);
    }
    let header = Image::new(2, 2, "mono8").unwrap();
    let error = publisher.send_data(&header, &[0; 3]).unwrap_err();
    assert!(error.to_string().contains("3 bytes of data, but the header declares 4"), "{error}");
    // A header alone does not mean a black image.
    for error in [publisher.send(&header).unwrap_err(), publisher.try_send(&header).unwrap_err()] {
        assert_eq!(error.code(), "bad_value");
        assert!(
            error.to_string().contains("4 bytes of data")
                && error.to_string().contains("send_data"),
            "{error}"
        );
    }
    let empty = Image::new(0, 0, "mono8").unwrap();
    publisher.send(&empty).unwrap();
    assert_eq!(*subscriber.recv_timeout(LONG).unwrap(), empty);
}

#[test]
fn clouds_and_tensors_arrive_too() {
    let net = Net::new("clouds");
    let node = net.node("a");
    let mut clouds = node.publisher::<PointCloud>("/points").open().unwrap();
    let mut points = node.subscriber::<PointCloud>("/points").open().unwrap();
    clouds.wait_for_subscribers_timeout(1, LONG).unwrap();
    let fields = [("x", NumberType::F32), ("ring", NumberType::U16)];
    let header = PointCloud::new(2, 1, &fields).unwrap();
    let mut loan = clouds.loan_with(&header).unwrap();
    assert_eq!(loan.len(), 12);
    loan.copy_from_slice(&[0, 0, 128, 63, 1, 0, 0, 0, 0, 64, 2, 0]);
    loan.send().unwrap();
    let cloud = points.recv_timeout(LONG).unwrap();
    assert_eq!(cloud.view().values::<f32>("x").unwrap().collect::<Vec<_>>(), [1.0, 2.0]);
    assert_eq!(cloud.view().values::<u16>("ring").unwrap().collect::<Vec<_>>(), [1, 2]);

    let mut tensors = node.publisher::<Tensor>("/grid").open().unwrap();
    let mut grid = node.subscriber::<Tensor>("/grid").open().unwrap();
    tensors.wait_for_subscribers_timeout(1, LONG).unwrap();
    let header = Tensor::new(DType::of::<f64>(), &[100, 100]).unwrap();
    let numbers: Vec<f64> = (0..10_000).map(f64::from).collect();
    let data: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
    tensors.send_data(&header, &data).unwrap();
    // In place: chunks and the log are aligned to 8 bytes.
    assert_eq!(grid.recv_timeout(LONG).unwrap().view().as_slice::<f64>().unwrap(), numbers);
}

#[test]
fn invalid_header_is_counted_and_the_stream_continues() {
    let net = Net::new("bad image");
    let (a, b) = (net.node("a"), net.node("b"));
    let mut publisher = a
        .publisher::<[u8]>("/camera")
        .message_type(MessageType::Plain(Image::header_type()))
        .open()
        .unwrap();
    let mut subscriber = b.subscriber::<Image>("/camera").open().unwrap();
    publisher.wait_for_subscribers_timeout(1, LONG).unwrap();
    let header = Image::new(2, 2, "mono8").unwrap();
    let good = [header.header_bytes(), &[1, 2, 3, 4]].concat();
    let mut far = good.clone();
    far[104] = 3;
    for bad in [&far[..], &good[..100], &good[..195], &[]] {
        publisher.send(bad).unwrap();
        let error = subscriber.recv_timeout(LONG).map(drop).unwrap_err();
        let Error::Malformed { topic, publisher_node, why } = &error else { panic!("{error:?}") };
        assert_eq!((&**topic, &**publisher_node), ("/camera", "/a"));
        assert!(why.contains("bytes"), "{why}");
        publisher.send(&good).unwrap();
        assert_eq!(subscriber.recv_timeout(LONG).unwrap().data(), [1, 2, 3, 4]);
    }
    let stats = subscriber.stats().remove(0);
    assert_eq!((stats.received, stats.malformed), (8, 4));
}

#[test]
fn data_behind_a_header_is_part_of_the_type() {
    let net = Net::new("header only");
    let node = net.node("a");
    let mut plain = Image::header_type();
    plain.tail = false;
    let _publisher =
        node.publisher::<[u8]>("/camera").message_type(MessageType::Plain(plain)).open().unwrap();
    let mut subscriber = node.subscriber::<Image>("/camera").open().unwrap();
    let error = subscriber.recv_timeout(LONG).map(drop).unwrap_err();
    assert!(matches!(error, Error::IncompatibleType { .. }), "{error:?}");
    assert!(error.to_string().contains("rnet.msgs.Image (192 bytes and data)"), "{error}");
}
