//! `rnet_domain` and `rnet_snapshot`: a domain, inspected from outside.

use std::ffi::{CString, c_char};
use std::sync::Arc;

use rnet::inspect::{CallType, Domain, Location, NodeMeta, ServerInfo, Snapshot, is_internal};
use rnet::schema::Schema;
use rnet::{Error, MessageType, TypeDesc};

use crate::border::{enter, free, give, given};
use crate::bytes::{optional_text, text};
use crate::error::{Outcome, c_text, rnet_code, rnet_error};
use crate::handle::Exclusive;
use crate::json::rnet_buffer;
use crate::texts::{Texts, element};
use crate::types::rnet_type;

/// The domain that the arguments of a function give, else that of the environment.
///
/// # Safety
/// Each is null or a string.
pub(crate) unsafe fn location(
    domain: *const c_char,
    dir: *const c_char,
    group: *const c_char,
) -> Outcome<Location> {
    // SAFETY: as promised by the caller.
    let owned = |from, what| unsafe { optional_text(from, what) }.map(|it| it.map(str::to_owned));
    let (domain, dir) = (owned(domain, "domain")?, owned(dir, "dir")?);
    Ok(Location::new(domain.as_deref(), dir.map(Into::into), owned(group, "group")?)?)
}

/// A domain, inspected from outside: its nodes do not see it and are not slowed by it. One thread at a time may use
/// it; a second one gets RNET_WRONG_THREAD.
pub struct rnet_domain {
    pub(crate) location: Location,
    domain: Arc<Exclusive<Domain>>,
    id: CString,
}

/// Opens a domain for inspection, without joining it. It need not exist yet. The caller frees it with
/// rnet_domain_free().
///
/// Null for `domain`, `dir` or `group` means the value of the environment, as in rnet_node_options.
///
/// Errors: RNET_BAD_NAME, RNET_NO_PERMISSION, RNET_LAYOUT_VERSION.
///
/// # Safety
/// `domain`, `dir` and `group` are null or strings, `out` is valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_domain_open(
    domain: *const c_char,
    dir: *const c_char,
    group: *const c_char,
    out: *mut *mut rnet_domain,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let location = unsafe { location(domain, dir, group) }?;
        let domain = location.domain()?;
        let id = c_text(domain.id());
        let name = format!("the inspection of domain {}", domain.id());
        let domain = Exclusive::new("domain", name, domain, || {});
        // SAFETY: as promised by the caller.
        unsafe { give(out, rnet_domain { location, domain, id }) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// The id of a domain, valid until it is freed; "" if `domain` is null.
#[unsafe(no_mangle)]
pub extern "C" fn rnet_domain_id(domain: Option<&rnet_domain>) -> *const c_char {
    domain.map_or(c"".as_ptr(), |domain| domain.id.as_ptr())
}

/// Frees a domain. Its snapshots, followers and node watchers stay valid. Null is allowed.
///
/// # Safety
/// `domain` is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_domain_free(domain: *mut rnet_domain) {
    // SAFETY: as promised by the caller.
    unsafe { free(domain) }
}

/// The nodes and endpoints of a domain at one time. Any thread may use it.
pub struct rnet_snapshot {
    snapshot: Snapshot,
    info: rnet_snapshot_info,
    nodes: Vec<rnet_node_info>,
    topics: Vec<rnet_topic_info>,
    services: Vec<rnet_service_info>,
    _texts: Texts,
}

/// The numbers of elements of a snapshot, and what is wrong. New versions of the library add fields at its end.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct rnet_snapshot_info {
    /// Number of nodes: see rnet_snapshot_node().
    pub node_count: usize,
    /// Number of topics: see rnet_snapshot_topic().
    pub topic_count: usize,
    /// Number of servers: see rnet_snapshot_service().
    pub service_count: usize,
    /// Names of the nodes of this host that died within ten minutes and were not restarted.
    pub died: *const *const c_char,
    /// Number of `died`.
    pub died_count: usize,
    /// What could not be read, with its node.
    pub problems: *const *const c_char,
    /// Number of `problems`.
    pub problem_count: usize,
}

