//! `rnet-state-tests mix …` for the judge, `rnet-state-tests soak` for people.
#![forbid(unsafe_code)]

use std::process::ExitCode;

mod soak;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.first().is_some_and(|role| role == "soak") {
        return soak::run();
    }
    match rnet_state_tests::role::run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("rnet-state-tests {}: {error}", args.join(" "));
            ExitCode::FAILURE
        }
    }
}
