//! A resource is full: the error of the affected call names it, no sent message is lost, and work resumes by
//! itself once capacity is free.

use crate::common;
mod limits;
mod pool;
mod tables;
mod tmpfs;
mod types;

use common::{Child, Net, role, tell};
use rnet::Error;
use rnet::schema::{Schema, compile_text};

/// Entry point of the child processes: runs the role that the parent names.
#[test]
#[ignore = "entry point of the child processes"]
fn child_entry() {
    let Some(role) = role() else { return };
    let net = Net::of_parent();
    match role.as_str() {
        "tmpfs" => tmpfs::full(&net),
        "will" => tmpfs::a_will_without_room(&net),
        "start" => tmpfs::full_at_the_start(&net),
        "inodes" => tmpfs::no_inodes(&net),
        "promise" => tmpfs::large_messages_for_late_joiners(&net),
        "growth" => tmpfs::a_log_that_cannot_grow(&net),
        "death" => tmpfs::a_death_without_room(&net),
        "victim" => {
            let _orders = common::orders();
            let _node = net.node("victim");
            tell("there");
            std::thread::park();
        }
        "files" => limits::few_files(&net),
        "types" => types::few_files(&net),
        "observer" => limits::an_observer_without_files(&net),
        "waiters" => limits::those_who_wait_without_files(&net),
        "newcomers" => limits::newcomers_without_files(&net),
        "watch" => limits::a_watch_without_files(&net),
        "space" => limits::little_address_space(&net),
        "maps" => limits::few_maps(&net),
        "threads" => limits::no_threads(&net),
        "crowd" => tables::publisher_of_a_crowd(&net),
        other => panic!("unknown role: {other}"),
    }
}

/// A type whose definition its node writes for its peers.
fn level() -> Schema {
    let text = r#"syntax = "proto3"; message Level { double volt = 1; }"#;
    compile_text("level.proto", text).unwrap().schema("Level").unwrap()
}

/// Runs a role to its end. Returns `false` if the role reports that it cannot run here.
fn play(child: &mut Child) -> bool {
    match child.hear().strip_prefix("NOT RUN: ") {
        Some(why) => {
            common::not_run(why);
            false
        }
        None => true,
    }
}

#[track_caller]
fn is_limit(error: &Error, words: &[&str]) {
    let text = error.to_string();
    assert!(matches!(error, Error::LimitReached { limit: 1.., .. }), "{text}");
    assert!(words.iter().all(|word| text.contains(word)), "{text}");
}

#[track_caller]
fn is_out_of_memory(error: &Error, of: &str, words: &[&str]) {
    let text = error.to_string();
    let right = matches!(error, Error::OutOfMemory { topic, needed_bytes: 1.., limit_bytes: 1.., .. }
        if topic.contains(of));
    assert!(right && words.iter().all(|word| text.contains(word)), "{text}");
}

#[track_caller]
fn refused<T>(result: rnet::Result<T>) -> Error {
    match result {
        Ok(_) => panic!("the call should have failed"),
        Err(error) => error,
    }
}
