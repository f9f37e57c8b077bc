//! What the callbacks of `hooks.rs` are called with. A null event gives zeros and empty texts.

use std::ffi::{CString, c_char};
use std::ptr;

use rnet::{DeadlineMissed, EndpointEvent, EndpointQos, LivelinessChange, MatchEvent, NodeEvent};

use crate::border::{enter, give, given};
use crate::error::{Failure, c_text, rnet_code, rnet_error};
use crate::types::rnet_type;

/// What has happened to a match.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum rnet_match_kind {
    /// An event that this version of the C library does not know.
    RNET_MATCH_OTHER = 0,
    /// A peer has joined and is served.
    RNET_MATCH_MATCHED = 1,
    /// A peer has closed its end.
    RNET_MATCH_UNMATCHED = 2,
    /// The process of a peer has died.
    RNET_MATCH_LOST = 3,
    /// A peer that represents endpoints of another host represents more or fewer than before.
    RNET_MATCH_CHANGED = 4,
    /// A subscriber waits for admission by a publisher that defers it.
    RNET_MATCH_ADMISSION_REQUESTED = 5,
    /// A peer of the same topic is incompatible: see rnet_match_event_error().
    RNET_MATCH_INCOMPATIBLE = 6,
}

/// A match change of a publisher or subscriber. It is valid until the callback returns.
pub struct rnet_match_event {
    kind: rnet_match_kind,
    id: u64,
    node: CString,
    error: Option<rnet_error>,
}

impl From<&MatchEvent> for rnet_match_event {
    fn from(event: &MatchEvent) -> rnet_match_event {
        use rnet_match_kind::*;
        let (kind, peer) = match event {
            MatchEvent::Matched(peer) => (RNET_MATCH_MATCHED, peer),
            MatchEvent::Unmatched(peer) => (RNET_MATCH_UNMATCHED, peer),
            MatchEvent::Lost(peer) => (RNET_MATCH_LOST, peer),
            MatchEvent::Changed(peer) => (RNET_MATCH_CHANGED, peer),
            MatchEvent::AdmissionRequested(peer) => (RNET_MATCH_ADMISSION_REQUESTED, peer),
            MatchEvent::Incompatible(error) => {
                let node = CString::default();
                let error = Some(Failure::from(error.clone()).into_error());
                return rnet_match_event { kind: RNET_MATCH_INCOMPATIBLE, id: 0, node, error };
            }
            _ => {
                let (kind, node) = (RNET_MATCH_OTHER, CString::default());
                return rnet_match_event { kind, id: 0, node, error: None };
            }
        };
        rnet_match_event { kind, id: peer.id, node: c_text(&peer.node), error: None }
    }
}

/// What has happened.
#[unsafe(no_mangle)]
pub extern "C" fn rnet_match_event_kind(event: Option<&rnet_match_event>) -> rnet_match_kind {
    event.map_or(rnet_match_kind::RNET_MATCH_OTHER, |event| event.kind)
}

/// The id of the peer, a publisher or subscriber; 0 if it is incompatible.
#[unsafe(no_mangle)]
pub extern "C" fn rnet_match_event_id(event: Option<&rnet_match_event>) -> u64 {
    event.map_or(0, |event| event.id)
}

/// The node of the peer; "" if it is incompatible: the error names both nodes.
#[unsafe(no_mangle)]
pub extern "C" fn rnet_match_event_node(event: Option<&rnet_match_event>) -> *const c_char {
    event.map_or(c"".as_ptr(), |event| event.node.as_ptr())
}

/// Why a peer is incompatible, naming both sides; null for other events.
#[unsafe(no_mangle)]
pub extern "C" fn rnet_match_event_error(event: Option<&rnet_match_event>) -> *const rnet_error {
    event.and_then(|event| event.error.as_ref()).map_or(ptr::null(), ptr::from_ref)
}

/// Deadline periods in which a publisher sent nothing. It is valid until the callback returns.
pub struct rnet_deadline_event {
    publisher: u64,
    node: CString,
    missed: u64,
    total: u64,
}

impl From<&DeadlineMissed> for rnet_deadline_event {
    fn from(event: &DeadlineMissed) -> rnet_deadline_event {
        let DeadlineMissed { publisher, missed, total, .. } = event;
        let (missed, total) = (*missed, *total);
        rnet_deadline_event {
            publisher: publisher.id,
            node: c_text(&publisher.node),
            missed,
            total,
        }
    }
}

/// The id of the publisher.
#[unsafe(no_mangle)]
pub extern "C" fn rnet_deadline_event_publisher(event: Option<&rnet_deadline_event>) -> u64 {
    event.map_or(0, |event| event.publisher)
}

