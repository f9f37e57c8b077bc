//! Frames, items and reassembly: encoding round-trips, and no bytes do harm.

use std::path::Path;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use rnet::{LossCause, Meta};
use rnet_net::wire::{
    ACK_AT_ONCE, ACK_ONLY, Data, Document, DocumentPart, Encoder, Fragment, HEADER_LEN, Header,
    Item, Items, PlainData, Reassembly, Subscribe, VERSION, WireError, compress, decompress,
};

/// An item that owns its bytes.
#[derive(Clone, Debug)]
struct Owned {
    item: Item<'static>,
    bytes: Vec<u8>,
}

impl Owned {
    fn item(&self) -> Item<'_> {
        match self.item {
            Item::DocumentPart(part) => {
                Item::DocumentPart(DocumentPart { bytes: &self.bytes, ..part })
            }
            Item::Data(data) => Item::Data(Data { payload: &self.bytes, ..data }),
            Item::Fragment(fragment) => Item::Fragment(Fragment { bytes: &self.bytes, ..fragment }),
            item => item,
        }
    }
}

fn cause() -> impl Strategy<Value = LossCause> {
    prop::sample::select(LossCause::ALL.to_vec())
}

fn meta() -> impl Strategy<Value = Meta> {
    let gap = option::of((cause(), any::<u64>()));
    (option::of(any::<i64>()), option::of(any::<u64>()), gap).prop_map(
        |(source_ns, correlation, gap)| {
            let mut meta = Meta::default();
            (meta.source_ns, meta.correlation) = (source_ns, correlation);
            gap.map_or(meta, |(cause, size)| meta.with_gap(cause, size))
        },
    )
}

/// Numbers that are often consecutive, and others.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 0..4_u64, 1 => any::<u64>(), 1 => Just(u64::MAX)]
}

fn channel() -> impl Strategy<Value = u32> {
    prop_oneof![4 => 0..3_u32, 1 => Just(16), 1 => any::<u32>()]
}

fn of() -> impl Strategy<Value = Document> {
    prop_oneof![
        Just(Document::Hello),
        Just(Document::Nodes),
        Just(Document::Endpoints),
        Just(Document::Refused),
        any::<u128>().prop_map(Document::Type),
    ]
}

fn item() -> impl Strategy<Value = Item<'static>> {
    let message = || (channel(), number(), number(), meta(), any::<bool>());
    let other = prop_oneof![
        (of(), any::<u32>(), any::<u32>()).prop_map(|(of, total, offset)| Item::DocumentPart(
            DocumentPart { of, total, offset, bytes: &[] }
        )),
        any::<u128>().prop_map(|hash| Item::NeedType { hash }),
        (channel(), number(), option::of(number()), any::<[bool; 3]>(), number(), number())
            .prop_map(|(channel, publisher, from, flags, transient_local, credit)| {
                let [reliable, wills, confirms_end] = flags;
                Item::Subscribe(Subscribe {
                    channel,
                    publisher,
                    from,
                    reliable,
                    transient_local,
                    credit,
                    wills,
                    confirms_end,
                })
            }),
        channel().prop_map(|channel| Item::Unsubscribe { channel }),
        (channel(), number()).prop_map(|(channel, read)| Item::Credit { channel, read }),
        (channel(), number(), any::<bool>()).prop_map(|(channel, subscription, active)| {
            Item::Delivery { channel, subscription, active }
        }),
        (channel(), number(), number(), cause())
            .prop_map(|(channel, seq, count, cause)| Item::Gap { channel, seq, count, cause }),
        (channel(), [number(), number(), number(), number()])
            .prop_map(|(channel, known)| Item::KnownLost { channel, known }),
        channel().prop_map(|channel| Item::Alive { channel }),
        (channel(), any::<bool>())
            .prop_map(|(channel, there)| Item::Will { channel, message: there.then_some(&[]) }),
    ];
    prop_oneof![
        1 => other,
        2 => message().prop_map(|(channel, seq, sent_ns, meta, compressed)| {
            Item::Data(Data { channel, seq, sent_ns, meta, payload: &[], compressed })
        }),
        1 => (message(), number(), number()).prop_map(
            |((channel, seq, sent_ns, meta, compressed), total, offset)| {
                let bytes = &[];
                Item::Fragment(Fragment {
                    channel, seq, sent_ns, meta, total, offset, bytes, compressed,
                })
            }
        ),
    ]
}

