//! Where the program finds librnet.so, which is installed nowhere.

fn main() {
    // From bench-cpp, if it is built and has found the library.
    if let Ok(folder) = std::env::var("DEP_BENCH_CPP_LIBRNET") {
        println!("cargo::rustc-link-arg=-Wl,-rpath,{folder}");
    }
}
