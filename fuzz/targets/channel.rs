//! A reader and an observer of a publisher whose files change while they read.

#![no_main]

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use rnet_core::{KnownGap, LossCause, MIN_LOG_LEN_BYTES, Meta, PublisherQos};
use rnet_fuzz::{Input, corrupt_word, domain, node, open, publisher_meta, subscription_meta};
use rnet_shm::channel::observe::{Observation, Observer};
use rnet_shm::channel::publisher::{CONTROL_AT, PeerPublisher, Writer};
use rnet_shm::channel::reader::{PublisherLocation, Reader};
use rnet_shm::channel::subscription::{Binding, PeerSubscription, SubscriptionFile};
use rnet_shm::domain::node::OwnNode;
use rnet_shm::os::bell::Bells;

/// Steps of one input: longer inputs find no further defects and take longer.
const STEPS: usize = 200;
/// Samples held at a time.
const MAX_SAMPLES: usize = 8;

struct Fixture {
    publisher: Arc<OwnNode>,
    reader: Arc<OwnNode>,
    folder: PathBuf,
}

static FIXTURE: OnceLock<Fixture> = OnceLock::new();

fn fixture() -> &'static Fixture {
    FIXTURE.get_or_init(|| {
        let dir = domain();
        let (publisher, reader) = (node(&dir, "p"), node(&dir, "s"));
        let folder = publisher.folder().to_owned();
        Fixture { publisher, reader, folder }
    })
}

fn chunk(path: &Path, number: u32) -> Option<File> {
    let path = format!("{}.{number}", path.display());
    File::options().read(true).write(true).open(path).ok()
}

fn cut(file: &File, input: &mut Input<'_>) {
    let len = file.metadata().unwrap().len();
    let part = u64::from(input.byte() % 4);
    file.set_len(len * part / 4).unwrap();
    if input.byte() % 2 == 0 {
        // Restores the length, with zeros in the cut part.
        file.set_len(len).unwrap();
    }
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut input = Input::new(bytes);
    let fixture = fixture();
    let qos = PublisherQos {
        log_len_bytes: MIN_LOG_LEN_BYTES,
        pool_limit_bytes: 1 << 20,
        ..PublisherQos::default()
    };
    let path = fixture.folder.join("p0");
    let id = fixture.publisher.incarnation() << 24;
    let mut writer =
        Writer::create(&fixture.publisher, path.clone(), id, &publisher_meta(qos)).unwrap();
    let own = fixture.reader.folder().join("s0");
    let own_id = fixture.reader.incarnation() << 24;
    let reader_node = fixture.reader.clone();
    let own_file =
        SubscriptionFile::create(reader_node, own.clone(), own_id, &subscription_meta()).unwrap();
    let own_file = Arc::new(own_file);
    let peer = PeerPublisher::open(&path, id).unwrap();
    let bells: Arc<Bells> = fixture.publisher.bells().clone();
    let location = PublisherLocation {
        node: "/p".to_owned(),
        folder: fixture.folder.clone(),
        path: path.clone(),
        bells: bells.clone(),
    };
    let reliable = input.byte() % 2 == 1;
    let binding = Binding { publisher: id, reliable, history: 0, bell: 0 };
    let keep_last = (input.byte() % 4 == 0).then_some(2);
    let mut reader = Reader::bind(&own_file, &peer, location, binding, keep_last).unwrap();
    let seen = PeerSubscription::open(&own, own_id).unwrap();
    let found = seen.binding_to(id).unwrap().unwrap();
    writer.reader_table().admit(own_id, "/s", "/t", found, fixture.reader.bells().clone()).unwrap();
    let mut observer = Observer::open(path.clone(), id, true).unwrap();
    let file = open(&path);
    let mut held = Vec::new();
    let mut bytes = Vec::new();
    for _ in 0..STEPS {
        let Some(step) = input.step() else { break };
        match step % 12 {
            0 => drop(writer.try_send(&vec![step; input.short() as usize % 3000])),
            1 => drop(writer.loan(20_000).map(|loan| writer.send_loan(loan).is_ok())),
            2 if step & 0x80 != 0 => {
                let meta = Meta::default().with_correlation(7).with_gap(LossCause::Link, 1);
                let len = if step & 0x40 == 0 { 100 } else { 20_000 };
                let sent_ns = (step & 0x20 != 0).then_some(u64::from(step));
                let _ = writer.send_with(&vec![step; len], &meta, sent_ns);
                let _ = writer.publish_gap(KnownGap { cause: LossCause::Restart, size: 1 }, None);
            }
            2 => corrupt_word(&file, CONTROL_AT as u64 + input.short() % 400 * 8, &mut input),
            3 => corrupt_word(
                &file,
                CONTROL_AT as u64 + u64::from(input.byte() % 48) * 8,
                &mut input,
            ),
            4 => corrupt_word(&file, 4096 + input.short() % 3000 * 8, &mut input),
            5 => {
                if let Some(chunk) = chunk(&path, u32::from(input.byte() % 4)) {
                    corrupt_word(&chunk, u64::from(input.byte() % 5) * 8, &mut input);
                }
            }
            6 if step & 0x80 != 0 => cut(&file, &mut input),
            7 if step & 0x80 != 0 => {
                if let Some(chunk) = chunk(&path, u32::from(input.byte() % 4)) {
                    cut(&chunk, &mut input);
                }
            }
            8 if step & 0xc0 == 0xc0 => cut(&open(&own), &mut input),
            9 => {
                if let Ok(Some(_)) = reader.find_newest() {
                    reader.skip_withheld();
                }
            }
            10 => {
                if let Observation::Message(stamp) = observer.poll(&mut bytes) {
                    assert_eq!(stamp.publisher, id);
                    std::hint::black_box(observer.message_meta());
                }
            }
            11 if step & 0xe0 == 0xe0 => reader.publisher_left(step & 0x10 != 0),
            _ => {
                let _ = reader.is_ready();
                let taken = reader.take_plain() || reader.take() == Ok(true);
                if taken {
                    let len = reader.current_len();
                    let message = reader.current();
                    assert_eq!(message.bytes().len(), len);
                    std::hint::black_box(message.meta());
                    let sum = message.bytes().iter().fold(0_u8, |sum, b| sum.wrapping_add(*b));
                    std::hint::black_box(sum);
                    if step & 0x40 != 0 {
                        held.push(message.into_payload());
                        if held.len() > MAX_SAMPLES {
                            held.remove(0);
                        }
                    }
                }
            }
        }
    }
    for payload in &held {
        std::hint::black_box(payload.bytes().iter().fold(0_u8, |sum, b| sum.wrapping_add(*b)));
    }
    let _ = (reader.losses(), reader.received(), reader.is_finished(), observer.missed());
    // So that the writer does not linger for a reader that is about to close.
    writer.reader_table().remove_dead(own_id);
    let _ = file.read_at(&mut [0; 8], 0);
});
