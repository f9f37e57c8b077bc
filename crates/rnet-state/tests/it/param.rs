//! Parameters as seen by the declaring node and by the nodes that set them.

use crate::common;

use std::sync::mpsc;
use std::time::Duration;

use common::{Net, eventually};
use rnet::param::{ParamDescription, ParamInfo, ParamKind, RefusedValue};
use rnet::state::Value;
use rnet::{Error, Node, Param, Result};

/// Long enough for each event that a test expects.
const SOON: Duration = Duration::from_secs(30);

fn gain(node: &Node) -> Param<f64> {
    gain_up_to(node, 10.0).expect("it makes sense")
}

fn gain_up_to(node: &Node, most: f64) -> Result<Param<f64>> {
    node.param("/gain").default(1.0).min(0.0).max(most).unit("1/s").on_refused(|_| {}).declare()
}

fn info(node: &Node, of: &str, name: &str) -> ParamInfo {
    let of = rnet::NodeName::new(of).expect("a name");
    node.state().unwrap().param(&of, name).unwrap().expect("there is one")
}

/// The reason of a `BadValue` about a parameter.
#[track_caller]
fn why<T>(result: Result<T>) -> String {
    match result {
        Err(Error::BadValue { what, why }) => {
            assert!(what.starts_with("parameter /"), "{what}");
            why
        }
        Err(other) => panic!("another error: {other}"),
        Ok(_) => panic!("it was allowed"),
    }
}

#[test]
fn parameter_has_its_default_until_set() {
    let net = Net::new("param default");
    let (arm, other) = (net.node("arm"), net.node("other"));
    let param = gain(&arm);
    let state = other.state().unwrap();
    assert_eq!((param.name(), param.key()), ("/gain", "/params/arm/gain"));
    assert_eq!(param.get(), Ok(1.0));
    // All nodes see it, as state.
    assert_eq!(state.get("/params/arm/gain").unwrap(), Some(Value::Float(1.0)));
    assert!(info(&other, "/arm", "gain").is_default);
    state.set("/params/arm/gain", 2.5).unwrap();
    assert_eq!(param.get(), Ok(2.5));
    let known = info(&other, "/arm", "/gain");
    assert!(!known.is_default);
    assert_eq!(known.entry.as_ref().unwrap().owner.node, "/other");
    assert_eq!(known.description.as_ref().unwrap(), param.description());
    param.set(3.5).unwrap();
    assert_eq!(state.get_as::<f64>("/params/arm/gain").unwrap(), Some(3.5));
    param.reset().unwrap();
    assert_eq!(param.get(), Ok(1.0));
    assert!(info(&other, "/arm", "/gain").is_default);
    // Deleting it also restores the default.
    param.set(4.0).unwrap();
    assert!(state.delete(param.key()).unwrap());
    assert_eq!(param.get(), Ok(1.0));
    assert_eq!(info(&other, "/arm", "/gain").value(), Some(&Value::Float(1.0)));
}

