//! The project's chores: `cargo xtask <command>`.

mod bench;

fn main() {
    let mut args = std::env::args().skip(1);
    match args.next().as_deref() {
        Some("bench") => bench::run(args.collect()),
        _ => {
            eprintln!("usage: cargo xtask <command>");
            std::process::exit(2);
        }
    }
}