fn items() -> impl Strategy<Value = Vec<Owned>> {
    vec((item(), vec(any::<u8>(), 0..40)).prop_map(|(item, bytes)| Owned { item, bytes }), 0..20)
}

fn header() -> impl Strategy<Value = Header> {
    (any::<u8>(), any::<[u64; 7]>()).prop_map(|(flags, words)| {
        let [from_term, to_term, number, next, sent_ns, echo_ns, held_ns] = words;
        Header {
            version: VERSION,
            flags,
            len: 0,
            from_term,
            to_term,
            number,
            next,
            sent_ns,
            echo_ns,
            held_ns,
        }
    })
}

fn frame(header: &mut Header, items: &[Owned]) -> Vec<u8> {
    let mut frame = vec![0; HEADER_LEN];
    let mut encoder = Encoder::default();
    for item in items {
        encoder.encode(&item.item(), &mut frame);
    }
    header.len = frame.len() as u32;
    header.encode(&mut frame);
    frame
}

/// The items, read by the fast path where it applies.
fn shortly(items: &[u8]) -> impl Iterator<Item = Result<Item<'_>, WireError>> {
    let mut items = Items::new(items);
    std::iter::from_fn(move || match items.next_plain() {
        Some(plain) => Some(Ok(Item::Data(plain.into()))),
        None => match items.next_following() {
            Some(data) => Some(data.map(Item::Data)),
            None => items.next(),
        },
    })
}

/// Reads a frame as its receiver does, and checks the items against each other.
fn read(frame: &[u8]) {
    let Ok((_, items)) = Header::decode(frame) else { return };
    assert!(Items::new(items).eq(shortly(items)), "the fast path reads the same");
    let mut whole = Reassembly::new(1 << 16);
    let mut out = Vec::new();
    let mut payload = 0;
    for item in Items::new(items) {
        let Ok(item) = item else { continue };
        match item {
            Item::Data(data) => {
                payload += data.payload.len();
                if decompress(data.payload, 1 << 16, &mut out).is_ok() {
                    assert!(out.len() <= data.payload.len() * 255);
                }
            }
            Item::Fragment(fragment) => {
                payload += fragment.bytes.len();
                if let Ok(added) =
                    whole.add(fragment.seq, fragment.total, fragment.offset, fragment.bytes)
                    && let Some(whole) = added.whole
                {
                    assert_eq!(whole.len() as u64, fragment.total);
                }
            }
            Item::DocumentPart(part) => payload += part.bytes.len(),
            _ => {}
        }
    }
    assert!(payload <= items.len());
}

proptest! {
    // Each case is thousands of frames.
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_truncation_and_bit_flip_is_read_or_refused(
        mut header in header(), items in items(),
    ) {
        let mut frame = frame(&mut header, &items);
        for len in 0..frame.len() {
            prop_assert!(Header::decode(&frame[..len]).is_err());
            let mut cut = frame[..len].to_vec();
            if let Some(place) = cut.get_mut(4..8) {
                place.copy_from_slice(&(len as u32).to_le_bytes());
            }
            read(&cut);
        }
        for bit in 0..frame.len() * 8 {
            frame[bit / 8] ^= 1 << (bit % 8);
            read(&frame);
            frame[bit / 8] ^= 1 << (bit % 8);
        }
    }
}