#[test]
fn every_way_to_write_checks_the_description() {
    let net = Net::new("param setters");
    let (arm, other) = (net.node("arm"), net.node("other"));
    let param = gain(&arm);
    let steps = arm.param("/steps").default(5).max(9_i64).declare().unwrap();
    let (state, key) = (other.state().unwrap(), param.key());
    let above = |result: Result<u64>| {
        assert_eq!(why(result), "11.0 is above its maximum 10.0 1/s");
        assert_eq!(param.get(), Ok(1.0));
    };
    above(param.set(11.0).map(|()| 0));
    above(state.set(key, 11.0));
    above(state.put(key).ttl(SOON).set(11.0));
    let revision = state.entry(key).unwrap().unwrap().revision;
    above(state.compare_and_set(key, revision, 11.0));
    above(state.update(key, |_| Value::Float(11.0)).map(|_| 0));
    above(state.add_float(key, 10.0).map(|_| 0));
    above(state.hash("/params/arm").set("gain", 11.0));
    above(state.cell::<f64>(key).unwrap().set(&11.0));
    let mut transaction = state.transaction();
    transaction.set("/elsewhere", 1).unwrap();
    transaction.set(key, 11.0).unwrap();
    above(transaction.commit());
    assert_eq!(state.get("/elsewhere").unwrap(), None, "all or nothing");
    assert_eq!(why(state.add(steps.key(), 5)), "10 is above its maximum 9");
    let is_int = "3 is int, but the parameter is float";
    assert_eq!(why(state.set(key, 3)), is_int);
    assert_eq!(why(state.put(key).change_type().set(3)), is_int);
    let said = why(state.put(key).change_type().set_message(&rnet::msgs::Twist::default()));
    assert!(said.contains("another kind"), "{said}");
    assert!(why(state.put(key).last_will(2.0).set(2.0)).contains("cannot have a last will"));
    assert!(why(state.put(key).durable(true).set(2.0)).contains("not stored on disk"));
    assert_eq!(param.get(), Ok(1.0));
    assert_eq!(why(state.set(key, f64::NAN)), "NaN is not a number");
    // A valid value passes each of them.
    state.put(key).ttl(SOON).set(2.0).unwrap();
    assert_eq!(state.add_float(key, 1.0), Ok(3.0));
    state.transact(|t| t.set(key, 4.0)).unwrap();
    assert_eq!(param.get(), Ok(4.0));
    // A similar key is not affected.
    state.set("/params", 1).unwrap();
    state.set("/paramsx/arm/gain", "anything").unwrap();
    state.set("/params/arm/gain/below", "anything").unwrap();
}

#[test]
fn each_type_has_its_values() {
    let net = Net::new("param types");
    let arm = net.node("arm");
    let flag = arm.param("flag").default(true).declare().unwrap();
    let text = arm.param("text").default("a".to_owned()).choices(["a", "b"]).declare().unwrap();
    let limits = arm.param("limits").default(vec![1.0]).max(3.0).declare().unwrap();
    let names = arm.param("names").default(vec!["x".to_owned()]).declare().unwrap();
    let any = arm.param::<Value>("any").kind(ParamKind::Ints).default(Value::list([1])).declare();
    let any = any.unwrap();
    flag.set(false).unwrap();
    text.set("b".to_owned()).unwrap();
    limits.set(vec![2.0, 3.0]).unwrap();
    names.set(Vec::new()).unwrap();
    any.set(Value::list([1, 2])).unwrap();
    assert_eq!((flag.get(), text.get()), (Ok(false), Ok("b".to_owned())));
    assert_eq!((limits.get(), names.get()), (Ok(vec![2.0, 3.0]), Ok(Vec::new())));
    assert_eq!(any.get(), Ok(Value::list([1, 2])));
    assert_eq!(why(text.set("c".to_owned())), "\"c\" is not one of its choices: a, b");
    let said = why(limits.set(vec![0.0, 4.0]));
    assert_eq!(said, "[0.0, 4.0] has 4.0 at [1], which is above its maximum 3.0");
    let said = why(any.set(Value::Int(1)));
    assert_eq!(said, "1 is int, but the parameter is list[int]");
    let said = why(arm.state().unwrap().set("/params/arm/names", Value::json("[]").unwrap()));
    assert!(said.contains("but the parameter is list[str]"), "{said}");
}

#[test]
fn set_value_outlives_the_node_and_a_default_does_not() {
    let net = Net::new("param restart");
    let witness = net.node("witness");
    {
        let arm = net.node("arm");
        gain(&arm).set(7.5).unwrap();
        arm.param("/rate").default(100_i64).declare().unwrap();
    }
    let arm = net.node("arm");
    let param = gain(&arm);
    assert_eq!((param.get(), param.refused()), (Ok(7.5), None));
    // No node set it, and the program's default is now different.
    let rate = arm.param("/rate").default(200_i64).declare().unwrap();
    assert_eq!(rate.get(), Ok(200));
    assert!(info(&witness, "/arm", "/rate").is_default);
    // A value equal to the default still counts as set.
    rate.set(200).unwrap();
    drop((param, rate, arm));
    let arm = net.node("arm");
    let rate = arm.param("/rate").default(300_i64).declare().unwrap();
    assert_eq!(rate.get(), Ok(200));
    // A second declaration writes nothing.
    let before = witness.state().unwrap().revision();
    let again = arm.param("/rate").default(300_i64).declare().unwrap();
    assert_eq!((again.get(), witness.state().unwrap().revision()), (Ok(200), before));
}

