//! Answers a test runner as the standard main of a test does: `--list`, names, `--exact`.

use std::{
    future::Future,
    io::{self, Write},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    process::ExitCode,
};

/// A test: its name and what it does.
pub(crate) type Test = (&'static str, fn() -> Pin<Box<dyn Future<Output = ()>>>);

/// A list of tests from the names of their functions.
#[macro_export]
macro_rules! tests {
    ($($name:ident),* $(,)?) => {
        &[$((stringify!($name), || Box::pin($name()))),*]
    };
}

pub(crate) fn main(tests: &[Test]) -> ExitCode {
    let mut out = io::stdout().lock();
    let args: Vec<String> = std::env::args().skip(1).collect();
    let has = |flag: &str| args.iter().any(|arg| arg == flag);
    if has("--list") {
        // None of them is ignored.
        let listed = if has("--ignored") { &[] } else { tests };
        for (name, _) in listed {
            let _closed = writeln!(out, "{name}: test");
        }
        return ExitCode::SUCCESS;
    }
    let filters: Vec<&String> = args.iter().filter(|arg| !arg.starts_with('-')).collect();
    let wanted = |name: &str| {
        let fits = |filter: &&String| {
            if has("--exact") { filter.as_str() == name } else { name.contains(filter.as_str()) }
        };
        !has("--ignored") && (filters.is_empty() || filters.iter().any(fits))
    };
    let mut failed = 0;
    for (name, test) in tests.iter().filter(|(name, _)| wanted(name)) {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("a runtime can be made");
        let passed = catch_unwind(AssertUnwindSafe(|| runtime.block_on(test()))).is_ok();
        failed += usize::from(!passed);
        let _closed = writeln!(out, "test {name} ... {}", if passed { "ok" } else { "FAILED" });
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
