//! The project's chores: `cargo xtask <command>`.

mod bench;
mod build;
mod clients;
mod demo;
mod headers;
mod install;
mod paths;
mod process;
mod soundness;
mod symbols;
mod test;
mod words;

const USAGE: &str = "\
usage: cargo xtask <command>

  demo [FILE]         build, install into target/dist, compress FILE (or the library itself) from C
  test [--valgrind] [--no-rust] [--debug] [--only TEXT] [--target PLATFORM]
                      all tests: Rust, headers, symbols, C against the shared and the static library
  miri [TEST...]      Rust tests in Miri, which finds undefined behaviour
  races [TEXT]        C tests under ThreadSanitizer, which finds data races
  bench [OPTIONS]     speed, also against another build of the library; see bench --help
  memory [--against FILE] [--ours FILE]
                      memory that the library takes, and that another build takes
  clients [OPTIONS] [NAME...]
                      programs of others on this library; see clients --help
  headers [--check]   write the C headers, or compare them with what would be written
  install --prefix DIR [--libdir DIR] [--includedir DIR] [--destdir DIR] [--features LIST]
          [--target PLATFORM] [--no-strip] [--debug]
                      build and install libraries, headers, pkg-config and CMake files
  uninstall --prefix DIR [--libdir DIR] [--includedir DIR] [--destdir DIR]
                      remove what install installed
";

/// Ends the program, as others end, when it prints to a pipe from which nobody reads any more; by itself, Rust would
/// panic.
fn end_with_pipe() {
    #[cfg(unix)]
    // SAFETY: it is the usual handling of a signal.
    unsafe {
        libc::signal(libc::SIGPIPE, libc::SIG_DFL)
    };
}

fn main() {
    end_with_pipe();
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    let command = if args.is_empty() { String::new() } else { args.remove(0) };
    let wants_help = args.iter().any(|arg| arg == "--help" || arg == "-h");
    if wants_help && !["bench", "clients"].contains(&command.as_str()) {
        print!("{USAGE}");
        return;
    }
    let outcome = match command.as_str() {
        "bench" => bench::run(&args),
        "clients" => clients::run(&args),
        "demo" => demo::run(&args),
        "memory" => bench::memory::run(&args),
        "miri" => soundness::miri(&args),
        "races" => soundness::races(&args),
        "test" => test::run(&args),
        "headers" => headers::run(&args),
        "install" => install::run(&args),
        "uninstall" => install::uninstall(&args),
        "help" | "--help" | "-h" => {
            print!("{USAGE}");
            Ok(())
        }
        _ => {
            eprint!("{USAGE}");
            std::process::exit(2);
        }
    };
    if let Err(why) = outcome {
        eprintln!("xtask {command}: {why}");
        std::process::exit(1);
    }
}