#[test]
fn invalid_stored_value_is_replaced_and_reported() {
    let net = Net::new("param refused");
    let witness = net.node("witness");
    gain(&net.node("arm")).set(7.5).unwrap();
    let arm = net.node("arm");
    let (tell, receiver) = mpsc::channel();
    let builder = arm.param("/gain").default(1.0).max(5.0);
    let param = builder
        .on_refused(move |r: &RefusedValue| tell.send(r.clone()).unwrap())
        .declare()
        .unwrap();
    let refused = receiver.try_recv().expect("reported before the parameter was declared");
    let RefusedValue { value, why, set_by, .. } = &refused;
    assert_eq!(
        (value.as_str(), why.as_str(), set_by.as_str()),
        ("7.5", "is above its maximum 5.0", "/arm")
    );
    assert_eq!((param.get(), param.refused()), (Ok(1.0), Some(&refused)));
    let shown = |node: &Node| info(node, "/arm", "/gain").description.unwrap().refused;
    assert_eq!(shown(&witness).as_ref(), Some(&refused));
    // It stays stored until a node sets another value.
    let builder = arm.param("/gain").default(1.0).max(5.0);
    let param = builder.on_refused(|r| panic!("reported again: {r:?}")).declare().unwrap();
    assert_eq!((param.get(), param.refused()), (Ok(1.0), None));
    assert_eq!(shown(&witness), Some(refused));
    param.set(3.0).unwrap();
    let param = arm.param("/gain").default(1.0).max(5.0).declare().unwrap();
    assert_eq!((param.get(), shown(&witness)), (Ok(3.0), None));
}

#[test]
fn preset_value_is_checked_at_declaration() {
    let net = Net::new("param preset");
    let (arm, person) = (net.node("arm"), net.node("person"));
    let state = person.state().unwrap();
    let key = |name: &str| format!("/params/arm/{name}");
    state.set(&key("gain"), 3).unwrap();
    state.set(&key("mode"), "fly").unwrap();
    state.put(&key("rate")).last_will_delete().set(50).unwrap();
    state.set(&key("image"), &[1, 2, 3][..]).unwrap();
    // An integer is accepted as a number.
    assert_eq!(gain(&arm).get(), Ok(3.0));
    let mode = arm.param("/mode").default("idle".to_owned()).choices(["idle", "run"]);
    let mode = mode.on_refused(|_| {}).declare().unwrap();
    assert_eq!(mode.get().as_deref(), Ok("idle"));
    assert_eq!(mode.refused().unwrap().set_by, "/person");
    let rate = arm.param("/rate").default(10_i64).declare().unwrap();
    assert_eq!(rate.get(), Ok(50));
    assert_eq!(state.entry(rate.key()).unwrap().unwrap().last_will, None);
    let image = arm.param("/image").default(1_i64).on_refused(|_| {}).declare().unwrap();
    assert_eq!(image.get(), Ok(1));
    // All four are listed before and after, including one that no node declares.
    state.set("/params/leg/x", 1).unwrap();
    let keys: Vec<String> = state.params().unwrap().into_iter().map(|info| info.key).collect();
    let expected = ["arm/gain", "arm/image", "arm/mode", "arm/rate", "leg/x"];
    assert_eq!(keys, expected.map(|rest| format!("/params/{rest}")));
    assert_eq!(state.params().unwrap()[4].description, None);
}

#[test]
fn parameter_without_default_must_be_set() {
    let net = Net::new("param must");
    let (arm, person) = (net.node("arm"), net.node("person"));
    let state = person.state().unwrap();
    let serial = || arm.param::<i64>("/serial").min(1).declare();
    assert!(why(serial()).contains("no default and no value"));
    assert!(state.params().unwrap().is_empty(), "a failed declaration leaves nothing");
    state.set("/params/arm/serial", 0).unwrap();
    assert_eq!(why(serial()), "0 is below its minimum 1, and it has no default");
    state.set("/params/arm/serial", 17).unwrap();
    let serial = serial().unwrap();
    assert_eq!(serial.get(), Ok(17));
    assert!(why(state.delete(serial.key())).contains("cannot be deleted"));
    assert!(why(state.put(serial.key()).ttl(SOON).set(18)).contains("cannot expire"));
    assert!(why(serial.reset()).contains("no default"));
    serial.set(18).unwrap();
    assert_eq!(serial.get(), Ok(18));
}