proptest! {
    #[test]
    fn encoding_round_trips(mut header in header(), items in items()) {
        let frame = frame(&mut header, &items);
        let (read, rest) = Header::decode(&frame).unwrap();
        prop_assert_eq!(read, header);
        let found: Vec<_> = Items::new(rest).collect::<Result<_, _>>().unwrap();
        let sent: Vec<_> = items.iter().map(Owned::item).collect();
        prop_assert_eq!(found, sent);
    }

    /// Messages with the common fields only have a fast path in encoding and decoding: the bytes equal
    /// those of the general path.
    #[test]
    fn plain_path_equals_general_path(
        messages in vec((0..3_u32, 0..3_u64, any::<u64>(), 0..64_u32, vec(any::<u8>(), 0..300)), 0..40),
    ) {
        let (mut one, mut other) = (Encoder::default(), Encoder::default());
        let (mut long, mut short) = (Vec::new(), Vec::new());
        let (mut seqs, mut sent_ns) = ([u64::MAX - 2; 3], 0_u64);
        let mut sent = Vec::new();
        for (channel, gap, time, bits, payload) in &messages {
            // Most messages follow each other soon; any interval is possible.
            sent_ns = sent_ns.wrapping_add(time.checked_shr(*bits).unwrap_or(0));
            let seq = seqs[*channel as usize].wrapping_add(gap / 2);
            seqs[*channel as usize] = seq.wrapping_add(1);
            let plain = PlainData { channel: *channel, seq, sent_ns, payload };
            one.encode(&Item::Data(plain.into()), &mut long);
            other.encode_plain(plain, &mut short);
            sent.push(Data::from(plain));
        }
        prop_assert_eq!(&long, &short);
        let read: Vec<_> = shortly(&short).map(Result::unwrap).collect();
        prop_assert_eq!(read, sent.into_iter().map(Item::Data).collect::<Vec<_>>());
    }

    #[test]
    fn any_items_are_read_or_refused(bytes in vec(any::<u8>(), 0..300)) {
        let mut frame = vec![0; HEADER_LEN];
        Header { len: (HEADER_LEN + bytes.len()) as u32, ..Header::default() }.encode(&mut frame);
        frame.extend(bytes);
        read(&frame);
    }

    /// Compared with a list of the received parts.
    #[test]
    fn parts_are_reassembled_or_refused(
        limit in 0..60_usize,
        parts in vec((0..2_u8, 0..70_u64, 0..70_u64, vec(any::<u8>(), 0..30)), 0..40),
        honest in any::<bool>(),
    ) {
        let mut whole = Reassembly::new(limit);
        let mut model: Option<(u8, u64, Vec<u8>)> = None;
        for (key, mut total, mut offset, bytes) in parts {
            let same = model.as_ref().filter(|(under_way, ..)| *under_way == key);
            if honest {
                offset = same.map_or(0, |(_, _, have)| have.len() as u64);
                total = same.map_or(total, |(_, total, _)| *total);
            }
            let (have, known) = same.map_or((vec![], total), |(_, total, have)| (have.clone(), *total));
            let end = (have.len() + bytes.len()) as u64;
            let fits = total <= limit as u64 && known == total && offset == have.len() as u64
                && end <= total && (total == 0 || !bytes.is_empty());
            let before = model.clone();
            match whole.add(key, total, offset, &bytes) {
                Ok(added) => {
                    prop_assert!(fits);
                    let whole = [have, bytes].concat();
                    prop_assert_eq!(added.abandoned, before.map(|b| b.0).filter(|b| *b != key));
                    if end == total {
                        prop_assert_eq!(added.whole, Some(&whole[..]));
                        model = None;
                    } else {
                        prop_assert_eq!(added.whole, None);
                        model = Some((key, total, whole));
                    }
                }
                Err(_) => prop_assert!(!fits),
            }
        }
        prop_assert_eq!(whole.give_up(), model.map(|(key, ..)| key));
    }

    #[test]
    fn compression_round_trips(
        message in vec(prop_oneof![4 => Just(7_u8), 1 => any::<u8>()], 0..3000),
        cut in any::<prop::sample::Index>(), flip in any::<prop::sample::Index>(),
    ) {
        let (mut small, mut out) = (vec![1], vec![2]);
        if compress(&message, &mut small) {
            prop_assert!(small.len() < message.len());
            decompress(&small, message.len(), &mut out).unwrap();
            prop_assert_eq!(&out, &message);
            let len = message.len() as u64;
            let limit = message.len() - 1;
            let refused = decompress(&small, limit, &mut out);
            prop_assert_eq!(refused, Err(WireError::LimitExceeded { len, limit }));
            prop_assert!(decompress(&small[..cut.index(small.len())], 1 << 20, &mut out).is_err());
            let bit = flip.index(small.len() * 8);
            small[bit / 8] ^= 1 << (bit % 8);
            if decompress(&small, 1 << 20, &mut out).is_ok() {
                prop_assert!(out.len() <= small.len() * 255);
            }
        }
    }
}

