//! The Rust code of docs/guide/from-redis.md.

use std::time::Duration;

use rnet::Error;
use rnet::state::Value;

fn main() -> rnet::Result<()> {
    let node = rnet::Node::new("arm")?;
    let state = node.state()?;

    state.set("/arm/mode", "idle")?;
    assert_eq!(state.get("/arm/mode")?, Some(Value::from("idle")));
    assert_eq!(state.get_as::<String>("/arm/mode")?.as_deref(), Some("idle"));
    assert!(state.delete("/arm/mode")?);
    assert_eq!(state.get("/arm/mode")?, None);

    let revision = state.put("/lock").if_absent().ttl(Duration::from_secs(10)).set("me")?;
    let refused = state.compare_and_set("/lock", 0, "you");
    assert!(matches!(refused, Err(Error::Conflict { found, .. }) if found == revision));
    state.compare_and_set("/lock", revision, "still me")?;

    state.put("/arm/online").last_will(false).set(true)?;

    assert_eq!(state.add("/starts", 1)?, 1);
    assert_eq!(state.add("/starts", 5)?, 6);

    let pid = state.hash("/pid");
    pid.set("kp", 1.5)?;
    pid.set_many([("ki", 0.1), ("kd", 0.0)])?;
    assert_eq!(pid.get("kp")?, Some(Value::Float(1.5)));
    assert_eq!(pid.all()?.len(), 3);

    for n in 0..5 {
        state.push("/log", format!("line {n}"), 3)?;
    }
    assert_eq!(state.items("/log")?.len(), 3);
    assert!(state.set_add("/alarms", "battery")?);
    assert!(!state.set_add("/alarms", "battery")?);
    assert!(state.contains("/alarms", "battery")?);

    state.set("/account/a", 10)?;
    state.set("/account/b", 0)?;
    state.transact(|t| {
        let a = t.get_as::<i64>("/account/a")?.unwrap_or(0);
        let b = t.get_as::<i64>("/account/b")?.unwrap_or(0);
        t.set("/account/a", a - 3)?;
        t.set("/account/b", b + 3)
    })?;
    assert_eq!(state.get_as::<i64>("/account/b")?, Some(3));

    let mut watch = state.watch("/alarms")?;
    assert!(watch.recv()?.initial);
    state.set_remove("/alarms", "battery")?;
    let change = watch.recv()?;
    assert_eq!(change.entry.map(|entry| entry.value), Some(Value::Set(vec![])));

    let mut subscriber = node.subscriber::<[u8]>("/alarm").open()?;
    let mut publisher = node.publisher::<[u8]>("/alarm").open()?;
    publisher.wait_for_subscribers(1)?;
    publisher.send(b"battery low")?;
    assert_eq!(&*subscriber.recv()?, b"battery low");

    state.put("/arm/zero").durable(true).set(0.013)?;
    Ok(())
}