#[test]
fn read_only_while_the_node_runs() {
    let net = Net::new("param read only");
    let person = net.node("person");
    let state = person.state().unwrap();
    state.set("/params/arm/legs", 6).unwrap();
    let declare = |node: &Node| node.param("/legs").default(4_i64).read_only().declare().unwrap();
    let arm = net.node("arm");
    let legs = declare(&arm);
    assert_eq!(legs.get(), Ok(6));
    for refused in [
        state.set(legs.key(), 8).map(drop),
        state.delete(legs.key()).map(drop),
        state.reset_param(&rnet::NodeName::new("arm").unwrap(), "legs"),
        legs.set(8),
        legs.reset(),
    ] {
        assert!(why(refused).contains("read-only while /arm runs"));
    }
    drop((legs, arm));
    state.set("/params/arm/legs", 8).unwrap();
    assert_eq!(declare(&net.node("arm")).get(), Ok(8));
}

#[test]
fn each_new_value_is_reported_once() {
    let net = Net::new("param on change");
    let (arm, other) = (net.node("arm"), net.node("other"));
    let (tell, receiver) = mpsc::channel();
    let tell_more = tell.clone();
    let builder = arm.param("/gain").default(1.0).max(9.0);
    let param = builder.on_change(move |value: f64| tell.send(value).unwrap()).declare().unwrap();
    let state = other.state().unwrap();
    let hear = || receiver.recv_timeout(SOON).expect("the change is reported");
    state.set(param.key(), 2.0).unwrap();
    assert_eq!(hear(), 2.0);
    // An equal value is not a change, and neither is a refused one.
    state.set(param.key(), 2.0).unwrap();
    assert!(state.set(param.key(), 10.0).is_err());
    // Neither are changes below the key.
    state.set("/params/arm/gain/p", 7.0).unwrap();
    param.set(3.0).unwrap();
    assert_eq!(hear(), 3.0);
    state.delete(param.key()).unwrap();
    assert_eq!(hear(), 1.0);
    param.set(4.0).unwrap();
    assert_eq!(hear(), 4.0);
    // A second callback receives later changes, and ends with its handle.
    let handle = param.on_change(move |value| tell_more.send(-value).unwrap()).unwrap();
    param.set(5.0).unwrap();
    let mut both = [hear(), hear()];
    both.sort_by(f64::total_cmp);
    assert_eq!(both, [-5.0, 5.0]);
    drop(handle);
    param.set(6.0).unwrap();
    assert_eq!(hear(), 6.0);
    drop(param);
    state.set("/params/arm/gain", 7.0).unwrap();
    assert_eq!(receiver.recv_timeout(SOON), Err(mpsc::RecvTimeoutError::Disconnected));
}

#[test]
fn two_parameters_with_one_key_are_refused() {
    let net = Net::new("param clash");
    let outer = net.node("/arm");
    let first = outer.param("/left/gain").default(1.0).declare().unwrap();
    let inner = net.node("/arm/left");
    let said = why(inner.param("/gain").default(2.0).declare());
    assert!(said.contains("parameter /left/gain of /arm; rename one of them"), "{said}");
    assert_eq!(first.get(), Ok(1.0));
    // Once that node is gone, the name is free; the stored value stays if it is valid.
    first.set(3.0).unwrap();
    drop((first, outer));
    let second = inner.param("/gain").default(2.0).declare().unwrap();
    assert_eq!(second.get(), Ok(3.0));
    assert_eq!(info(&inner, "/arm/left", "/gain").description.unwrap().node, "/arm/left");
}

