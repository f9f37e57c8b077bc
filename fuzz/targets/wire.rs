//! A link that receives arbitrary frames, items, documents and messages in parts, compressed messages, JSON
//! documents, and streams with arbitrary terms, numbers and times.

#![no_main]

use rnet_core::Lane;
use rnet_fuzz::Input;
use rnet_net::link::announcements::{
    Announcement, Hello, Nodes, Refusal, RemoteEndpoint, from_json, to_json,
};
use rnet_net::stream::{Accept, Limits, Stream};
use rnet_net::wire::{
    Document, DocumentPart, Encoder, Header, Item, Items, Reassembly, decompress,
};

/// Limit of a reassembled or decompressed message.
const LIMIT: usize = 1 << 16;

fn use_frame(frame: &[u8]) {
    let Ok((header, items)) = Header::decode(frame) else { return };
    let mut again = [0; 64];
    header.encode(&mut again);
    // All but the version, which the encoder sets.
    assert_eq!((&again[..2], &again[3..]), (&frame[..2], &frame[3..64]));
    use_items(items);
}

/// Reads items, writes them, and reads them again.
fn use_items(items: &[u8]) {
    let mut encoder = Encoder::default();
    let (mut bytes, mut found) = (Vec::new(), Vec::new());
    let (mut message, mut document) = (Reassembly::new(LIMIT), Reassembly::new(LIMIT));
    let mut out = Vec::new();
    for item in Items::new(items) {
        let Ok(item) = item else { break };
        encoder.encode(&item, &mut bytes);
        found.push(item);
        match item {
            Item::Fragment(fragment) => {
                let added =
                    message.add(fragment.seq, fragment.total, fragment.offset, fragment.bytes);
                if let Ok(added) = added
                    && let Some(whole) = added.whole
                {
                    assert_eq!(whole.len() as u64, fragment.total);
                }
            }
            Item::DocumentPart(part) => {
                let (total, offset) = (part.total.into(), part.offset.into());
                let _ = document.add(part.of, total, offset, part.bytes);
            }
            Item::Data(data) => {
                if decompress(data.payload, LIMIT, &mut out).is_ok() {
                    assert!(out.len() <= LIMIT.min(data.payload.len() * 255));
                }
            }
            _ => {}
        }
    }
    let again: Vec<_> = Items::new(&bytes).map(|item| item.expect("it was written here")).collect();
    assert_eq!(again, found);
}

/// A document of another host.
fn use_document(text: &[u8]) {
    let _ = (from_json::<Hello>("", text), from_json::<Refusal>("", text));
    if let Ok(nodes) = from_json::<Nodes>("", text) {
        assert_eq!(from_json::<Nodes>("", &to_json(&nodes)).ok(), Some(nodes));
    }
    let Ok(announce) = from_json::<Announcement>("", text) else { return };
    for described in &announce.opened {
        if let Ok(remote) = RemoteEndpoint::check("host", described) {
            let _ = (remote.lane(), remote.hash(), remote.message_type(None));
        }
    }
}

/// A stream whose peer is the input.
fn use_stream(input: &mut Input<'_>) {
    let lane = if input.byte() & 1 == 0 { Lane::Urgent } else { Lane::Bulk };
    let mut stream = Stream::new(5, Limits::of(lane));
    let (mut now_ns, mut number, mut next, mut echo_ns) = (1_000_000_000, 0, 0, 0);
    while let Some(step) = input.step() {
        match step % 4 {
            0 | 1 => {
                let (mut from_term, mut to_term) = (7, 5);
                let (mut sent_ns, mut held_ns) = (now_ns, 0);
                for word in [
                    &mut from_term,
                    &mut to_term,
                    &mut number,
                    &mut next,
                    &mut sent_ns,
                    &mut echo_ns,
                    &mut held_ns,
                ] {
                    if input.byte() < 40 {
                        *word = input.word(*word);
                    }
                }
                let header = Header {
                    version: 1,
                    flags: input.byte() & 3,
                    len: 64,
                    from_term,
                    to_term,
                    number,
                    next,
                    sent_ns,
                    echo_ns,
                    held_ns,
                };
                if stream.accept(now_ns, &header) == Accept::New {
                    number += 1;
                }
            }
            2 => {
                let bytes = vec![0; input.short() as usize];
                let part = DocumentPart { of: Document::Hello, total: 0, offset: 0, bytes: &bytes };
                let _ = stream.push(&Item::DocumentPart(part));
                stream.flush();
            }
            _ => now_ns += input.short() * 10_000,
        }
        let mut frames = 0;
        while let Some(frame) = stream.poll(now_ns) {
            let (header, _) = Header::decode(&frame).expect("it was written here");
            echo_ns = header.sent_ns;
            if header.flags & 1 == 0 {
                next = header.number + 1;
            }
            frames += 1;
            assert!(frames < 10_000, "one time step sends without end");
        }
        let _ = (stream.clock(now_ns), stream.wake_at());
        assert!(stream.stats().unacknowledged_bytes <= (4 << 20) + (64 << 10));
    }
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut input = Input::new(bytes);
    match input.byte() % 4 {
        0 => {
            // With the length that the receiver checks first.
            let mut frame = input.rest().to_vec();
            let len = (frame.len() as u32).to_le_bytes();
            if let Some(start) = frame.first_chunk_mut() {
                *start = [0x52, 0x4e, 1, start[3], len[0], len[1], len[2], len[3]];
            }
            use_frame(&frame);
        }
        1 => use_items(input.rest()),
        2 => use_document(input.rest()),
        _ => use_stream(&mut input),
    }
});