/// A node. New versions of the library add fields at its end.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct rnet_node_info {
    /// Its name: "/arm"; on another host "@host/arm".
    pub name: *const c_char,
    /// Its language: "rust", "python", "c"; "" on another host.
    pub language: *const c_char,
    /// Its program; "" on another host.
    pub program: *const c_char,
    /// Its version of robot-net; "" on another host.
    pub version: *const c_char,
    /// Whether it is on another host. Only its name and topics are known then.
    pub is_remote: bool,
    /// Its process.
    pub pid: u32,
    /// Its user.
    pub uid: u32,
    /// When it joined, in ns since 1970 UTC.
    pub started_unix_ns: u64,
    /// Topics that it publishes.
    pub publishes: *const *const c_char,
    /// Number of `publishes`.
    pub publish_count: usize,
    /// Topics that it subscribes to.
    pub subscribes: *const *const c_char,
    /// Number of `subscribes`.
    pub subscribe_count: usize,
}

/// A topic: the sum of its endpoints. New versions of the library add fields at its end.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct rnet_topic_info {
    /// Its name.
    pub name: *const c_char,
    /// Name of the type of its first publisher, else of its first subscription; "" for raw bytes.
    pub type_name: *const c_char,
    /// Whether the library itself uses it: requests, replies, logs.
    pub is_internal: bool,
    /// Number of publishers.
    pub publisher_count: usize,
    /// Number of subscriptions, with those of other hosts.
    pub subscriber_count: usize,
    /// Messages sent by the current publishers.
    pub sent: u64,
    /// Bytes of these messages.
    pub bytes: u64,
    /// Messages received by the current subscriptions.
    pub received: u64,
    /// Messages lost by the current subscriptions.
    pub lost: u64,
}

/// A server of a service or action. New versions of the library add fields at its end.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct rnet_service_info {
    /// Name of the service.
    pub name: *const c_char,
    /// Node of the server.
    pub node: *const c_char,
    /// Name of the type of requests; "" for raw bytes.
    pub request_type: *const c_char,
    /// Name of the type of replies; "" for raw bytes.
    pub reply_type: *const c_char,
    /// Name of the type of feedback; null for a service that is not an action.
    pub feedback_type: *const c_char,
    /// Number of clients.
    pub client_count: usize,
}

/// The name of a type; "" for raw bytes.
fn name_of(desc: &TypeDesc) -> &str {
    desc.name().unwrap_or_default()
}

fn service_of(all: &mut Texts, server: &ServerInfo<'_>) -> rnet_service_info {
    let mut name =
        |of: Option<CallType<'_>>, absent| of.map_or(absent, |it| all.add(name_of(it.desc)));
    let request_type = name(Some(server.request_type()), std::ptr::null());
    let reply_type = name(server.reply_type(), c"".as_ptr());
    let feedback_type = name(server.feedback_type(), std::ptr::null());
    rnet_service_info {
        name: all.add(server.service),
        node: all.add(server.node()),
        request_type,
        reply_type,
        feedback_type,
        client_count: server.clients,
    }
}

/// The types that the endpoints of a topic declare, those of publishers first.
fn types_of<'a>(
    snapshot: &'a Snapshot,
    topic: &'a str,
) -> impl Iterator<Item = (&'a TypeDesc, Option<&'a Schema>)> {
    let publishers = snapshot.publishers.iter().filter(move |it| it.topic == topic);
    let subscriptions = snapshot.subscriptions.iter().filter(move |it| it.topic == topic);
    let publishers = publishers.map(|it| (&it.type_desc, it.schema.as_ref()));
    publishers.chain(subscriptions.map(|it| (&it.type_desc, it.schema.as_ref())))
}

/// The type that an endpoint declares.
///
/// # Errors
/// `BadValue` if its description was not read.
pub(crate) fn message_type(desc: &TypeDesc, schema: Option<&Schema>) -> rnet::Result<MessageType> {
    match schema {
        Some(schema) => Ok(schema.clone().into()),
        None => MessageType::try_from(desc.clone()),
    }
}