#[test]
fn names_and_contradictions_are_errors() {
    let net = Net::new("param names");
    let arm = net.node("arm");
    for bad in ["", "/", "a b", "/a//b", "x/", "/ümlaut"] {
        let error = arm.param(bad).default(1.0).declare().unwrap_err();
        assert!(matches!(error, Error::BadName { what: "parameter", .. }), "{bad}: {error}");
    }
    let long = "p".repeat(250);
    let said = arm.param(&long).default(1.0).declare().unwrap_err().to_string();
    assert!(said.contains("at most 255"), "{said}");
    assert!(why(arm.param("/p").default(1.0).min(2.0).declare()).contains("below its minimum 2.0"));
    assert!(why(arm.param("/p").default(f64::NAN).declare()).contains("NaN is not a number"));
    assert!(why(arm.param::<Value>("/p").declare()).contains("neither a type nor a default"));
    let bytes = Value::Bytes(vec![1]);
    assert!(
        why(arm.param::<Value>("/p").default(bytes).declare()).contains("its default is bytes")
    );
    let long = "x".repeat(5000);
    assert!(why(arm.param("/p").default(1.0).description(&long).declare()).contains("5000 bytes"));
    assert!(arm.state().unwrap().params().unwrap().is_empty());
}

#[test]
fn expired_value_returns_to_the_default() {
    let net = Net::new("param ttl");
    let arm = net.node("arm");
    let (tell, receiver) = mpsc::channel();
    let builder = arm.param("/gain").default(1.0);
    let param = builder.on_change(move |value: f64| tell.send(value).unwrap()).declare().unwrap();
    let state = arm.state().unwrap();
    state.put(param.key()).ttl(Duration::from_millis(20)).set(5.0).unwrap();
    assert_eq!(receiver.recv_timeout(SOON), Ok(5.0));
    assert_eq!(receiver.recv_timeout(SOON), Ok(1.0));
    eventually("the default is back", || param.get() == Ok(1.0));
}

#[test]
fn a_description_says_what_was_declared() {
    let net = Net::new("param describe");
    let arm = net.node("arm");
    let builder = arm.param("/gain").default(1.0).min(0.5).unit("1/s").description("how hard");
    let param = builder.durable().read_only().declare().unwrap();
    let known: ParamDescription = info(&arm, "/arm", "/gain").description.unwrap();
    assert_eq!((known.node.as_str(), known.name.as_str()), ("/arm", "/gain"));
    assert_eq!((known.kind, &known.default), (ParamKind::Float, &Some(Value::Float(1.0))));
    assert_eq!((&known.min, &known.max), (&Some(Value::Float(0.5)), &None));
    assert_eq!((known.unit.as_str(), known.text.as_str()), ("1/s", "how hard"));
    assert!(known.durable && known.read_only);
    drop(param);
}

/// Simulates a power cut: memory is lost, the disk is not.
fn power_cut(net: &Net) {
    std::fs::remove_dir_all(net.inspect_path()).expect("it can be removed");
}

#[test]
fn durable_parameter_survives_a_power_cut() {
    let net = Net::new("param durable");
    let both = |node: &Node| {
        let kept = node.param("/kept").default(1.0).max(9.0).durable().declare().unwrap();
        (kept, node.param("/gone").default(1.0).declare().unwrap())
    };
    let durable =
        |param: &Param<f64>| info(&net.node("asker"), "/arm", param.name()).entry.unwrap().durable;
    {
        let arm = net.node("arm");
        let (kept, gone) = both(&arm);
        assert!(!durable(&kept), "a default is never on disk");
        // Whichever node sets it: the declaring node decides.
        net.node("person").state().unwrap().set(kept.key(), 5.0).unwrap();
        gone.set(5.0).unwrap();
        assert_eq!((durable(&kept), durable(&gone)), (true, false));
        assert!(
            why(arm.state().unwrap().put(kept.key()).durable(false).set(6.0))
                .contains("stored on disk")
        );
    }
    power_cut(&net);
    {
        let arm = net.node("arm");
        let (kept, gone) = both(&arm);
        assert_eq!((kept.get(), gone.get()), (Ok(5.0), Ok(1.0)));
        assert!(!info(&arm, "/arm", "/kept").is_default);
        // No set value remains, so it is removed from the disk.
        kept.reset().unwrap();
        assert!(!durable(&kept));
    }
    power_cut(&net);
    let arm = net.node("arm");
    let kept = arm.param("/kept").default(2.0).max(9.0).durable().declare().unwrap();
    assert_eq!(kept.get(), Ok(2.0));
}

