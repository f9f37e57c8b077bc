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