fn node_of(
    all: &mut Texts,
    name: &str,
    meta: Option<&NodeMeta>,
    [publishes, subscribes]: [&[String]; 2],
) -> rnet_node_info {
    let mut text = |get: fn(&NodeMeta) -> &str| all.add(meta.map(get).unwrap_or_default());
    let language = text(|meta| &meta.language);
    let (program, version) = (text(|meta| &meta.program), text(|meta| &meta.version));
    let (publishes, publish_count) = all.add_all(publishes);
    let (subscribes, subscribe_count) = all.add_all(subscribes);
    rnet_node_info {
        name: all.add(name),
        language,
        program,
        version,
        is_remote: meta.is_none(),
        pid: meta.map_or(0, |meta| meta.pid),
        uid: meta.map_or(0, |meta| meta.uid),
        started_unix_ns: meta.map_or(0, |meta| meta.started_unix_ns),
        publishes,
        publish_count,
        subscribes,
        subscribe_count,
    }
}

fn topic_of(all: &mut Texts, snapshot: &Snapshot, topic: &str) -> rnet_topic_info {
    let publishers = || snapshot.publishers.iter().filter(|it| it.topic == topic);
    let subscriptions = snapshot.subscriptions.iter().filter(|it| it.topic == topic);
    let channels: Vec<_> =
        subscriptions.flat_map(|it| it.channels.iter().chain(&it.past)).collect();
    let type_name = types_of(snapshot, topic).next().map_or("", |it| name_of(it.0));
    rnet_topic_info {
        name: all.add(topic),
        type_name: all.add(type_name),
        is_internal: is_internal(topic),
        publisher_count: publishers().count(),
        subscriber_count: snapshot.subscription_count(topic),
        sent: publishers().map(|it| it.sent).sum(),
        bytes: publishers().map(|it| it.bytes).sum(),
        received: channels.iter().map(|it| it.received).sum(),
        lost: channels.iter().map(|it| it.lost.total()).sum(),
    }
}

impl rnet_snapshot {
    fn new(snapshot: Snapshot) -> rnet_snapshot {
        let mut all = Texts::default();
        let mut nodes = Vec::new();
        for node in &snapshot.nodes {
            let topics = [&*node.publishes, &*node.subscribes];
            nodes.push(node_of(&mut all, &node.meta.name, Some(&node.meta), topics));
        }
        for node in &snapshot.remote {
            let topics = [&*node.publishes, &*node.subscribes];
            nodes.push(node_of(&mut all, &node.node, None, topics));
        }
        let topics = snapshot.topics().into_iter();
        let topics: Vec<_> = topics.map(|topic| topic_of(&mut all, &snapshot, topic)).collect();
        let services = snapshot.servers();
        let services: Vec<_> = services.iter().map(|it| service_of(&mut all, it)).collect();
        let (died, died_count) = all.add_all(&snapshot.died);
        let problems = snapshot.problems.iter().chain(&snapshot.unread);
        let (problems, problem_count) = all.add_all(problems);
        let info = rnet_snapshot_info {
            node_count: nodes.len(),
            topic_count: topics.len(),
            service_count: services.len(),
            died,
            died_count,
            problems,
            problem_count,
        };
        rnet_snapshot { snapshot, info, nodes, topics, services, _texts: all }
    }
}

