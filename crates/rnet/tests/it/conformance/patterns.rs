//! Behaviours of services, actions, commands and work queues.

use super::actor::{Outcome, Step};
use super::parts::{Part, Then};
use super::transport::{Handle, Transport};

const LONG_MS: u64 = 30_000;
/// Longer than any pause of a busy machine, so that no timeout expires unintentionally.
const NEVER_MS: u64 = 600_000;

impl Handle {
    #[track_caller]
    fn part(&mut self, part: Part) -> Vec<String> {
        match self.act(Step::Part(part)) {
            Outcome::Said(words) => words,
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    fn says(&mut self, part: Part, words: &[&str]) {
        assert_eq!(self.part(part), words);
    }

    /// Begins a call that runs long enough.
    #[track_caller]
    fn begin(&mut self, count: u8, then: Then) {
        self.says(Part::Begin { count, then, timeout_ms: LONG_MS }, &[]);
    }

    #[track_caller]
    fn served(&mut self, running: usize, waiting: usize, refused: u64, cancelled: u64) {
        self.says(Part::Served { running, waiting, refused, cancelled }, &[]);
    }

    #[track_caller]
    fn refused(&mut self, part: Part) -> String {
        let (code, _) = self.fails(Step::Part(part));
        code
    }
}

/// A server and its client.
fn service<T: Transport>(t: &mut T, backlog: usize) -> (Handle, Handle) {
    let (mut server, mut client) = (t.actor("server"), t.actor("client"));
    server.says(Part::Serve { backlog }, &[]);
    client.says(Part::Call { servers: 1 }, &[]);
    (server, client)
}

/// Replies arrive in order, then the end of the stream, or the handler's error and its node.
pub fn a_call_has_its_replies_and_its_end<T: Transport>(t: &mut T) {
    let (_server, mut client) = service(t, 8);
    client.begin(3, Then::Return);
    client.begin(0, Then::Return);
    client.begin(2, Then::Fail);
    let failed = format!("failed TooMany of {}", t.node_name("server"));
    client.says(Part::Hear { call: 2 }, &["0", "1", &failed]);
    client.says(Part::Hear { call: 1 }, &["end"]);
    client.says(Part::Hear { call: 0 }, &["0", "1", "2", "end"]);
    (0..3).for_each(|call| client.says(Part::Drop { call }, &[]));
    client.says(Part::Late, &["0 late, 0 open"]);
}

/// A dropped call and a call that times out end their handlers, each with its reason.
pub fn a_cancelled_call_ends_its_handler<T: Transport>(t: &mut T) {
    let (mut server, mut client) = service(t, 8);
    client.begin(0, Then::Wait);
    server.says(Part::Said { at_least: 1 }, &["begun 0"]);
    client.says(Part::Drop { call: 0 }, &[]);
    server.says(Part::Said { at_least: 2 }, &["begun 0", "caller"]);
    client.says(Part::Begin { count: 0, then: Then::Wait, timeout_ms: 300 }, &[]);
    client.says(Part::Hear { call: 1 }, &["timeout"]);
    // A call that times out before it arrives does not start.
    server.served(0, 0, 0, 2);
    let said = server.part(Part::Said { at_least: 2 });
    assert!(said.len() == 2 || said[2..] == ["begun 0", "timed_out"], "{said:?}");
}

/// Replies sent for a finished call are dropped and counted.
pub fn late_replies_are_dropped_and_counted<T: Transport>(t: &mut T) {
    let (mut server, mut client) = service(t, 8);
    client.begin(5, Then::Return);
    server.says(Part::Said { at_least: 1 }, &["begun 5"]);
    server.served(0, 0, 0, 0);
    t.settle();
    client.says(Part::Drop { call: 0 }, &[]);
    client.begin(1, Then::Return);
    client.says(Part::Hear { call: 1 }, &["0", "end"]);
    client.says(Part::Drop { call: 1 }, &[]);
    let late = client.part(Part::Late);
    // Its end of stream uses a separate topic, and may arrive after this.
    assert!(["5 late, 0 open", "6 late, 0 open"].contains(&&*late[0]), "{late:?}");
}

/// Calls that exceed the backlog are refused, and the others are served.
pub fn a_full_backlog_refuses<T: Transport>(t: &mut T) {
    let (mut server, mut client) = service(t, 1);
    client.begin(0, Then::Wait);
    server.served(1, 0, 0, 0);
    client.begin(1, Then::Return);
    server.served(1, 1, 0, 0);
    client.begin(2, Then::Return);
    client.says(Part::Hear { call: 2 }, &[&format!("refused {}", t.node_name("server"))]);
    client.says(Part::Drop { call: 0 }, &[]);
    client.says(Part::Hear { call: 1 }, &["0", "end"]);
    server.served(0, 0, 1, 1);
}

/// The callers of a server that closes get an error that names it, and the next calls go to another server.
pub fn a_server_that_closes_is_named<T: Transport>(t: &mut T) {
    let (mut server, mut client) = service(t, 8);
    client.begin(0, Then::Wait);
    server.says(Part::Said { at_least: 1 }, &["begun 0"]);
    client.begin(1, Then::Return);
    server.served(1, 1, 0, 0);
    server.says(Part::Close, &[]);
    server.says(Part::Said { at_least: 2 }, &["begun 0", "server_closing"]);
    let lost = format!("server_lost {}", t.node_name("server"));
    client.says(Part::Hear { call: 1 }, &[&lost]);
    let ends = client.part(Part::Hear { call: 0 });
    assert!(["cancelled server_closing", &lost].contains(&&*ends[0]), "{ends:?}");
    let mut other = t.actor("other");
    other.says(Part::Serve { backlog: 8 }, &[]);
    client.begin(1, Then::Return);
    client.says(Part::Hear { call: 2 }, &["0", "end"]);
}

/// A caller that closes cancels its calls, running and queued.
pub fn a_caller_that_leaves_ends_its_calls<T: Transport>(t: &mut T) {
    let (mut server, mut client) = service(t, 8);
    client.begin(0, Then::Wait);
    server.served(1, 0, 0, 0);
    client.begin(0, Then::Wait);
    server.served(1, 1, 0, 0);
    client.says(Part::Leave, &[]);
    server.served(0, 0, 0, 2);
}

/// Feedback arrives in order and before the result; a cancelled goal ends with the reason.
pub fn a_goal_has_feedback_and_an_end<T: Transport>(t: &mut T) {
    let (mut server, mut client) = (t.actor("server"), t.actor("client"));
    server.says(Part::ServeGoals { queue: 0, replace: false }, &[]);
    client.says(Part::Send { count: 3, then: Then::Return }, &[]);
    client.says(Part::Reach { goal: 0 }, &["0", "1", "2", "reached 3"]);
    client.says(Part::Send { count: 1, then: Then::Fail }, &[]);
    let failed = format!("failed TooMany of {}", t.node_name("server"));
    client.says(Part::Reach { goal: 1 }, &["0", &failed]);
    client.says(Part::Send { count: 1, then: Then::Wait }, &[]);
    server.served(1, 0, 0, 0);
    client.says(Part::CancelGoal { goal: 2 }, &[]);
    client.says(Part::Reach { goal: 2 }, &["0", "cancelled caller"]);
    server.served(0, 0, 0, 1);
}

/// Each policy for a goal that arrives while another one runs.
pub fn goal_policies_while_a_goal_runs<T: Transport>(t: &mut T) {
    let mut one = t.actor("one");
    let mut other = t.actor("other");
    let mut server = t.actor("server");
    server.says(Part::ServeGoals { queue: 0, replace: false }, &[]);
    one.says(Part::Send { count: 0, then: Then::Wait }, &[]);
    server.served(1, 0, 0, 0);
    other.says(Part::Send { count: 1, then: Then::Return }, &[]);
    other.says(Part::Reach { goal: 0 }, &[&format!("refused for {}", t.node_name("one"))]);
    one.says(Part::CancelGoal { goal: 0 }, &[]);
    one.says(Part::Reach { goal: 0 }, &["cancelled caller"]);
    one.says(Part::Leave, &[]);
    other.says(Part::Leave, &[]);
    server.says(Part::Close, &[]);

    server.says(Part::ServeGoals { queue: 1, replace: false }, &[]);
    one.says(Part::Send { count: 0, then: Then::Wait }, &[]);
    server.served(1, 0, 0, 0);
    other.says(Part::Send { count: 1, then: Then::Return }, &[]);
    server.served(1, 1, 0, 0);
    one.says(Part::CancelGoal { goal: 0 }, &[]);
    other.says(Part::Reach { goal: 0 }, &["0", "reached 1"]);
    one.says(Part::Leave, &[]);
    other.says(Part::Leave, &[]);
    server.says(Part::Close, &[]);

    server.says(Part::ServeGoals { queue: 0, replace: true }, &[]);
    one.says(Part::Send { count: 0, then: Then::Wait }, &[]);
    server.served(1, 0, 0, 0);
    other.says(Part::Send { count: 1, then: Then::Return }, &[]);
    other.says(Part::Reach { goal: 0 }, &["0", "reached 1"]);
    one.says(Part::Reach { goal: 0 }, &["cancelled preempted"]);
}

/// One driver at a time has authority, by priority. When it leaves, the fallback runs, and commands of other
/// drivers are ignored.
pub fn one_driver_has_authority_at_a_time<T: Transport>(t: &mut T) {
    let (mut base, mut low, mut high) = (t.actor("base"), t.actor("low"), t.actor("high"));
    base.says(Part::Obey { deadline_ms: NEVER_MS }, &[]);
    low.says(Part::Take { priority: 1, lease_ms: NEVER_MS }, &[]);
    base.says(Part::Holder { is: t.node_name("low") }, &[]);
    low.says(Part::Drive { value: 1 }, &[]);
    let mut said = vec!["fallback opened", "applied 1"];
    base.says(Part::Said { at_least: 2 }, &said);
    assert_eq!(high.refused(Part::Take { priority: 1, lease_ms: NEVER_MS }), "not_in_force");
    high.says(Part::Take { priority: 2, lease_ms: NEVER_MS }, &[]);
    high.says(Part::Drive { value: 2 }, &[]);
    said.extend(["fallback preempted", "applied 2"]);
    base.says(Part::Said { at_least: 4 }, &said);
    t.settle();
    assert_eq!(low.refused(Part::Drive { value: 3 }), "not_in_force");
    high.says(Part::Release, &[]);
    said.push("fallback released");
    base.says(Part::Said { at_least: 5 }, &said);
    low.says(Part::Take { priority: -5, lease_ms: NEVER_MS }, &[]);
    low.says(Part::Drive { value: 4 }, &[]);
    said.push("applied 4");
    base.says(Part::Said { at_least: 6 }, &said);
    base.says(Part::Close, &[]);
    said.push("fallback closed");
    base.says(Part::Said { at_least: 7 }, &said);
}

/// The fallback runs after a driver is silent, and after its lease expires.
pub fn a_silent_driver_is_followed_by_the_fallback<T: Transport>(t: &mut T) {
    let (mut base, mut driver) = (t.actor("base"), t.actor("driver"));
    base.says(Part::Obey { deadline_ms: 300 }, &[]);
    driver.says(Part::Take { priority: 1, lease_ms: NEVER_MS }, &[]);
    driver.says(Part::Drive { value: 1 }, &[]);
    let said = ["fallback opened", "applied 1", "fallback deadline"];
    base.says(Part::Said { at_least: 3 }, &said);
    // It still has authority.
    base.says(Part::Holder { is: t.node_name("driver") }, &[]);
    driver.says(Part::Leave, &[]);
    base.says(Part::Holder { is: String::new() }, &[]);
    driver.says(Part::Take { priority: 1, lease_ms: 300 }, &[]);
    base.says(Part::Holder { is: String::new() }, &[]);
    t.settle();
    assert_eq!(driver.refused(Part::Drive { value: 2 }), "not_in_force");
    let all = base.part(Part::Said { at_least: 3 });
    assert!(!all.contains(&"applied 2".to_owned()), "{all:?}");
}

/// Each job is done by one worker. The job of a worker that closes is redelivered once; a failed job is
/// handed back.
pub fn jobs_are_done_once_or_handed_back<T: Transport>(t: &mut T) {
    let (mut pusher, mut one, mut other) = (t.actor("pusher"), t.actor("one"), t.actor("other"));
    one.says(Part::Pull, &[]);
    pusher.says(Part::Push { job: 1 }, &[]);
    one.says(Part::Job, &["job 1"]);
    one.says(Part::Acknowledge, &[]);
    pusher.says(Part::JobsDone, &["1 done, 0 again, 0 back"]);
    pusher.says(Part::Push { job: 2 }, &[]);
    one.says(Part::Job, &["job 2"]);
    other.says(Part::Pull, &[]);
    one.says(Part::Close, &[]);
    other.says(Part::Job, &["job 2 again"]);
    other.says(Part::Acknowledge, &[]);
    pusher.says(Part::JobsDone, &["2 done, 1 again, 0 back"]);
    pusher.says(Part::Push { job: 3 }, &[]);
    other.says(Part::Job, &["job 3"]);
    other.says(Part::FailJob, &[]);
    pusher.says(Part::JobsDone, &["2 done, 1 again, 1 back"]);
    let back = format!("back 3 failed Jammed of {}", t.node_name("other"));
    pusher.says(Part::Said { at_least: 1 }, &[&back]);
}

// The behaviours below test processes: each actor has to be one.

/// The caller of a server that dies gets an error that names it, and its next call goes to another server.
pub fn a_server_that_dies_is_named<T: Transport>(t: &mut T) {
    let (mut server, mut client) = service(t, 8);
    client.begin(0, Then::Wait);
    server.says(Part::Said { at_least: 1 }, &["begun 0"]);
    server.die();
    client.says(Part::Hear { call: 0 }, &[&format!("server_lost {}", t.node_name("server"))]);
    let mut other = t.actor("other");
    other.says(Part::Serve { backlog: 8 }, &[]);
    client.begin(1, Then::Return);
    client.says(Part::Hear { call: 1 }, &["0", "end"]);
}

/// A caller that dies cancels its calls, running and queued.
pub fn a_caller_that_dies_ends_its_calls<T: Transport>(t: &mut T) {
    let (mut server, mut client) = service(t, 8);
    client.begin(0, Then::Wait);
    server.served(1, 0, 0, 0);
    client.begin(0, Then::Wait);
    server.served(1, 1, 0, 0);
    client.die();
    server.served(0, 0, 0, 2);
}

/// The job of a worker that dies is redelivered once.
pub fn the_job_of_a_worker_that_dies_is_done_by_another<T: Transport>(t: &mut T) {
    let (mut pusher, mut one, mut other) = (t.actor("pusher"), t.actor("one"), t.actor("other"));
    one.says(Part::Pull, &[]);
    pusher.says(Part::Push { job: 1 }, &[]);
    one.says(Part::Job, &["job 1"]);
    other.says(Part::Pull, &[]);
    one.die();
    other.says(Part::Job, &["job 1 again"]);
    other.says(Part::Acknowledge, &[]);
    pusher.says(Part::JobsDone, &["1 done, 1 again, 0 back"]);
}

/// The fallback runs after the death of the driver, long before its lease and the deadline expire.
pub fn a_driver_that_dies_is_followed_by_the_fallback<T: Transport>(t: &mut T) {
    let (mut base, mut driver) = (t.actor("base"), t.actor("driver"));
    base.says(Part::Obey { deadline_ms: NEVER_MS }, &[]);
    driver.says(Part::Take { priority: 1, lease_ms: NEVER_MS }, &[]);
    driver.says(Part::Drive { value: 1 }, &[]);
    base.says(Part::Said { at_least: 2 }, &["fallback opened", "applied 1"]);
    driver.die();
    let said = ["fallback opened", "applied 1", "fallback driver_lost"];
    base.says(Part::Said { at_least: 3 }, &said);
    base.says(Part::Holder { is: String::new() }, &[]);
}
