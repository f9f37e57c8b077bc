//! Counters, lists and sets: concurrent changes are never lost.

use rnet::state::Value;
use rnet::{Error, limits};

use super::{int, refusal};
use crate::common::{self, Child, Net};

#[test]
fn counters_count_and_do_not_wrap() {
    let net = Net::new("counters_count_and_do_not_wrap");
    let state = net.node("n").state().unwrap();
    assert_eq!(state.add("/n", 0).unwrap(), 0);
    assert_eq!(state.add("/n", i64::MAX).unwrap(), i64::MAX);
    let error = refusal(state.add("/n", 1));
    assert_eq!(
        error,
        "bad value for value of /n: 9223372036854775807 plus 1 does not fit into 64 bits"
    );
    assert_eq!(int(&state, "/n"), Some(i64::MAX));
    assert_eq!(state.add("/n", i64::MIN).unwrap(), -1);
    assert_eq!(state.add_float("/f", 0.5).unwrap(), 0.5);
    assert_eq!(state.add_float("/f", -2.0).unwrap(), -1.5);
    assert!(refusal(state.add("/f", 1)).contains("/f holds a float, not an integer"));
    assert!(refusal(state.add_float("/n", 1.0)).contains("/n holds an integer, not a float"));
}

#[test]
fn lists_keep_their_length_limit() {
    let net = Net::new("lists_keep_their_length_limit");
    let state = net.node("n").state().unwrap();
    assert!(state.items("/l").unwrap().is_empty());
    for n in 0..10 {
        assert_eq!(state.push("/l", n, 4).unwrap(), (n as usize + 1).min(4));
    }
    assert_eq!(state.items("/l").unwrap(), [6, 7, 8, 9].map(Value::from));
    assert_eq!(state.push("/l", "mixed", 2).unwrap(), 2, "a smaller bound takes more away");
    assert_eq!(state.items("/l").unwrap(), [Value::from(9), "mixed".into()]);
    assert_eq!(state.push("/l", Value::list([1.5]), 1).unwrap(), 1);
    assert_eq!(state.get("/l").unwrap(), Some(Value::list([Value::list([1.5])])));
    for bad in [0, limits::MAX_VALUE_ITEMS + 1] {
        assert!(refusal(state.push("/l", 1, bad)).contains("1 to 1048576 are allowed"));
    }
    assert!(refusal(state.push("/l", Value::Json("{".into()), 9)).contains("it is not JSON"));
    state.set("/i", 1).unwrap();
    assert!(refusal(state.push("/i", 1, 9)).contains("/i holds an integer, not a list"));
    assert!(refusal(state.items("/i")).contains("/i holds an integer, not a list"));
    assert_eq!(state.items("/l").unwrap().len(), 1);
}

#[test]
fn sets_hold_each_member_once() {
    let net = Net::new("sets_hold_each_member_once");
    let state = net.node("n").state().unwrap();
    assert!(state.members("/s").unwrap().is_empty() && !state.contains("/s", 1).unwrap());
    assert!(!state.set_remove("/s", 1).unwrap());
    assert_eq!(state.get("/s").unwrap(), None, "removing nothing creates no key");
    for member in [3, 1, 2] {
        assert!(state.set_add("/s", member).unwrap());
        assert!(!state.set_add("/s", member).unwrap());
    }
    assert_eq!(
        state.entry("/s").unwrap().unwrap().version,
        3,
        "an update without a change writes nothing"
    );
    assert!(state.set_add("/s", "1").unwrap());
    let members = [Value::from(1), 2.into(), 3.into(), "1".into()];
    assert_eq!(state.members("/s").unwrap(), members);
    assert!(state.contains("/s", "1").unwrap() && !state.contains("/s", 1.0).unwrap());
    for member in members {
        assert!(state.set_remove("/s", member).unwrap());
    }
    assert_eq!(state.get("/s").unwrap(), Some(Value::Set(vec![])));
    assert!(refusal(state.set_add("/s", Value::list([1]))).contains("this is a list"));
    state.set("/l", Value::list([1])).unwrap();
    assert!(refusal(state.set_add("/l", 1)).contains("/l holds a list, not a set"));
    assert!(refusal(state.members("/l")).contains("/l holds a list, not a set"));
}

