//! `survival <role> <dir> <name> …` for the judge, `survival soak` for people.

use std::process::ExitCode;

mod soak;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.first().is_some_and(|role| role == "soak") {
        return soak::run();
    }
    let ran = match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["launch", dir] => rnet_survival::launching::launch(dir.as_ref()),
        ["keep"] => rnet_survival::launching::keep(),
        _ => rnet_survival::roles::run(&args),
    };
    match ran {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("survival {}: {error}", args.join(" "));
            ExitCode::FAILURE
        }
    }
}
