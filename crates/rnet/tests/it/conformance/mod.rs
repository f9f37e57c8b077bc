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
mod parts;
mod patterns;
mod taking;
mod talk;
mod transport;

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

conformance!(@ [] crate::conformance::transport::Processes, deaths_of_processes {
    patterns::a_server_that_dies_is_named,
    patterns::a_caller_that_dies_ends_its_calls,
    patterns::the_job_of_a_worker_that_dies_is_done_by_another,
    patterns::a_driver_that_dies_is_followed_by_the_fallback,
});

/// As `conformance!`, with the behaviours of topics that the actors in C++ and Python know.
macro_rules! languages {
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

languages!(
    crate::conformance::transport::Languages<'c', 'r'> as cpp_and_rust,
    crate::conformance::transport::Languages<'r', 'c'> as rust_and_cpp,
    crate::conformance::transport::Languages<'c', 'c'> as cpp_and_cpp,
    crate::conformance::transport::Languages<'c', 'p'> as cpp_and_python,
    crate::conformance::transport::Languages<'p', 'c'> as python_and_cpp,
    crate::conformance::transport::Languages<'p', 'r'> as python_and_rust,
    crate::conformance::transport::Languages<'r', 'p'> as rust_and_python
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