#[test]
fn no_concurrent_change_is_lost() {
    let net = Net::new("no_concurrent_change_is_lost");
    const EACH: i64 = 500;
    let work = |n: usize| {
        let state = net.node(&format!("n{n}")).state().unwrap();
        move || {
            for i in 0..EACH {
                state.add("/add", 1).unwrap();
                state
                    .update("/update", |v| Value::Int(v.map_or(0, |v| v.as_int().unwrap()) + 1))
                    .unwrap();
                loop {
                    let entry = state.entry("/cas").unwrap();
                    let (revision, value) =
                        entry.map_or((0, 0), |e| (e.revision, e.value.as_int().unwrap()));
                    match state.compare_and_set("/cas", revision, value + 1) {
                        Ok(_) => break,
                        Err(Error::Conflict { .. }) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
                state.set_add("/set", n as i64 * EACH + i).unwrap();
            }
        }
    };
    let threads: Vec<_> = (0..4).map(|n| std::thread::spawn(work(n))).collect();
    for thread in threads {
        thread.join().unwrap();
    }
    let state = net.node("end").state().unwrap();
    for key in ["/add", "/update", "/cas"] {
        assert_eq!(int(&state, key), Some(4 * EACH), "{key}");
        assert_eq!(state.entry(key).unwrap().unwrap().version, 4 * EACH as u64, "{key}");
    }
    let members: Vec<_> = (0..4 * EACH).map(Value::from).collect();
    assert_eq!(state.members("/set").unwrap(), members);
}

#[test]
fn an_update_that_changes_the_type_is_refused() {
    let net = Net::new("an_update_that_changes_the_type_is_refused");
    let state = net.node("n").state().unwrap();
    let made = state.update("/k", |value| {
        assert_eq!(value, None);
        "new".into()
    });
    assert_eq!(made.unwrap(), "new".into());
    assert!(
        refusal(state.update("/k", |_| 1.into())).contains("/k holds a string, not an integer")
    );
    // An update that writes the key itself sees its own write.
    let mut calls = 0;
    let made = state.update("/k", |value| {
        calls += 1;
        if calls == 1 {
            state.set("/k", "between").unwrap();
        }
        format!("{}!", value.unwrap().as_str().unwrap()).into()
    });
    assert_eq!((made.unwrap(), calls), ("between!".into(), 2));
    let error = state.update("/k", |_| {
        state.set("/k", "always").unwrap();
        "never".into()
    });
    let error = error.unwrap_err();
    assert_eq!(error.code(), "limit_reached");
    assert!(error.to_string().contains("10000 attempts to change /k"), "{error}");
}

/// A process that counts until the parent ends it.
pub fn counter() {
    const TIMES: i64 = 2000;
    let orders = common::orders();
    let state = Net::of_parent().node(&format!("c{}", std::process::id())).state().unwrap();
    let mut cell = state.cell::<i64>("/cas").unwrap();
    for _ in 0..TIMES {
        state.add("/add", 1).unwrap();
        loop {
            let value = cell.get().unwrap().unwrap_or(0);
            match cell.compare_and_set(cell.revision(), &(value + 1)) {
                Ok(_) => break,
                Err(Error::Conflict { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }
    common::tell(&TIMES.to_string());
    let _ = orders.recv();
}

#[test]
fn every_increment_of_four_processes_counts() {
    let net = Net::new("every_increment_of_four_processes_counts");
    let state = net.node("n").state().unwrap();
    let mut children: Vec<_> = (0..4).map(|_| Child::spawn(&net, "counter")).collect();
    let sum: i64 = children.iter_mut().map(|child| child.hear().parse::<i64>().unwrap()).sum();
    assert_eq!((int(&state, "/add"), int(&state, "/cas")), (Some(sum), Some(sum)));
    children.into_iter().for_each(Child::finish);
}
