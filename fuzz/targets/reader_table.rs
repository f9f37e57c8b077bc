//! A writer with readers that change their pages, and open, close and reopen in any order.

#![no_main]

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rnet_core::{Durability, MIN_LOG_LEN_BYTES, OnFull, PublisherQos, Reliability};
use rnet_fuzz::{Input, corrupt_word, domain, node, open, publisher_meta, subscription_meta};
use rnet_shm::channel::publisher::Writer;
use rnet_shm::channel::subscription::{Binding, PeerBinding, PeerSubscription, SubscriptionFile};
use rnet_shm::domain::node::OwnNode;

const STEPS: usize = 150;
/// Readers at a time.
const READERS: u64 = 3;

struct Fixture {
    publisher: Arc<OwnNode>,
    reader: Arc<OwnNode>,
}

static FIXTURE: OnceLock<Fixture> = OnceLock::new();

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut input = Input::new(bytes);
    let fixture = FIXTURE.get_or_init(|| {
        let dir = domain();
        Fixture { publisher: node(&dir, "p"), reader: node(&dir, "s") }
    });
    let choice = input.byte();
    let qos = PublisherQos {
        log_len_bytes: MIN_LOG_LEN_BYTES,
        pool_limit_bytes: 200_000,
        large_depth: 2,
        reliability: Reliability::Reliable,
        on_full: match choice & 1 {
            0 => OnFull::Refuse,
            _ => OnFull::Detach { stall: Duration::from_nanos(1) },
        },
        durability: match choice & 2 {
            0 => Durability::Volatile,
            _ => Durability::TransientLocal { depth: 5 },
        },
        ..PublisherQos::default()
    };
    let path = fixture.publisher.folder().join("p0");
    let id = fixture.publisher.incarnation() << 24;
    let mut writer = Writer::create(&fixture.publisher, path, id, &publisher_meta(qos)).unwrap();
    let readers: Vec<_> = (0..READERS)
        .map(|number| {
            let path = fixture.reader.folder().join(format!("s{number}"));
            let sub = fixture.reader.incarnation() << 24 | number;
            let node = fixture.reader.clone();
            let own =
                SubscriptionFile::create(node, path.clone(), sub, &subscription_meta()).unwrap();
            let binding = Binding { publisher: id, reliable: true, history: 3, bell: 0 };
            let slot = own.bind("/t", binding).unwrap();
            (sub, open(&path), PeerSubscription::open(&path, sub).unwrap(), own, slot)
        })
        .collect();
    let mut loans = Vec::new();
    for _ in 0..STEPS {
        let Some(step) = input.step() else { break };
        let (sub, file, peer, ..) = &readers[(step >> 5) as usize % readers.len()];
        let len = file.metadata().unwrap().len();
        match step % 12 {
            0 => drop(writer.send(&vec![step; input.short() as usize % 5000])),
            1 => drop(writer.send(&vec![step; 20_000 + input.short() as usize])),
            2 => {
                if let Ok(loan) = writer.loan(20_000 + input.short() as usize)
                    && loans.len() < 4
                {
                    loans.push(loan);
                }
            }
            3 => {
                if let Some(mut loan) = loans.pop() {
                    writer.loan_bytes_mut(&mut loan).fill(step);
                    if let Err((loan, _)) = writer.send_loan(loan) {
                        writer.drop_loan(loan);
                    }
                }
            }
            // The bound page, the last of the file; mostly at its fields.
            4 | 5 => {
                corrupt_word(file, (len.max(4096) - 4096) + input.short() % 112 * 8, &mut input)
            }
            6 => corrupt_word(file, input.short() % (len.max(8) / 8) * 8, &mut input),
            7 => {
                // Fields that are not read again may have any value.
                if let Ok(Some(mut bound)) = peer.binding_to(id) {
                    if step & 0x10 != 0 {
                        bound.binding = PeerBinding {
                            generation: input.word(1),
                            reliable: step & 0x20 == 0,
                            history: input.word(3),
                            keep_last: (step & 0x40 != 0).then(|| input.short() as u32),
                            link: None,
                        };
                    }
                    let bells = fixture.reader.bells().clone();
                    let _ = writer.reader_table().admit(*sub, "/s", "/t", bound, bells);
                }
            }
            8 => drop(writer.reader_table().remove(*sub)),
            9 => drop(writer.reader_table().remove_dead(*sub)),
            10 if step & 0x10 != 0 => {
                file.set_len(u64::from(input.byte() % 4) * 4096).unwrap();
            }
            _ => {
                let _ = (writer.reader_table().readers(), writer.reader_table().serves(*sub));
                if let Ok(Some(bound)) = peer.binding_to(id) {
                    let _ = writer.reader_table().was_evicted(*sub, &bound.binding);
                }
            }
        }
    }
    for loan in loans {
        writer.drop_loan(loan);
    }
    writer.reader_table().remove_dead_node(fixture.reader.incarnation());
    assert!(writer.reader_table().is_empty());
    // No reader is left that could block the writer.
    writer.send(b"on").expect("a writer without readers sends");
});
