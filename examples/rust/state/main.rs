//! State: current values that any node reads, writes and watches.
//!
//! An arm publishes its state; a panel reads it, counts jobs, and starts one. When the arm exits for
//! any reason, its last will updates the state.

use rnet::Node;
use rnet::state::Value;

fn main() -> rnet::Result<()> {
    let (arm, panel) = (Node::new("arm")?, Node::new("panel")?);
    let own = arm.state()?;
    own.set("/arm/mode", "idle")?;
    own.set("/arm/gains", Value::json(r#"{"kp": 12.5, "kd": 0.5}"#)?)?;
    own.put("/arm/alive").last_will(false).set(true)?;

    let state = panel.state()?;
    let mode = state.get_as::<String>("/arm/mode")?.unwrap_or_default();
    if let Some(Value::Json(gains)) = state.get("/arm/gains")? {
        println!("the arm is {mode}, gains are {gains}");
    }
    let mut job = 0;
    for _ in 0..3 {
        job = state.add("/arm/jobs", 1)?;
    }
    // Both or none: no reader sees a moving arm without a target, and one of two panels wins.
    state.transact(|both| {
        if both.get_as::<String>("/arm/mode")?.as_deref() == Some("idle") {
            both.set("/arm/mode", "moving")?;
            both.set("/arm/target_m", Value::json("[0.5, -0.25]")?)?;
        }
        Ok(())
    })?;
    let mode = state.get_as::<String>("/arm/mode")?.unwrap_or_default();
    if let Some(Value::Json(target)) = state.get("/arm/target_m")? {
        println!("job {job}: {mode} to {target}");
    }

    // First the current values, then each change.
    let mut arm = Some((arm, own));
    for change in state.watch("/arm/alive")?.iter() {
        let alive = change?.entry.and_then(|entry| entry.value.as_bool()) == Some(true);
        println!("alive: {alive}");
        if !alive {
            break;
        }
        drop(arm.take());
    }
    Ok(())
}
