//! The behaviors of the conformance suite between hosts: each actor is on another host than the previous
//! one. An in-memory network joins them, and Zenoh if it is built: on loopback addresses, and between
//! network namespaces, where each actor and each link is a process (some of the behaviors; all of them in
//! `make soak`).

#![allow(dead_code, reason = "only a part of the suite's files is used")]

#[cfg(feature = "zenoh")]
use crate::common;
use crate::hosts;
#[cfg(feature = "zenoh")]
use crate::secure::Keys;

#[path = "../../../rnet/tests/it/conformance/actor.rs"]
mod actor;
#[cfg(feature = "zenoh")]
mod apart;
#[path = "../../../rnet/tests/it/conformance/behaviours.rs"]
#[macro_use]
mod behaviours;
#[path = "../../../rnet/tests/it/conformance/content.rs"]
mod content;
#[path = "../../../rnet/tests/it/conformance/delivery.rs"]
mod delivery;
#[path = "../../../rnet/tests/it/conformance/forms.rs"]
mod forms;
#[path = "../../../rnet/tests/it/conformance/history.rs"]
mod history;
#[path = "../../../rnet/tests/it/conformance/joining.rs"]
mod joining;
#[path = "../../../rnet/tests/it/conformance/keys.rs"]
mod keys;
#[path = "../../../rnet/tests/it/conformance/parts.rs"]
mod parts;
#[path = "../../../rnet/tests/it/conformance/patterns.rs"]
mod patterns;
#[path = "../../../rnet/tests/it/conformance/taking.rs"]
mod taking;
#[path = "../../../rnet/tests/it/conformance/talk.rs"]
mod talk;
#[path = "../../../rnet/tests/it/conformance/transport.rs"]
pub mod transport;
#[path = "../../../rnet/tests/it/conformance/typed.rs"]
mod typed;

#[cfg(feature = "zenoh")]
use std::path::PathBuf;

use rnet::LossCounts;
use rnet::limits::MIN_LOG_LEN_BYTES;

use hosts::Hosts;
use transport::{Handle, Transport};

/// The largest number of actors in a behavior.
pub const HOSTS: usize = 4;
/// Bytes that the link accepts on a channel beyond those that were read: docs/design/wire.md, section 4.
const CREDIT_LEN_BYTES: u64 = 4 << 20;

/// Capacity of the link's channel and the log of the proxy.
pub fn room_len_bytes() -> u64 {
    CREDIT_LEN_BYTES + MIN_LOG_LEN_BYTES
}

/// A busy machine makes hosts silent, which these behaviors do not test.
pub const PATIENT: &str = "[network]\nlost_after_ms = 20000";

/// Hosts joined by an in-memory network; or with keys, by Zenoh on loopback addresses.
struct BetweenHosts<const ZENOH: bool> {
    hosts: Hosts,
    names: Vec<String>,
}

impl<const ZENOH: bool> Transport for BetweenHosts<ZENOH> {
    fn new(test: &str) -> Self {
        let configs = [PATIENT; HOSTS];
        #[cfg(feature = "zenoh")]
        if ZENOH {
            let keys = Keys::new();
            let keys: Vec<PathBuf> =
                (0..HOSTS).map(|host| keys.host(&format!("host{host}"))).collect();
            let hosts = Hosts::over_zenoh(test, &configs, &keys);
            return BetweenHosts { hosts, names: Vec::new() };
        }
        BetweenHosts { hosts: Hosts::with_config(test, &configs), names: Vec::new() }
    }

    fn actor(&mut self, name: &str) -> Handle {
        let host = self.names.len() % HOSTS;
        self.names.push(name.to_owned());
        Handle::thread(self.hosts.domain(host).same(), self.hosts.node(host, name))
    }

    fn node_name(&self, name: &str) -> String {
        let host = self.names.iter().position(|other| other == name).expect("it plays") % HOSTS;
        format!("@host{host}/{name}")
    }

    fn settle(&mut self) {
        self.hosts.settle();
    }

    fn let_clocks_pass(&mut self) {
        std::thread::sleep(2 * self.hosts.clock_uncertainty(0)); // sleep: clocks are compared to within that
    }

    fn room_len_bytes(&self) -> u64 {
        room_len_bytes()
    }

    /// On a busy machine, the messages that the link holds for the reader fill the proxy's log again as
    /// soon as it has capacity. So a reader that does not run for the stall time of its publisher is
    /// evicted once more, and gets the error once more.
    fn has_others_between(&self) -> bool {
        true
    }

    /// The link reads for a host that reads more slowly than the publisher sends.
    fn overruns(&self, lost: &LossCounts) -> u64 {
        lost.overrun + lost.link
    }
}

conformance!(crate::conformance::BetweenHosts<false> as between_hosts);
#[cfg(feature = "zenoh")]
conformance!(crate::conformance::BetweenHosts<true> as over_zenoh);
#[cfg(feature = "zenoh")]
conformance!(
    #[ignore = "minutes; run by `make soak`"]
    crate::conformance::apart::Apart as soak_between_namespaces
);
// Order, overruns, detaching, history, matching, calls and commands, but not large messages: on a busy
// machine the bulk lane takes its delay for a full cable.
#[cfg(feature = "zenoh")]
conformance!(@ [] crate::conformance::apart::Apart, between_namespaces {
    delivery::several_publishers_are_merged_in_order,
    delivery::overruns_are_counted_exactly,
    delivery::reliable_detaches_a_stopped_reader,
    joining::matches_are_reported,
    joining::late_joiners_get_the_last_large_messages,
    history::latest_of_several_publishers_skips_the_others,
    patterns::a_call_has_its_replies_and_its_end,
    patterns::one_driver_has_authority_at_a_time,
    patterns::a_server_that_dies_is_named,
    patterns::a_caller_that_dies_ends_its_calls,
    patterns::the_job_of_a_worker_that_dies_is_done_by_another,
    patterns::a_driver_that_dies_is_followed_by_the_fallback,
});

/// The child's side; does nothing unless a parent started it.
#[test]
#[ignore = "run by the children of the other tests"]
#[cfg(feature = "zenoh")]
fn child_entry() {
    let Some(role) = common::role() else { return };
    match role.split_once(' ') {
        Some(("link", words)) => apart::link(words),
        Some(("actor", name)) => transport::play(name),
        _ => panic!("unknown role: {role}"),
    }
}
