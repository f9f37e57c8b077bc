//! `survival <role> <dir> <name> …` for the judge, `survival soak` for people.

use std::process::ExitCode;

mod soak;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.first().is_some_and(|role| role == "soak") {
        return soak::run();
    }
    match rnet_survival::roles::run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("survival {}: {error}", args.join(" "));
            ExitCode::FAILURE
        }
    }
}
