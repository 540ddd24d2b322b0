//! The project's chores: `cargo xtask <command>`.

mod bench;
mod headers;
mod paths;

fn main() {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    let command = if args.is_empty() { String::new() } else { args.remove(0) };
    let outcome = match command.as_str() {
        "bench" => {
            bench::run(args);
            Ok(())
        }
        "headers" => headers::run(&args),
        _ => {
            eprintln!("usage: cargo xtask bench | headers [--check]");
            std::process::exit(2);
        }
    };
    if let Err(why) = outcome {
        eprintln!("xtask {command}: {why}");
        std::process::exit(1);
    }
}
