//! Slow pages: their losses are counted and reported, and the server's memory does not grow.

use crate::util;

use std::time::Duration;

use rnet::Publisher;
use rnet::msgs::{CompressedImage, Image};
use serde_json::{Value as Json, json};
use tungstenite::Message;
use util::{HANG, Page, Received, TestDomain};

/// Interval between two images of a camera.
const PERIOD: Duration = Duration::from_millis(40);
/// About 30 images exceed the send queue of a page and all kernel buffers.
const LEN_BYTES: usize = 1_900_000;
const IMAGES: usize = 60;
/// The page reads one of this many images, so that the server sees that it is slow, but connected.
const SLOW_BY: usize = 10;

/// Anonymous memory of this process in bytes: that of the server, as the test keeps nothing.
fn own_memory_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
}

fn seq(received: &Received) -> u64 {
    received.json["data"]["seq"].as_u64().unwrap_or_else(|| panic!("{}", received.json))
}

fn send(images: &mut Publisher<CompressedImage>, image: &CompressedImage) {
    images.send(image).unwrap();
    std::thread::sleep(PERIOD); // sleep: the rate of a camera
}

#[test]
fn page_that_does_not_read_gets_loss_count_and_uses_no_memory() {
    let place = TestDomain::new();
    let camera = place.node("camera");
    let mut images = camera.publisher::<CompressedImage>("/image").open().unwrap();
    let image = CompressedImage {
        format: "jpeg".into(),
        // Begins with the first bytes of a JPEG.
        data: [vec![0xff, 0xd8, 0xff], vec![7; LEN_BYTES]].concat(),
        ..CompressedImage::default()
    };
    let dashboard = place.start();
    let (mut slow, mut fast) = (Page::open(&dashboard), Page::open(&dashboard));
    let ask = json!({"what": "image", "topic": "/image", "hz": 30});
    let (slow_sub, fast_sub) = (slow.sub(ask.clone()), fast.sub(ask));
    // When one page gets images, the other is served as well.
    let newest = |fast: &mut Page, images: &mut Publisher<CompressedImage>| loop {
        send(images, &image);
        let _ = fast.socket.get_ref().set_read_timeout(Some(PERIOD));
        if let Ok(Message::Binary(bytes)) = fast.socket.read() {
            let len = u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize;
            let json: Json = serde_json::from_slice(&bytes[4..4 + len]).unwrap();
            assert_eq!(json["sub"], fast_sub);
            return json["data"]["seq"].as_u64().unwrap();
        }
    };
    newest(&mut fast, &mut images);
    let (before, mut most) = (own_memory_bytes(), 0);
    let (mut read, mut last) = (Vec::new(), 0);
    for n in 1..=IMAGES {
        last = newest(&mut fast, &mut images);
        most = most.max(own_memory_bytes());
        if n % SLOW_BY == 0 {
            read.push(slow.receive());
        }
    }
    let grown = most.saturating_sub(before);
    assert!(grown < IMAGES * LEN_BYTES / 3, "the server has grown by {grown} bytes");
    // Now it reads: it gets the number of lost images, and reaches the newest one.
    while read.last().is_none_or(|received| seq(received) < last) {
        read.push(slow.receive());
    }
    assert!(read.iter().all(|received| received.json["sub"] == slow_sub));
    let mut lost = 0;
    for pair in read.windows(2) {
        let dropped = pair[1].json["dropped"].as_u64().unwrap_or(0);
        let between = seq(&pair[1]) - seq(&pair[0]) - 1;
        assert!(dropped <= between, "{dropped} dropped of {between}");
        lost += dropped;
    }
    assert!(lost > 0, "it has read {} of {last} images", read.len());
    assert!(read.len() as u64 + lost <= last + 1, "{} read, {lost} lost", read.len());
}

#[test]
fn camera_is_sent_as_jpeg_at_the_rate_of_the_page() {
    let place = TestDomain::new();
    let camera = place.node("camera");
    let mut images = camera.publisher::<Image>("/image").open().unwrap();
    let dashboard = place.start();
    let mut page = Page::open(&dashboard);
    let drawn = page.sub(json!({"what": "image", "topic": "/image", "hz": 30, "ack": true}));
    let all = page.sub(json!({"what": "messages", "topic": "/image", "hz": 30}));
    // Reads until another subscription has got this many messages, and returns what this one got meanwhile.
    let mut until = |page: &mut Page, count: usize| {
        let (mut pictures, mut messages) = (Vec::new(), 0);
        while messages < count {
            let mut image = images.loan_with(&Image::new(1920, 1080, "rgb8").unwrap()).unwrap();
            image.fill(120);
            image.send().unwrap();
            let _ = page.socket.get_ref().set_read_timeout(Some(PERIOD));
            while let Ok(message) = page.socket.read() {
                if !message.is_text() && !message.is_binary() {
                    continue;
                }
                let is_text = message.is_text();
                let bytes = message.into_data();
                let text = if is_text { &bytes[..] } else { &bytes[4..] };
                let mut json = serde_json::Deserializer::from_slice(text).into_iter::<Json>();
                let json = json.next().unwrap().unwrap();
                messages += usize::from(json["sub"] == all);
                if json["sub"] == drawn {
                    pictures.push((json, bytes.len()));
                }
            }
        }
        pictures
    };
    let pictures = until(&mut page, 20);
    assert_eq!(pictures.len(), 2, "the limit of unacknowledged images");
    let (head, len) = &pictures[0];
    let of = |name: &str| head["data"][name].clone();
    assert_eq!(
        (of("width"), of("full_width"), of("encoding")),
        (640.into(), 1920.into(), "jpeg".into())
    );
    assert!(*len < 100_000, "1080p takes {len} bytes");
    let ack = |page: &mut Page, sub: u64| {
        page.socket.send(Message::text(json!({"ack": sub}).to_string())).unwrap();
    };
    ack(&mut page, drawn);
    let more = until(&mut page, 20);
    assert_eq!(more.len(), 1);
    assert!(more[0].0["data"]["seq"].as_u64() > pictures[1].0["data"]["seq"].as_u64());
    // An acknowledgement without an unacknowledged item is an invalid request.
    ack(&mut page, all);
    page.socket.get_ref().set_read_timeout(Some(HANG)).unwrap();
    let wrong =
        page.until(|received| received.json["error"].is_object().then(|| received.json.clone()));
    assert_eq!(wrong["error"]["code"], "bad_request", "{wrong}");
}
