//! In a forked child the parent's state is closed, and dropping it does nothing.

use std::panic::{AssertUnwindSafe, catch_unwind};

use rnet::Error;

use super::int;
use crate::common::{LONG, Net, block_on};

fn closed<T>(result: Result<T, Error>) -> bool {
    matches!(result, Err(Error::Closed { what }) if what.contains("created before this process"))
}

/// Forks. Returns whether `act` returned true in the child.
fn in_a_child(act: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child only runs calls that this library supports after a fork, and then exits.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "cannot fork");
    if pid == 0 {
        let code = i32::from(!catch_unwind(AssertUnwindSafe(act)).unwrap_or(false));
        // SAFETY: exits the process.
        unsafe { libc::_exit(code) };
    }
    let mut status = 0;
    // SAFETY: our own child; the call writes the status.
    assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
    status == 0
}

#[test]
fn a_forked_child_has_no_state_of_its_parent() {
    let net = Net::new("a_forked_child_has_no_state_of_its_parent");
    let node = net.node("n");
    let state = node.state().unwrap();
    state.put("/k").last_will(0).set(1).unwrap();
    let mut cell = state.cell::<i64>("/k").unwrap();
    let (mut watch, spare) = (state.watch("/").unwrap(), state.watch("/").unwrap());
    let mut stream = state.watch("/").unwrap().into_stream();
    let handle = state.watch("/").unwrap().on(drop);
    let interrupter = watch.interrupter();
    let kept = state.clone();
    let fine = in_a_child(|| {
        let all = [
            closed(node.state()),
            closed(state.get("/k")),
            closed(state.set("/k", 2)),
            closed(state.add("/k", 2)),
            closed(state.update("/k", |_| 2.into())),
            closed(state.delete("/k")),
            closed(state.list("/")),
            closed(state.watch("/")),
            closed(state.transact(|t| t.set("/k", 2))),
            closed(cell.get()),
            closed(cell.set(&2)),
            closed(cell.compare_and_set(1, &2)),
            closed(watch.try_recv()),
            closed(watch.recv_timeout(LONG)),
            watch.iter().next().is_none(),
            closed(block_on(stream.recv())),
            state.revision() == 0,
            handle.error().is_none(),
        ];
        interrupter.interrupt();
        let again = spare.on(drop);
        drop((again, handle, stream, watch, cell, state, node));
        all.iter().all(|fine| *fine)
    });
    assert!(fine, "each call fails in the child");
    assert_eq!(
        int(&kept, "/k"),
        Some(1),
        "the parent continues, and its last will is not executed"
    );
    kept.set("/k", 3).unwrap();
    assert_eq!(int(&kept, "/k"), Some(3));
}