/// The node of the publisher.
#[unsafe(no_mangle)]
pub extern "C" fn rnet_deadline_event_node(event: Option<&rnet_deadline_event>) -> *const c_char {
    event.map_or(c"".as_ptr(), |event| event.node.as_ptr())
}

/// Number of missed periods since the last such event, 1 or more.
#[unsafe(no_mangle)]
pub extern "C" fn rnet_deadline_event_missed(event: Option<&rnet_deadline_event>) -> u64 {
    event.map_or(0, |event| event.missed)
}

/// Number of missed periods of this publisher so far.
#[unsafe(no_mangle)]
pub extern "C" fn rnet_deadline_event_total(event: Option<&rnet_deadline_event>) -> u64 {
    event.map_or(0, |event| event.total)
}

/// A publisher has become alive, or is no longer alive. It is valid until the callback returns.
pub struct rnet_liveliness_event {
    node: CString,
    change: LivelinessChange,
}

impl From<&LivelinessChange> for rnet_liveliness_event {
    fn from(change: &LivelinessChange) -> rnet_liveliness_event {
        rnet_liveliness_event { node: c_text(&change.publisher.node), change: change.clone() }
    }
}

/// The id of the publisher.
#[unsafe(no_mangle)]
pub extern "C" fn rnet_liveliness_event_publisher(event: Option<&rnet_liveliness_event>) -> u64 {
    event.map_or(0, |event| event.change.publisher.id)
}

/// The node of the publisher.
#[unsafe(no_mangle)]
pub extern "C" fn rnet_liveliness_event_node(
    event: Option<&rnet_liveliness_event>,
) -> *const c_char {
    event.map_or(c"".as_ptr(), |event| event.node.as_ptr())
}

/// Whether the publisher is alive now. One that has left or died is not alive, and is in neither count.
#[unsafe(no_mangle)]
pub extern "C" fn rnet_liveliness_event_is_alive(event: Option<&rnet_liveliness_event>) -> bool {
    event.is_some_and(|event| event.change.alive)
}

/// Number of connected publishers that are alive after the change.
#[unsafe(no_mangle)]
pub extern "C" fn rnet_liveliness_event_alive_count(
    event: Option<&rnet_liveliness_event>,
) -> usize {
    event.map_or(0, |event| event.change.counts.alive)
}

/// Number of connected publishers that are not alive after the change.
#[unsafe(no_mangle)]
pub extern "C" fn rnet_liveliness_event_not_alive_count(
    event: Option<&rnet_liveliness_event>,
) -> usize {
    event.map_or(0, |event| event.change.counts.not_alive)
}

/// What has happened to a node.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum rnet_node_change {
    /// An event that this version of the C library does not know.
    RNET_NODE_OTHER = 0,
    /// It has joined the domain.
    RNET_NODE_JOINED = 1,
    /// It has left by closing.
    RNET_NODE_LEFT = 2,
    /// Its process has died.
    RNET_NODE_DIED = 3,
}

/// A node has joined, left or died. It is valid until the callback returns.
pub struct rnet_node_event {
    kind: rnet_node_change,
    node: CString,
}

impl From<&NodeEvent> for rnet_node_event {
    fn from(event: &NodeEvent) -> rnet_node_event {
        use rnet_node_change::*;
        let kind = match event {
            NodeEvent::Joined(_) => RNET_NODE_JOINED,
            NodeEvent::Left(_) => RNET_NODE_LEFT,
            NodeEvent::Died(_) => RNET_NODE_DIED,
            _ => RNET_NODE_OTHER,
        };
        rnet_node_event { kind, node: c_text(event.node()) }
    }
}

/// What has happened.
#[unsafe(no_mangle)]
pub extern "C" fn rnet_node_event_kind(event: Option<&rnet_node_event>) -> rnet_node_change {
    event.map_or(rnet_node_change::RNET_NODE_OTHER, |event| event.kind)
}

/// The name of the node; "@host/node" for one of another host.
#[unsafe(no_mangle)]
pub extern "C" fn rnet_node_event_node(event: Option<&rnet_node_event>) -> *const c_char {
    event.map_or(c"".as_ptr(), |event| event.node.as_ptr())
}

/// What has happened to an endpoint.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum rnet_endpoint_kind {
    /// An event that this version of the C library does not know.
    RNET_ENDPOINT_OTHER = 0,
    /// It exists: it existed when the callback was registered, or was opened since.
    RNET_ENDPOINT_OPENED = 1,
    /// It represents more or fewer endpoints of another host than before.
    RNET_ENDPOINT_CHANGED = 2,
    /// It was closed.
    RNET_ENDPOINT_CLOSED = 3,
    /// The process of its node has died.
    RNET_ENDPOINT_LOST = 4,
}

