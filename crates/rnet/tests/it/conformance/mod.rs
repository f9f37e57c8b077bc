//! One suite of behaviours, run between threads of one node, two nodes of one process, and separate
//! processes: see `transport`.

use crate::common;

mod actor;
#[macro_use]
mod behaviours;
mod content;
mod delivery;
mod forms;
mod history;
mod joining;
mod keys;
mod parts;
mod patterns;
mod state;
mod taking;
mod talk;
mod transport;
mod typed;
mod types;

/// Child side; does nothing unless a parent started it.
#[test]
#[ignore = "entry point of the child processes"]
fn child_entry() {
    if let Some(name) = common::role() {
        transport::play(&name);
    }
}

conformance!(
    crate::conformance::transport::OneNode as one_node,
    crate::conformance::transport::TwoNodes as two_nodes,
    crate::conformance::transport::Processes as processes
);

/// The behaviours of processes: deaths, the state and typed messages.
macro_rules! between_processes {
    ($attributes:tt $($transport:ty as $place:ident),*) => {
        $(conformance!(@ $attributes $transport, $place {
            patterns::a_server_that_dies_is_named,
            patterns::a_caller_that_dies_ends_its_calls,
            patterns::the_job_of_a_worker_that_dies_is_done_by_another,
            patterns::a_driver_that_dies_is_followed_by_the_fallback,
            state::values_of_each_kind_are_read_as_written,
            state::writes_may_have_conditions,
            state::counts_of_two_writers_add_up,
            state::transactions_take_effect_as_a_whole,
            state::a_watch_reports_each_change,
            state::a_key_expires,
            state::wills_take_effect_when_their_node_dies,
            state::durable_keys_outlive_the_domain,
            state::parameters_stay_within_their_bounds,
            types::structs_and_messages_arrive,
            types::a_struct_may_grow_at_its_end,
            types::a_clash_of_types_has_one_text,
            types::calls_carry_typed_messages,
            types::errors_have_one_text,
            types::errors_of_calls_have_one_text,
        });)*
    };
}

between_processes!([] crate::conformance::transport::Processes as of_processes);

/// As `conformance!`, with the behaviours of topics that the actors in C++ and Python know.
macro_rules! topics_between_languages {
    ($($transport:ty as $place:ident),*) => {
        $(conformance!(@ [#[ignore = "needs the actors in C++ and Python; run by `make test-c`"]] $transport, $place {
            delivery::all_sizes_arrive_whole_and_in_order,
            delivery::several_publishers_are_merged_in_order,
            delivery::overruns_are_counted_exactly,
            delivery::reliable_waits_for_a_slow_reader,
            delivery::reliable_refuses_and_gives_the_message_back,
            delivery::reliable_detaches_a_stopped_reader,
            joining::either_may_start_first,
            joining::matches_are_reported,
            joining::waits_end_in_time,
            joining::late_joiners_get_the_last_small_messages,
            joining::late_joiners_get_the_last_large_messages,
            history::latest_of_several_publishers_skips_the_others,
            taking::keep_last_skips_older_messages,
            taking::latest_skips_all_but_the_newest,
            taking::a_loan_that_is_dropped_sends_nothing,
            taking::receive_without_messages_returns_nothing,
            taking::held_samples_are_limited_and_released,
            taking::samples_outlive_their_endpoints_and_node,
            taking::oversized_message_is_refused_without_loss,
        });)*
    };
}

/// As `conformance!`, with the behaviours of calls, commands, work queues, last wills and the log.
macro_rules! calls_between_languages {
    ($($transport:ty as $place:ident),*) => {
        $(conformance!(@ [#[ignore = "needs the actors in C++ and Python; run by `make test-c`"]] $transport, $place {
            patterns::a_call_has_its_replies_and_its_end,
            patterns::a_cancelled_call_ends_its_handler,
            patterns::late_replies_are_dropped_and_counted,
            patterns::a_full_backlog_refuses,
            patterns::a_server_that_closes_is_named,
            patterns::a_caller_that_leaves_ends_its_calls,
            patterns::a_goal_has_feedback_and_an_end,
            patterns::goal_policies_while_a_goal_runs,
            patterns::one_driver_has_authority_at_a_time,
            patterns::a_silent_driver_is_followed_by_the_fallback,
            patterns::jobs_are_done_once_or_handed_back,
            talk::log_lines_keep_their_node_and_level,
            talk::a_will_is_read_when_its_node_dies,
            talk::a_publisher_that_is_closed_leaves_no_will,
            talk::a_pair_of_topics_carries_both_ways,
        });)*
    };
}

topics_between_languages!(
    crate::conformance::transport::Languages<'c', 'r'> as cpp_and_rust,
    crate::conformance::transport::Languages<'r', 'c'> as rust_and_cpp,
    crate::conformance::transport::Languages<'c', 'c'> as cpp_and_cpp,
    crate::conformance::transport::Languages<'c', 'p'> as cpp_and_python,
    crate::conformance::transport::Languages<'p', 'c'> as python_and_cpp,
    crate::conformance::transport::Languages<'p', 'r'> as python_and_rust,
    crate::conformance::transport::Languages<'r', 'p'> as rust_and_python
);

calls_between_languages!(
    crate::conformance::transport::Languages<'c', 'r'> as calls_of_cpp_and_rust,
    crate::conformance::transport::Languages<'r', 'c'> as calls_of_rust_and_cpp,
    crate::conformance::transport::Languages<'c', 'p'> as calls_of_cpp_and_python,
    crate::conformance::transport::Languages<'p', 'c'> as calls_of_python_and_cpp,
    crate::conformance::transport::Languages<'p', 'r'> as calls_of_python_and_rust,
    crate::conformance::transport::Languages<'r', 'p'> as calls_of_rust_and_python
);

between_processes!([#[ignore = "needs the actors in C++ and Python; run by `make test-c`"]]
    crate::conformance::transport::Languages<'c', 'r'> as processes_of_cpp_and_rust,
    crate::conformance::transport::Languages<'r', 'c'> as processes_of_rust_and_cpp,
    crate::conformance::transport::Languages<'c', 'p'> as processes_of_cpp_and_python,
    crate::conformance::transport::Languages<'p', 'c'> as processes_of_python_and_cpp,
    crate::conformance::transport::Languages<'p', 'r'> as processes_of_python_and_rust,
    crate::conformance::transport::Languages<'r', 'p'> as processes_of_rust_and_python
);

#[test]
fn a_message_of_64_mib_crosses_processes() {
    use transport::Transport as _;
    delivery::one_of(&mut transport::Processes::new("64 MiB"), 64 << 20);
}

/// Takes 2 GiB of shared memory, and several GiB of content on both sides.
#[test]
#[ignore = "takes 2 GiB of shared memory; run by `make soak`"]
fn soak_a_message_of_1_gib_crosses_processes() {
    use transport::Transport as _;
    delivery::one_of(&mut transport::Processes::new("1 GiB"), 1 << 30);
}
