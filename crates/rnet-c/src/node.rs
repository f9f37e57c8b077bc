//! `rnet_node`.

use std::ffi::{CString, c_char};
use std::sync::Arc;

use rnet::fork::ProcessOwned;
use rnet::{Node, NodeBuilder};

use crate::border::{close, enter, free, give, given, write};
use crate::bytes::{optional_text, text};
use crate::error::{Outcome, c_text, invalid, rnet_code, rnet_error};
use crate::handle::{Handle, Member, MemberKind, MemberList, Shared};
use crate::options::{Options, options, set};

/// A rule that replaces a name: see rnet_node_options.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct rnet_remap {
    /// The name to replace: "/scan", "node:lidar"; or a pattern with two stars, as in RNET_REMAP.
    pub from: *const c_char,
    /// Its replacement.
    pub to: *const c_char,
}

/// Options of rnet_node_new(). Initialise it with RNET_NODE_OPTIONS_INIT; 0 and null mean the default.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct rnet_node_options {
    /// sizeof(rnet_node_options), set by the initialiser.
    pub struct_size: usize,
    /// The domain; default RNET_DOMAIN, else "0".
    pub domain: *const c_char,
    /// Directory of shared memory; default RNET_DIR, else /dev/shm.
    pub dir: *const c_char,
    /// Group of users who share the domain; default RNET_GROUP, else none.
    pub group: *const c_char,
    /// Directory of durable state; default RNET_STATE_DIR, else ~/.local/state/rnet.
    pub state_dir: *const c_char,
    /// Prefix of names without a leading slash; default RNET_NAMESPACE, else none.
    pub name_space: *const c_char,
    /// Rules that replace names, before those of RNET_REMAP. The first that matches applies.
    pub remaps: *const rnet_remap,
    /// Number of rules.
    pub remap_count: usize,
    /// 1: the node follows the simulated time of /clock. 2: it does not. 0: RNET_SIM_TIME.
    pub sim_time: i32,
    /// 2: waiting threads keep their time slice and timer slack. 0 and 1: they change them.
    pub tune_threads: i32,
    /// The language of the program, which tools show; default "c".
    pub language: *const c_char,
}

options!(rnet_node_options);

/// A named participant of a domain. Any thread may use it.
///
/// Its endpoints keep it alive after rnet_node_free(); rnet_node_close() closes them all.
pub struct rnet_node(pub(crate) Arc<NodeObject>);

/// The node and what is closed with it.
pub(crate) struct NodeObject {
    node: Arc<Shared<Node>>,
    pub(crate) members: Arc<MemberList>,
    name: CString,
    domain: CString,
}

impl NodeObject {
    pub(crate) fn get(&self) -> Outcome<Arc<ProcessOwned<Node>>> {
        self.node.get()
    }

    /// The handle of a new object of this node.
    pub(crate) fn add<M: Member + 'static>(&self, kind: MemberKind, object: Arc<M>) -> Handle<M> {
        Handle::new(&self.members, kind, object)
    }
}

/// The node behind a pointer.
///
/// # Safety
/// As [`given`].
pub(crate) unsafe fn node_of<'a>(node: *const rnet_node) -> Outcome<&'a NodeObject> {
    // SAFETY: as promised by the caller.
    Ok(&unsafe { given(node, "node") }?.0)
}

/// What an option of three values says; `None` for the default.
///
/// # Errors
/// `InvalidArgument` for another value.
pub(crate) fn choice(value: i32, what: &str) -> Outcome<Option<bool>> {
    match value {
        0 => Ok(None),
        1 => Ok(Some(true)),
        2 => Ok(Some(false)),
        _ => Err(invalid(format!("{what} is {value}; it must be 0, 1 or 2"))),
    }
}