/// A publisher or subscriber of the domain was opened or closed. It is valid until the callback returns.
pub struct rnet_endpoint_event {
    event: EndpointEvent,
    topic: CString,
    node: CString,
    type_name: CString,
    qos: CString,
}

impl From<&EndpointEvent> for rnet_endpoint_event {
    fn from(event: &EndpointEvent) -> rnet_endpoint_event {
        let endpoint = event.endpoint();
        let qos = match &endpoint.qos {
            EndpointQos::Publisher(qos) => serde_json::to_string(qos),
            EndpointQos::Subscriber(qos) => serde_json::to_string(qos),
        };
        rnet_endpoint_event {
            topic: c_text(&endpoint.topic),
            node: c_text(&endpoint.node),
            type_name: c_text(endpoint.type_desc.name().unwrap_or_default()),
            qos: c_text(&qos.unwrap_or_default()),
            event: event.clone(),
        }
    }
}

/// What has happened.
#[unsafe(no_mangle)]
pub extern "C" fn rnet_endpoint_event_kind(
    event: Option<&rnet_endpoint_event>,
) -> rnet_endpoint_kind {
    use rnet_endpoint_kind::*;
    event.map_or(RNET_ENDPOINT_OTHER, |event| match event.event {
        EndpointEvent::Opened(_) => RNET_ENDPOINT_OPENED,
        EndpointEvent::Changed(_) => RNET_ENDPOINT_CHANGED,
        EndpointEvent::Closed(_) => RNET_ENDPOINT_CLOSED,
        EndpointEvent::Lost(_) => RNET_ENDPOINT_LOST,
        _ => RNET_ENDPOINT_OTHER,
    })
}

/// The id of the endpoint, unique in the domain.
#[unsafe(no_mangle)]
pub extern "C" fn rnet_endpoint_event_id(event: Option<&rnet_endpoint_event>) -> u64 {
    event.map_or(0, |event| event.event.endpoint().id)
}

/// Whether it is a publisher; otherwise it is a subscriber.
#[unsafe(no_mangle)]
pub extern "C" fn rnet_endpoint_event_is_publisher(event: Option<&rnet_endpoint_event>) -> bool {
    event.is_some_and(|event| matches!(event.event.endpoint().qos, EndpointQos::Publisher(_)))
}

/// Its topic.
#[unsafe(no_mangle)]
pub extern "C" fn rnet_endpoint_event_topic(event: Option<&rnet_endpoint_event>) -> *const c_char {
    event.map_or(c"".as_ptr(), |event| event.topic.as_ptr())
}

/// Its node; "@host/node" if it represents endpoints of another host.
#[unsafe(no_mangle)]
pub extern "C" fn rnet_endpoint_event_node(event: Option<&rnet_endpoint_event>) -> *const c_char {
    event.map_or(c"".as_ptr(), |event| event.node.as_ptr())
}

/// The name of its type; "" for raw bytes.
#[unsafe(no_mangle)]
pub extern "C" fn rnet_endpoint_event_type_name(
    event: Option<&rnet_endpoint_event>,
) -> *const c_char {
    event.map_or(c"".as_ptr(), |event| event.type_name.as_ptr())
}

/// Its quality of service, as JSON.
#[unsafe(no_mangle)]
pub extern "C" fn rnet_endpoint_event_qos_json(
    event: Option<&rnet_endpoint_event>,
) -> *const c_char {
    event.map_or(c"".as_ptr(), |event| event.qos.as_ptr())
}

/// Number of endpoints that it represents: 1, or more for subscribers of another host.
#[unsafe(no_mangle)]
pub extern "C" fn rnet_endpoint_event_count(event: Option<&rnet_endpoint_event>) -> u32 {
    event.map_or(0, |event| event.event.endpoint().endpoint_count)
}

/// Its type, to open an endpoint of the same type. The caller frees it with rnet_type_free().
///
/// Errors: RNET_IO after its node has left; RNET_CORRUPT.
///
/// # Safety
/// `event` is valid, `out` valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_endpoint_event_type(
    event: *const rnet_endpoint_event,
    out: *mut *mut rnet_type,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let ty = unsafe { given(event, "event") }?.event.endpoint().message_type()?;
        // SAFETY: as promised by the caller.
        unsafe { give(out, rnet_type::new(ty)) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}
