//! A setting that an operator changes while the robot moves.
//!
//! The arm declares its gain; whoever sets it to what the arm cannot take is told why, and nothing
//! is changed. `rnet param set /arm gain 2.5` in a terminal would do what the operator does here.

use std::sync::mpsc;

use rnet::Node;

fn main() -> rnet::Result<()> {
    let (tell, changes) = mpsc::channel();
    let arm = Node::new("arm")?;
    let gain = arm
        .param("/gain")
        .default(1.0)
        .min(0.0)
        .max(10.0)
        .unit("1/s")
        .description("how hard the arm pulls towards its target")
        .on_change(move |gain: f64| {
            let _ = tell.send(gain);
        })
        .declare()?;
    println!("gain is {:?}", gain.get()?);

    let operator = Node::new("operator")?.state()?;
    if let Err(error) = operator.set("/params/arm/gain", 11.0) {
        println!("refused: {error}");
    }
    operator.set("/params/arm/gain", 2.5)?;

    println!("gain is {:?} now", changes.recv().expect("the callback lives as long as `gain`"));
    // What a control loop does in every turn.
    assert_eq!(gain.get()?, 2.5);
    Ok(())
}