impl rnet_node_options {
    /// # Safety
    /// As for rnet_node_new().
    unsafe fn builder(&self, name: &str) -> Outcome<NodeBuilder> {
        // SAFETY: each is null or a string, as the caller promises.
        let option = |text, what| unsafe { optional_text(text, what) };
        let language = option(self.language, "language")?;
        let builder = Node::builder(name).language(language.unwrap_or("c"));
        let builder = set(builder, option(self.domain, "domain")?, NodeBuilder::domain);
        let builder = set(builder, option(self.dir, "dir")?, NodeBuilder::dir);
        let builder = set(builder, option(self.group, "group")?, NodeBuilder::group);
        let builder = set(builder, option(self.state_dir, "state_dir")?, NodeBuilder::state_dir);
        let builder = set(builder, option(self.name_space, "name_space")?, NodeBuilder::namespace);
        let builder = set(builder, choice(self.sim_time, "sim_time")?, NodeBuilder::sim_time);
        let tune_threads = choice(self.tune_threads, "tune_threads")?;
        let mut builder = set(builder, tune_threads, NodeBuilder::tune_threads);
        if self.remap_count > 0 {
            // SAFETY: not null, and the caller promises this many rules.
            let rules = unsafe {
                std::slice::from_raw_parts(given(self.remaps, "remaps")?, self.remap_count)
            };
            for rule in rules {
                // SAFETY: both are null or strings, as the caller promises.
                let (from, to) = unsafe { (text(rule.from, "from")?, text(rule.to, "to")?) };
                builder = builder.remap(from, to);
            }
        }
        Ok(builder)
    }
}

/// Joins a domain. The caller frees the node with rnet_node_free().
///
/// Errors: RNET_BAD_NAME, RNET_NAME_TAKEN, RNET_NO_PERMISSION, RNET_LAYOUT_VERSION, RNET_LIMIT_REACHED, RNET_IO.
///
/// # Safety
/// `name` is a NUL-terminated string; `options` is null or initialised; `out` is valid for a write; `error` is null
/// or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_node_new(
    name: *const c_char,
    options: *const rnet_node_options,
    out: *mut *mut rnet_node,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let (name, options) = unsafe { (text(name, "name")?, rnet_node_options::read(options)?) };
        // SAFETY: as promised by the caller.
        let node = unsafe { options.builder(name) }?.open()?;
        let object = NodeObject {
            members: Arc::new(MemberList::new()),
            name: c_text(node.name()),
            domain: c_text(node.domain()),
            node: Shared::new(format!("node {}", node.name()), node),
        };
        // SAFETY: as promised by the caller.
        unsafe { give(out, rnet_node(Arc::new(object))) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}

/// Closes the node, its endpoints, and all other objects that it created: their calls fail with RNET_CLOSED from
/// then on, and waits end. The objects must still be freed. Returns when no callback of the node runs, except
/// within a callback. Null and a closed node are allowed.
///
/// # Safety
/// `node` is null or a node that was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_node_close(node: *mut rnet_node) {
    // SAFETY: as promised by the caller.
    unsafe {
        close(node, |node| {
            node.0.members.close();
            node.0.node.close();
        });
    }
}

/// Frees a node. The objects that it created keep it alive, until the last of them is freed or closed; see
/// rnet_node_close(). Null is allowed.
///
/// # Safety
/// `node` is null or a node that was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_node_free(node: *mut rnet_node) {
    // SAFETY: as promised by the caller.
    unsafe { free(node) }
}

/// The name of the node, with its namespace. Valid until the node is freed; "" if `node` is null.
///
/// # Safety
/// `node` is null or a node that was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_node_name(node: *const rnet_node) -> *const c_char {
    // SAFETY: as promised by the caller.
    unsafe { node.as_ref() }.map_or(c"".as_ptr(), |node| node.0.name.as_ptr())
}

/// The domain of the node. Valid until the node is freed; "" if `node` is null.
///
/// # Safety
/// `node` is null or a node that was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_node_domain(node: *const rnet_node) -> *const c_char {
    // SAFETY: as promised by the caller.
    unsafe { node.as_ref() }.map_or(c"".as_ptr(), |node| node.0.domain.as_ptr())
}

/// The time of the node in ns: CLOCK_MONOTONIC, or the simulated time that it follows.
///
/// # Safety
/// `node` is a node that was not freed; `out` is valid for a write; `error` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_node_now(
    node: *const rnet_node,
    out: *mut u64,
    error: *mut *mut rnet_error,
) -> rnet_code {
    // SAFETY: as promised by the caller.
    unsafe { enter(error, || write(out, node_of(node)?.get()?.now())) }
}

/// The version of the library: "0.1.0". Never freed.
#[unsafe(no_mangle)]
pub extern "C" fn rnet_version() -> *const c_char {
    const VERSION: &std::ffi::CStr = match std::ffi::CStr::from_bytes_with_nul(
        concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes(),
    ) {
        Ok(version) => version,
        Err(_) => panic!("a version has no NUL"),
    };
    VERSION.as_ptr()
}

/// The time of the host in ns: CLOCK_MONOTONIC, as in the stamps of messages.
#[unsafe(no_mangle)]
pub extern "C" fn rnet_now_ns() -> u64 {
    rnet::now_ns()
}
