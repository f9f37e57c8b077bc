//! Opening of an endpoint's file with header, description and pages of any content and length.

#![no_main]

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rnet_core::PublisherQos;
use rnet_fuzz::{Input, corrupt_word, domain, open, publisher_meta, subscription_meta};
use rnet_shm::LAYOUT_VERSION;
use rnet_shm::channel::observe::Observer;
use rnet_shm::channel::publisher::PeerPublisher;
use rnet_shm::channel::subscription::PeerSubscription;
use rnet_shm::domain::types;

const ID: u64 = 0x12_3456_0001;
const HASH: &str = "0123456789abcdef0123456789abcdef";

/// A type's file with arbitrary changes; reading it returns a consistent type or an error.
fn read_type(folder: &Path, input: &mut Input<'_>) {
    let path = folder.join(format!("t{HASH}"));
    let set_len = input.short();
    std::fs::write(&path, vec![0x5a; 64 + set_len as usize]).unwrap();
    let file = open(&path);
    for (at, word) in [u64::from_le_bytes(*b"RNETTYP\x01"), u64::from(LAYOUT_VERSION), set_len]
        .into_iter()
        .enumerate()
    {
        file.write_all_at(&word.to_le_bytes(), at as u64 * 8).unwrap();
    }
    for _ in 0..input.byte() % 4 {
        corrupt_word(&file, u64::from(input.byte() % 8) * 8, input);
    }
    if input.byte() & 1 != 0 {
        file.set_len(input.short()).unwrap();
    }
    if let Ok(set) = types::read(folder, HASH) {
        let len = file.metadata().unwrap().len();
        assert!(set.len() as u64 + 64 <= len, "{} bytes of a file of {len}", set.len());
    }
    let name = String::from_utf8_lossy(input.rest());
    assert!(types::read(folder, &name).is_err() || name == HASH, "a type by the name of {name:?}");
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    let path = PATH.get_or_init(|| {
        let path = domain().path().join("file");
        std::fs::write(&path, []).unwrap();
        path
    });
    let mut input = Input::new(bytes);
    let choice = input.byte();
    if choice & 0x18 == 0x18 {
        return read_type(path.parent().unwrap(), &mut input);
    }
    let publisher = choice & 1 == 0;
    // A valid file, then arbitrary changes.
    let json = if publisher {
        serde_json::to_vec(&publisher_meta(PublisherQos::default())).unwrap()
    } else {
        serde_json::to_vec(&subscription_meta()).unwrap()
    };
    let magic = if publisher { *b"RNETPUB\x01" } else { *b"RNETSUB\x01" };
    let words = [
        u64::from_le_bytes(magic),
        u64::from(LAYOUT_VERSION),
        ID,
        0,
        json.len() as u64,
        8192,
        if publisher { 16384 } else { 2 },
    ];
    let file = open(path);
    file.set_len(0).unwrap();
    file.set_len(8192 + 16384 + rnet_ring::layout::MORE_ADMISSIONS_LEN_BYTES as u64).unwrap();
    for (at, word) in words.iter().enumerate() {
        file.write_all_at(&word.to_le_bytes(), at as u64 * 8).unwrap();
    }
    file.write_all_at(&json, 4096).unwrap();
    for _ in 0..choice >> 5 {
        match input.byte() % 4 {
            0 => corrupt_word(&file, u64::from(input.byte() % 8) * 8, &mut input),
            1 => corrupt_word(&file, 256 + input.short() % 480 * 8, &mut input),
            2 => {
                let at = 4096 + input.short() % json.len() as u64;
                file.write_all_at(&[input.byte()], at).unwrap();
            }
            _ => file.set_len(input.short() * 16).unwrap(),
        }
    }
    if choice & 2 != 0 {
        // A description from the fuzzer.
        let text = input.rest();
        file.write_all_at(&(text.len() as u64).to_le_bytes(), 32).unwrap();
        file.write_all_at(text, 4096).unwrap();
    }
    if publisher {
        if let Ok(peer) = PeerPublisher::open(path, ID) {
            let _ = (peer.control_page(), peer.map().map(|map| map.log().capacity_bytes()));
        }
        if let Ok(mut observer) = Observer::open(path.clone(), ID, choice & 4 != 0) {
            let mut message = Vec::new();
            for _ in 0..20 {
                let _ = observer.poll(&mut message);
            }
        }
    } else if let Ok(peer) = PeerSubscription::open(path, ID) {
        let _ = (peer.slots().count(), peer.binding_to(input.word(ID)));
    }
});
