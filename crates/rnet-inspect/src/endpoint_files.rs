//! Reads what endpoints describe and count in their files.

use super::*;

/// A word of a page, by byte offset.
fn word(page: &[u8], at: usize) -> u64 {
    page.get(at..at + 8).and_then(|b| b.try_into().ok()).map_or(0, u64::from_le_bytes)
}

pub(super) fn publisher_info(entry: &Entry, path: &Path, node: &str) -> Result<PublisherInfo> {
    use rnet_shm::ring::layout::{ADMISSION_ACTIVE, Admission, FlowLine, HeadLine, LogControl};
    let peer = PeerPublisher::open(path, entry.id)?;
    let page = peer.control_page()?;
    let tail = |at| word(&page, CONTROL_AT + offset_of!(LogControl, tail) + at);
    let flow = |at| word(&page, CONTROL_AT + offset_of!(LogControl, flow) + at);
    let known_lost = CONTROL_AT + offset_of!(LogControl, head) + offset_of!(HeadLine, known_lost);
    let admissions = CONTROL_AT + offset_of!(LogControl, admissions);
    let more = peer.more_admissions(flow(offset_of!(FlowLine, used_admissions)))?;
    let (first, _) = page[admissions..].split_at(READERS_IN_CONTROL * size_of::<Admission>());
    let entries = [first, &more].into_iter().flat_map(|p| p.chunks_exact(size_of::<Admission>()));
    let admitted = |entry| {
        let at = |field| word(entry, field);
        let (subscription, start_seq) =
            (at(offset_of!(Admission, subscription)), at(offset_of!(Admission, start_seq)));
        let is_one = at(offset_of!(Admission, state)) == ADMISSION_ACTIVE;
        is_one.then_some(AdmittedSubscription { subscription, start_seq })
    };
    let admitted: Vec<AdmittedSubscription> = entries.filter_map(admitted).collect();
    let leased = peer.meta.qos.liveliness.lease().is_some();
    let now_ns = rnet_shm::os::clock::now_ns();
    let last_alive_ns =
        leased.then(|| peer.map().map(|map| map.last_alive_ns(now_ns))).transpose()?;
    let pool_chunks = flow(offset_of!(FlowLine, pool_chunks)).min(MAX_CHUNKS_PER_CHANNEL as u64);
    let pool = if pool_chunks == 0 { 0 } else { flow(offset_of!(FlowLine, pool_bytes)) };
    Ok(PublisherInfo {
        id: entry.id,
        topic: peer.meta.topic.clone(),
        node: visible_node(&peer.meta.proxy, node),
        via: peer.meta.proxy.is_some().then(|| node.to_owned()),
        stands_for: peer.meta.proxy.as_ref().map(rnet_core::Proxy::endpoint),
        type_desc: peer.meta.type_desc.clone(),
        schema: None,
        type_error: None,
        qos: peer.meta.qos.clone(),
        sent: tail(offset_of!(TailLine, seq)),
        bytes: tail(offset_of!(TailLine, bytes)),
        readers: admitted.len() as u64,
        admitted,
        full: flow(offset_of!(FlowLine, full)),
        refused: flow(offset_of!(FlowLine, refused)),
        detached: flow(offset_of!(FlowLine, detached)),
        known_lost: std::array::from_fn(|at| word(&page, known_lost + at * 8)).into(),
        deadline_missed: flow(offset_of!(FlowLine, deadline_missed)),
        silent_ns: last_alive_ns.map(|last_ns| now_ns - last_ns),
        last_will_len: peer.meta.will.then(|| peer.map()).transpose()?.and_then(|m| m.will_len()),
        memory_bytes: flow(offset_of!(FlowLine, log_bytes)).saturating_add(pool),
        path: path.to_owned(),
    })
}

pub(super) fn subscription_info(
    entry: &Entry,
    path: &Path,
    node: &str,
) -> Result<SubscriptionInfo> {
    let peer = PeerSubscription::open(path, entry.id)?;
    let pages: Vec<Vec<u8>> = peer.slots().map(|(_, page)| page).collect();
    let channels = pages.iter().filter_map(|page| channel_info(page, SLOT_BOUND)).collect();
    let past = pages.iter().find_map(|page| channel_info(page, SLOT_TOTALS));
    Ok(SubscriptionInfo {
        id: entry.id,
        topic: peer.meta.topic.clone(),
        node: visible_node(&peer.meta.proxy, node),
        via: peer.meta.proxy.is_some().then(|| node.to_owned()),
        endpoint_count: if peer.meta.proxy.is_some() { entry.endpoint_count } else { 1 },
        forwards: match peer.meta.link {
            Some(LinkRole::Forwards(publisher)) => Some(publisher),
            _ => None,
        },
        type_desc: peer.meta.type_desc.clone(),
        schema: None,
        type_error: None,
        qos: peer.meta.qos.clone(),
        channels,
        past,
    })
}

/// The counters of a page whose slot is in `state`.
fn channel_info(page: &[u8], state: u64) -> Option<ChannelInfo> {
    let bind = |at| word(page, offset_of!(ReaderSlot, bind) + at);
    let count = |at| word(page, offset_of!(ReaderSlot, count) + at);
    (bind(offset_of!(BindLine, state)) == state).then_some(())?;
    let received = count(offset_of!(CountLine, received));
    let pins = (0..PINS_PER_READER).map(|i| word(page, offset_of!(ReaderSlot, pins) + i * 8));
    let latency = offset_of!(ReaderSlot, latency);
    let mean_ns = count(offset_of!(CountLine, sum_latency_ns)).checked_div(received);
    Some(ChannelInfo {
        publisher: bind(offset_of!(BindLine, publisher)),
        received,
        bytes: count(offset_of!(CountLine, bytes)),
        lost: LossCounts {
            overrun: count(offset_of!(CountLine, lost_overrun)),
            link: count(offset_of!(CountLine, lost_link)),
            restart: count(offset_of!(CountLine, lost_restart)),
            detached: count(offset_of!(CountLine, lost_detached)),
        },
        malformed: count(offset_of!(CountLine, malformed)),
        skipped: count(offset_of!(CountLine, skipped)),
        expired: count(offset_of!(CountLine, expired)),
        deadline_missed: count(offset_of!(CountLine, deadline_missed)),
        behind: Backlog::default(),
        cursor: word(page, offset_of!(ReaderSlot, cursor) + offset_of!(CursorLine, cursor)),
        next_seq: count(offset_of!(CountLine, next_seq)),
        pinned: pins.filter(|pin| *pin != 0).count() as u64,
        asleep: word(page, offset_of!(ReaderSlot, bind) + offset_of!(BindLine, asleep)) != 0,
        max_latency_ns: count(offset_of!(CountLine, max_latency_ns)),
        mean_latency_ns: mean_ns.unwrap_or(0),
        late_wakes: count(offset_of!(CountLine, late_wakes)),
        latency: (0..LATENCY_BUCKETS).map(|i| word(page, latency + i * 8)).collect(),
    })
}