#[test]
fn decompression_bomb_is_refused_before_allocation() {
    // 2 GiB, in four bytes.
    let mut out = Vec::new();
    let bomb = [0x80, 0x80, 0x80, 0x80, 0x08, 0, 0, 0, 0];
    assert_eq!(decompress(&bomb, usize::MAX, &mut out), Err(WireError::BadCompression(9)));
    assert_eq!(out.capacity(), 0);
}

#[test]
fn unknown_kind_is_skipped_unless_mandatory() {
    let mut bytes = vec![0x1f, 3, 1, 2, 3];
    Encoder::default().encode(&Item::Unsubscribe { channel: 5 }, &mut bytes);
    // A field of a later version.
    bytes.extend([7, 2, 6, 99]);
    bytes.extend([0x9f, 0]);
    bytes.extend([7, 1, 7]);
    let found: Vec<_> = Items::new(&bytes).collect();
    let unwant = |channel| Ok(Item::Unsubscribe { channel });
    assert_eq!(found, [unwant(5), unwant(6), Err(WireError::UnknownKind(0x9f))]);
}

#[test]
fn loss_cause_of_a_later_version_counts_as_link() {
    let found = Items::new(&[9, 4, 1, 2, 3, 77]).next();
    let gap = Item::Gap { channel: 1, seq: 2, count: 3, cause: LossCause::Link };
    assert_eq!(found, Some(Ok(gap)));
}

#[test]
fn publisher_status_items_have_these_bytes() {
    let items = [
        Item::KnownLost { channel: 3, known: [0, 200, 1, 0] },
        Item::Alive { channel: 3 },
        Item::Will { channel: 3, message: Some(b"gone") },
        Item::Will { channel: 3, message: Some(b"") },
        Item::Will { channel: 3, message: None },
    ];
    let mut bytes = Vec::new();
    items.iter().for_each(|item| Encoder::default().encode(item, &mut bytes));
    let missing_and_alive = [12, 6, 3, 0, 0xc8, 1, 1, 0, 13, 1, 3];
    let wills = b"\x0e\x06\x03\x01gone\x0e\x02\x03\x01\x0e\x02\x03\x00";
    assert_eq!(bytes, [&missing_and_alive[..], wills].concat());
    let found: Vec<_> = Items::new(&bytes).map(Result::unwrap).collect();
    assert_eq!(found, items);
}

