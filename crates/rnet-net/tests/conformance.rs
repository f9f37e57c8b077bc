//! The behaviours of the conformance suite, between hosts: each actor is on another one than the actor before.

#![allow(dead_code, reason = "of the suite's files a part is used")]

#[path = "../../rnet/tests/conformance/actor.rs"]
mod actor;
#[path = "../../rnet/tests/conformance/behaviours.rs"]
#[macro_use]
mod behaviours;
#[path = "../../rnet/tests/common/mod.rs"]
mod common;
#[path = "../../rnet/tests/conformance/content.rs"]
mod content;
#[path = "../../rnet/tests/conformance/delivery.rs"]
mod delivery;
#[path = "../../rnet/tests/conformance/forms.rs"]
mod forms;
#[path = "../../rnet/tests/conformance/history.rs"]
mod history;
mod hosts;
#[path = "../../rnet/tests/conformance/joining.rs"]
mod joining;
#[path = "../../rnet/tests/conformance/taking.rs"]
mod taking;
#[path = "../../rnet/tests/conformance/transport.rs"]
mod transport;

use hosts::Hosts;
use transport::{Handle, Transport};

/// As many as the most actors of a behaviour.
const HOSTS: usize = 4;

struct BetweenHosts {
    hosts: Hosts,
    names: Vec<String>,
}

impl Transport for BetweenHosts {
    fn new(test: &str) -> Self {
        BetweenHosts { hosts: Hosts::new(test, HOSTS), names: Vec::new() }
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
}

// The others count on what was sent being there when `send` returns, or on a log being all the room that there is.
conformance!(@ crate::BetweenHosts, between_hosts {
    joining::a_callback_and_a_stream_know_their_publishers,
    taking::a_loan_may_be_cut_short,
    taking::a_loan_that_is_dropped_sends_nothing,
    delivery::a_slow_reader_that_goes_on_is_not_detached,
    delivery::all_sizes_arrive_whole_and_in_order,
    joining::either_may_start_first,
    taking::held_samples_are_limited_and_come_free,
    delivery::reliable_waits_for_a_slow_reader,
    delivery::reliable_waits_for_a_slow_reader_of_large_messages,
    taking::samples_outlive_what_they_came_from,
    delivery::several_publishers_are_merged_in_order,
    joining::waits_end_in_time,
    taking::what_can_never_fit_costs_nothing,
});
