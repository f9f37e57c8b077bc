//! A setting that an operator changes while the robot moves.
//!
//! The arm declares its gain. Setting it to a value that is not allowed returns an error and changes
//! nothing. In a terminal, `rnet param set /arm gain 2.5` does the same as the operator here.

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
    // As in each iteration of a control loop.
    assert_eq!(gain.get()?, 2.5);
    Ok(())
}
