//! Each system of the study delivers what one iteration publishes.

use bench_study3::{MESSAGES, systems};

#[test]
fn an_iteration_is_delivered_by_every_system() {
    let mut ran = 0;
    for system in systems::all() {
        for mutex in [false, true] {
            let mut function = match system.open(mutex) {
                Ok(function) => function,
                Err(why) if system.function == "nats" => {
                    println!("{}: {why}", system.function_name(mutex));
                    continue;
                }
                Err(why) => panic!("{}: {why}", system.function_name(mutex)),
            };
            let time = function.publish_and_wait(2);
            let counts = function.counts().expect("publishing works");
            assert_eq!(counts, (2 * MESSAGES, 2 * MESSAGES), "{}", system.function_name(mutex));
            println!("{}: {time:?}", system.function_name(mutex));
            ran += 1;
        }
    }
    assert!(ran >= 8, "only {ran} functions ran");
}
