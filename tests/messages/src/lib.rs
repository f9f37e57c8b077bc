//! Like a user's crate: one line.
#![forbid(unsafe_code)]

rnet::include_protos!();

/// The Rust code of the guide compiles, and runs if it terminates.
#[cfg(doctest)]
mod guide {
    macro_rules! pages {
        ($($page:ident: $path:literal)*) => {
            $(#[doc = include_str!(concat!("../../../docs/guide/", $path))] struct $page;)*
        };
    }
    pages! {
        Commands: "commands.md"
        Errors: "errors.md"
        GettingStarted: "getting-started.md"
        Images: "images.md"
        Messages: "messages.md"
        Metadata: "metadata.md"
        Parameters: "parameters.md"
        LastWill: "last-will.md"
        Logs: "logs.md"
        RealTime: "real-time.md"
        Services: "services.md"
        Actions: "actions.md"
        WorkQueues: "work-queues.md"
        TwoComputers: "two-computers.md"
    }
}