#[test]
fn small_message_costs_four_bytes() {
    let mut out = Vec::new();
    let mut encoder = Encoder::default();
    let mut data = Data {
        channel: 3,
        seq: 1_000_000,
        sent_ns: 86_400_000_000_000,
        meta: Meta::default(),
        payload: &[0; 22],
        compressed: false,
    };
    encoder.encode(&Item::Data(data), &mut out);
    assert!(out.len() <= 22 + 14, "the first of a frame takes {} bytes", out.len());
    for _ in 0..100 {
        out.clear();
        (data.seq, data.sent_ns) = (data.seq + 1, data.sent_ns + 1000);
        encoder.encode(&Item::Data(data), &mut out);
        assert_eq!(out.len(), 22 + 4);
    }
    // Channels in turn, and a loss.
    for at in 0..100 {
        out.clear();
        (data.channel, data.seq, data.sent_ns) = (at % 4, data.seq + 2, data.sent_ns + 1000);
        encoder.encode(&Item::Data(data), &mut out);
        assert!(at < 4 || out.len() <= 22 + 6);
    }
}

#[test]
fn document_is_split_and_reassembled() {
    for len in [0, 1, DocumentPart::MAX_LEN, DocumentPart::MAX_LEN + 1, 5 * DocumentPart::MAX_LEN] {
        let body: Vec<u8> = (0..len).map(|at| at as u8).collect();
        let mut whole = Reassembly::new(len);
        let mut found = None;
        for part in DocumentPart::split(Document::Nodes, &body) {
            assert_eq!(found, None);
            let added =
                whole.add(part.of, part.total.into(), part.offset.into(), part.bytes).unwrap();
            found = added.whole.map(<[u8]>::to_vec);
        }
        assert_eq!(found, Some(body));
    }
}

/// The rows of the page's table with this header, as cells.
fn table(head: &str) -> Vec<Vec<String>> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/design/wire.md");
    let page = std::fs::read_to_string(page).expect("cannot read the page");
    let rows = page.lines().skip_while(|line| *line != head).skip(2);
    let rows = rows.take_while(|line| line.starts_with('|'));
    let cells = |row: &str| {
        row.trim_matches('|').split('|').map(|cell| cell.trim().replace('`', "")).collect()
    };
    let rows: Vec<Vec<String>> = rows.map(cells).collect();
    assert!(!rows.is_empty(), "the page has no table `{head}`");
    rows
}

#[test]
fn page_describes_the_header() {
    let header = Header {
        version: VERSION,
        flags: ACK_ONLY | ACK_AT_ONCE,
        len: 0x0405_0607,
        from_term: 0x11 << 56 | 1,
        to_term: 0x22 << 56 | 2,
        number: 0x33 << 56 | 3,
        next: 0x44 << 56 | 4,
        sent_ns: 0x55 << 56 | 5,
        echo_ns: 0x66 << 56 | 6,
        held_ns: 0x77 << 56 | 7,
    };
    let mut bytes = [0; HEADER_LEN];
    header.encode(&mut bytes);
    let mut end = 0;
    for row in table("| offset | bytes | field | value |") {
        let at: usize = row[0].parse().unwrap();
        assert_eq!(at, end, "{row:?}");
        let Ok(len) = row[1].parse::<usize>() else {
            assert_eq!((at, row[2].as_str()), (HEADER_LEN, "items"));
            return;
        };
        let mut word = [0; 8];
        word[..len].copy_from_slice(&bytes[at..at + len]);
        let expected = match row[2].as_str() {
            "magic" => {
                let magic = row[3].strip_prefix("0x").unwrap();
                u64::from_str_radix(magic, 16).unwrap()
            }
            "version" => row[3].split(';').next().unwrap().parse().unwrap(),
            "flags" => {
                assert!(row[3].contains("bit 0: nothing but") && row[3].contains("bit 1: to be"));
                0b11
            }
            "len" => header.len.into(),
            "from_term" => header.from_term,
            "to_term" => header.to_term,
            "number" => header.number,
            "next" => header.next,
            "sent_ns" => header.sent_ns,
            "echo_ns" => header.echo_ns,
            "held_ns" => header.held_ns,
            other => panic!("the page names an unknown field {other}"),
        };
        assert_eq!(u64::from_le_bytes(word), expected, "{row:?}");
        end = at + len;
    }
    panic!("the page does not say where the items begin");
}

