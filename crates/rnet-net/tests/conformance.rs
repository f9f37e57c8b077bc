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
#[path = "../../rnet/tests/conformance/parts.rs"]
mod parts;
#[path = "../../rnet/tests/conformance/patterns.rs"]
mod patterns;
#[path = "../../rnet/tests/conformance/taking.rs"]
mod taking;
#[path = "../../rnet/tests/conformance/transport.rs"]
mod transport;

use rnet::LossCounts;
use rnet::limits::MIN_LOG_LEN_BYTES;

use hosts::Hosts;
use transport::{Handle, Transport};

/// As many as the most actors of a behaviour.
const HOSTS: usize = 4;
/// What the link takes of a channel beyond what was read: docs/design/wire.md, section 4.
const CREDIT_LEN_BYTES: u64 = 4 << 20;

/// A machine that is busy makes hosts silent, which these behaviours are not about.
const PATIENT: &str = "[network]\nlost_after_ms = 20000";

struct BetweenHosts {
    hosts: Hosts,
    names: Vec<String>,
}

impl Transport for BetweenHosts {
    fn new(test: &str) -> Self {
        BetweenHosts { hosts: Hosts::with_config(test, &[PATIENT; HOSTS]), names: Vec::new() }
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

    /// What the link takes of a channel, and the log of the proxy.
    fn room_len_bytes(&self) -> u64 {
        CREDIT_LEN_BYTES + MIN_LOG_LEN_BYTES
    }

    /// The link, on a machine that is busy.
    fn has_others_between(&self) -> bool {
        true
    }

    /// The link reads for a host that reads more slowly than is sent.
    fn overruns(&self, lost: &LossCounts) -> u64 {
        lost.overrun + lost.link
    }
}

conformance!(@ crate::BetweenHosts, between_hosts {
    delivery::all_sizes_arrive_whole_and_in_order,
    delivery::several_publishers_are_merged_in_order,
    delivery::overruns_are_counted_exactly,
    delivery::overruns_of_large_messages_are_counted_exactly,
    delivery::reliable_waits_for_a_slow_reader,
    delivery::reliable_waits_for_a_slow_reader_of_large_messages,
    delivery::reliable_refuses_and_gives_the_message_back,
    delivery::reliable_detaches_who_stands_still,
    delivery::a_slow_reader_that_goes_on_is_not_detached,
    joining::either_may_start_first,
    joining::matches_are_told,
    joining::waits_end_in_time,
    joining::a_callback_and_a_stream_know_their_publishers,
    joining::late_joiners_get_the_last_small_messages,
    joining::late_joiners_get_the_last_large_messages,
    history::the_default_keeps_the_last_ten,
    history::keep_all_passes_over_nothing,
    history::reliable_subscribers_keep_all,
    history::reliable_subscribers_may_keep_the_last,
    history::what_is_lapped_and_not_wanted_is_no_loss,
    history::latest_of_several_publishers_passes_over_the_others,
    history::a_subscriber_knows_how_far_it_is_behind,
    taking::keep_last_passes_over_the_older,
    taking::latest_passes_over_all_but_the_newest,
    taking::a_loan_that_is_dropped_sends_nothing,
    taking::a_loan_may_be_cut_short,
    taking::nothing_is_nothing,
    taking::held_samples_are_limited_and_come_free,
    taking::samples_outlive_what_they_came_from,
    taking::what_can_never_fit_costs_nothing,
    patterns::a_call_has_its_replies_and_its_end,
    patterns::a_cancelled_call_ends_its_handler,
    patterns::late_replies_are_dropped_and_counted,
    patterns::a_full_backlog_refuses,
    patterns::a_server_that_closes_is_named,
    patterns::a_caller_that_leaves_ends_its_calls,
    patterns::a_goal_has_feedback_and_an_end,
    patterns::goals_that_come_while_one_runs,
    patterns::one_driver_is_obeyed_at_a_time,
    patterns::a_silent_driver_is_followed_by_the_fallback,
    patterns::jobs_are_done_once_or_handed_back,
});
