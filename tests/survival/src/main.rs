//! `survival <role> <dir> <name> …` for the judge, `survival soak` for people.

use std::process::ExitCode;

mod soak;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match args.first().map(String::as_str) {
        Some("soak") => soak::run(),
        _ => rnet_survival::roles::run(&args).map(|()| true),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("survival {}: {error}", args.join(" "));
            ExitCode::FAILURE
        }
    }
}