#[test]
fn page_lists_the_items() {
    let meta = Meta::default();
    let part = |of| Item::DocumentPart(DocumentPart { of, total: 0, offset: 0, bytes: &[] });
    // Such that no flag of a message's kind is set.
    let (channel, seq, sent_ns, compressed) = (1, 1, 1, false);
    let want = Subscribe {
        channel,
        publisher: 2,
        from: Some(seq),
        reliable: true,
        transient_local: 3,
        credit: 4,
        wills: true,
        confirms_end: true,
    };
    let cause = LossCause::Link;
    let all = [
        ("Hello", part(Document::Hello)),
        ("Nodes", part(Document::Nodes)),
        ("Endpoints", part(Document::Endpoints)),
        ("NeedType", Item::NeedType { hash: 1 }),
        ("Type", part(Document::Type(1))),
        ("Subscribe", Item::Subscribe(want)),
        ("Unsubscribe", Item::Unsubscribe { channel }),
        ("Credit", Item::Credit { channel, read: 1 }),
        ("Gap", Item::Gap { channel, seq, count: 1, cause }),
        ("Refused", part(Document::Refused)),
        ("Delivery", Item::Delivery { channel, subscription: 1, active: true }),
        ("KnownLost", Item::KnownLost { channel, known: [0; 4] }),
        ("Alive", Item::Alive { channel }),
        ("Will", Item::Will { channel, message: None }),
        ("Data", Item::Data(Data { channel, seq, sent_ns, meta, payload: &[], compressed })),
        (
            "Fragment",
            Item::Fragment(Fragment {
                channel,
                seq,
                sent_ns,
                meta,
                total: 0,
                offset: 0,
                bytes: &[],
                compressed,
            }),
        ),
    ];
    let encoded = all.map(|(name, item)| {
        let mut bytes = Vec::new();
        Encoder::default().encode(&item, &mut bytes);
        (bytes[0].to_string(), name.to_owned())
    });
    let page = table("| kind | name | fields | direction |");
    let page: Vec<_> = page.into_iter().map(|row| (row[0].clone(), row[1].clone())).collect();
    assert_eq!(page, encoded);
}

#[test]
fn page_describes_when_a_message_field_is_present() {
    let base = Data {
        channel: 1,
        seq: 5,
        sent_ns: 1,
        meta: Meta::default(),
        payload: &[],
        compressed: false,
    };
    let kind = |data: Data<'_>, follows: bool| {
        let mut encoder = Encoder::default();
        let mut out = Vec::new();
        if follows {
            encoder.encode(&Item::Data(Data { seq: data.seq - 1, ..data }), &mut out);
        }
        out.clear();
        encoder.encode(&Item::Data(data), &mut out);
        out[0] & 0x1f
    };
    let bits = [
        ("channel", "unless bit 4", kind(base, true)),
        ("sequence number", "unless bit 4", 1 << 4),
        ("sent", "always", 0),
        ("source", "bit 1", kind(Data { meta: base.meta.with_source_ns(1), ..base }, false)),
        ("correlation", "bit 2", kind(Data { meta: base.meta.with_correlation(1), ..base }, false)),
        (
            "gap",
            "bit 3",
            kind(Data { meta: base.meta.with_gap(LossCause::Link, 1), ..base }, false),
        ),
    ];
    let rows = table("| field | there | value |");
    assert_eq!(rows.len(), bits.len());
    for (row, (field, there, kind)) in rows.iter().zip(bits) {
        assert_eq!((row[0].as_str(), row[1].as_str()), (field, there));
        let bit = there.rsplit("bit ").next().and_then(|bit| bit.parse::<u8>().ok());
        assert_eq!(bit.map_or(0, |bit| 1 << bit), kind, "{field}");
    }
    assert_eq!(kind(Data { compressed: true, ..base }, false), 1);
}