/// A value set with a time to live before its node starts becomes a permanent setting at the declaration.
#[test]
fn a_time_to_live_ends_with_the_declaration() {
    let net = Net::new("param ttl");
    let clock = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(1_000_000_000));
    let clocked = |name: &str| {
        let (node, read) = (net.node(name), clock.clone());
        let read = move || read.load(std::sync::atomic::Ordering::SeqCst);
        let state = rnet::binding::state_with_clocks(&node, || 7, read, 1).unwrap();
        (node, state)
    };
    let ((arm, _), (_other, state)) = (clocked("arm"), clocked("other"));
    let put = |name: &str, value: f64| {
        let key = format!("/params/arm/{name}");
        state.put(&key).ttl(Duration::from_secs(1)).set(value).unwrap();
    };
    ["fixed", "needed", "free"].iter().for_each(|name| put(name, 2.0));
    let (tell, receiver) = mpsc::channel();
    let fixed = arm.param("/fixed").default(1.0).read_only().declare().unwrap();
    let needed: Param<f64> = arm.param("/needed").declare().unwrap();
    let free = arm.param("/free").default(1.0);
    let free = free.on_change(move |value| tell.send(value).unwrap()).declare().unwrap();
    let pass = |seconds: u64| {
        clock.fetch_add(seconds * 1_000_000_000, std::sync::atomic::Ordering::SeqCst);
    };
    pass(100);
    for param in [&fixed, &needed, &free] {
        assert_eq!(param.get(), Ok(2.0), "{}", param.name());
        let entry = state.entry(param.key()).unwrap().unwrap();
        assert_eq!((entry.expires_boot_ns, &*entry.owner.node), (None, "/arm"));
    }
    // After the declaration, the default returns when the time to live ends, and the requester is notified.
    put("free", 3.0);
    assert_eq!(receiver.recv_timeout(SOON), Ok(3.0));
    pass(2);
    assert_eq!(receiver.recv_timeout(SOON), Ok(1.0));
    assert_eq!(free.get(), Ok(1.0));
    let ttl = || Duration::from_secs(1);
    assert!(why(state.put(needed.key()).ttl(ttl()).set(3.0)).contains("cannot expire"));
    assert!(why(state.put(fixed.key()).ttl(ttl()).set(3.0)).contains("read-only"));
}

#[test]
fn second_declaration_needs_equal_rules() {
    let net = Net::new("param again");
    let arm = net.node("arm");
    let param = gain(&arm);
    // The same rules return another handle.
    let same = gain(&arm);
    same.set(2.0).unwrap();
    assert_eq!(param.get(), Ok(2.0));
    let without_bounds = why(arm.param("/gain").default(1.0).unit("1/s").declare());
    assert!(without_bounds.contains("another minimum"), "{without_bounds}");
    assert!(why(gain_up_to(&arm, 20.0)).contains("another maximum"));
    let whole = arm.param::<i64>("gain").default(1).min(0).max(10).unit("1/s").declare();
    assert!(why(whole).contains("another type"));
    // Its handles are dropped, and others still set it under its rules.
    drop((param, same));
    assert!(why(gain_up_to(&arm, 20.0)).contains("another maximum"));
    assert!(
        why(net.node("other").state().unwrap().set("/params/arm/gain", 11.0)).contains("above")
    );
    // Many at once: one set of rules applies, and the others are refused.
    let most = |thread: u32| f64::from(thread) + 1.0;
    let declared: Vec<u32> = std::thread::scope(|scope| {
        let declare = |thread: u32| arm.param("/speed").default(0.5).max(most(thread)).declare();
        let threads: Vec<_> = (0..8).map(|n| scope.spawn(move || (n, declare(n)))).collect();
        let all = threads.into_iter().map(|thread| thread.join().unwrap());
        all.filter_map(|(n, declared)| declared.is_ok().then_some(n)).collect()
    });
    let [first] = declared[..] else { panic!("declared with the rules of {declared:?}") };
    assert_eq!(
        info(&arm, "/arm", "/speed").description.unwrap().max,
        Some(Value::Float(most(first)))
    );
    // A restarted node may declare other rules.
    drop(arm);
    let again = gain_up_to(&net.node("arm"), 20.0).unwrap();
    again.set(15.0).unwrap();
}