/// Inspects a domain: all of it, or, if `topic` is not null, all nodes and the endpoints of this topic. The caller
/// frees the snapshot with rnet_snapshot_free(). A domain that does not exist has an empty snapshot.
///
/// Errors: RNET_BAD_NAME, RNET_NO_PERMISSION, RNET_LAYOUT_VERSION, RNET_IO. Problems of single nodes are in
/// rnet_snapshot_describe().
///
/// # Safety
/// `domain` is a domain, `topic` null or a string, `out` valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_domain_snapshot(
    domain: *mut rnet_domain,
    topic: *const c_char,
    out: *mut *mut rnet_snapshot,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let object = &unsafe { given(domain, "domain") }?.domain;
        // SAFETY: as promised by the caller.
        let topic = unsafe { optional_text(topic, "topic") }?;
        let snapshot = object.with_here(|domain| match topic {
            Some(topic) => Ok(domain.topic_snapshot(topic)?),
            None => Ok(domain.snapshot()?),
        })?;
        // SAFETY: as promised by the caller.
        unsafe { give(out, rnet_snapshot::new(snapshot)) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// The numbers of elements, and what is wrong, valid as long as the snapshot. Null if `snapshot` is null.
#[unsafe(no_mangle)]
pub extern "C" fn rnet_snapshot_describe(
    snapshot: Option<&rnet_snapshot>,
) -> *const rnet_snapshot_info {
    snapshot.map_or(std::ptr::null(), |snapshot| &raw const snapshot.info)
}

/// A node, by name, those of other hosts last. Valid as long as the snapshot; null if `at` is not less than their
/// number.
#[unsafe(no_mangle)]
pub extern "C" fn rnet_snapshot_node(
    snapshot: Option<&rnet_snapshot>,
    at: usize,
) -> *const rnet_node_info {
    snapshot.map_or(std::ptr::null(), |snapshot| element(&snapshot.nodes, at))
}

/// A topic, by name. Valid as long as the snapshot; null if `at` is not less than their number.
#[unsafe(no_mangle)]
pub extern "C" fn rnet_snapshot_topic(
    snapshot: Option<&rnet_snapshot>,
    at: usize,
) -> *const rnet_topic_info {
    snapshot.map_or(std::ptr::null(), |snapshot| element(&snapshot.topics, at))
}

/// A server, by service and node. Valid as long as the snapshot; null if `at` is not less than their number.
#[unsafe(no_mangle)]
pub extern "C" fn rnet_snapshot_service(
    snapshot: Option<&rnet_snapshot>,
    at: usize,
) -> *const rnet_service_info {
    snapshot.map_or(std::ptr::null(), |snapshot| element(&snapshot.services, at))
}

/// The type of a topic: that of its first publisher, else of its first subscription. The caller frees it with
/// rnet_type_free().
///
/// Errors: RNET_BAD_VALUE if no endpoint has the topic, or the type cannot be read.
///
/// # Safety
/// `snapshot` is a snapshot, `topic` a string, `out` valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_snapshot_topic_type(
    snapshot: *const rnet_snapshot,
    topic: *const c_char,
    out: *mut *mut rnet_type,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let snapshot = &unsafe { given(snapshot, "snapshot") }?.snapshot;
        // SAFETY: as promised by the caller.
        let topic = unsafe { text(topic, "topic") }?;
        let Some((desc, schema)) = types_of(snapshot, topic).next() else {
            return Err(Error::bad_value(topic, "no node publishes it or subscribes to it").into());
        };
        let ty = message_type(desc, schema)?;
        // SAFETY: as promised by the caller.
        unsafe { give(out, rnet_type::new(ty)) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// All that the snapshot contains, as JSON. Ids are texts, because many programs keep only 53 bits of a number. The
/// caller frees the text with rnet_buffer_free().
///
/// # Safety
/// `snapshot` is a snapshot, `out` valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_snapshot_to_json(
    snapshot: *const rnet_snapshot,
    out: *mut *mut rnet_buffer,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let snapshot = &unsafe { given(snapshot, "snapshot") }?.snapshot;
        let json = serde_json::to_vec(snapshot);
        let json = json.map_err(|why| Error::bad_value("a snapshot", why.to_string()))?;
        // SAFETY: as promised by the caller.
        unsafe { give(out, rnet_buffer::new(json)) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Frees a snapshot. Null is allowed.
///
/// # Safety
/// `snapshot` is null or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_snapshot_free(snapshot: *mut rnet_snapshot) {
    // SAFETY: as promised by the caller.
    unsafe { free(snapshot) }
}
