//! Finding out what a machine can enforce, by doing it.

use std::{
    io::{self, Read, Write},
    path::Path,
    process::ExitCode,
};

use crate::isolation;

/// The longest input, in bytes.
const INPUT_MAX: u64 = 1024 * 1024;

/// Reads an [`Isolation`](wakeful_wire::sandbox::Isolation) as JSON, applies it to this process and
/// prints what is really in force, as JSON. Returns the status to exit with.
///
/// Must be called on the program's first thread while no other thread exists, in a process that
/// does nothing else: what is applied cannot be taken off again.
pub fn probe_isolation(input: impl Read, output: impl Write) -> ExitCode {
    match probe(input, output) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _lost = writeln!(io::stderr(), "envd-probe: {error}");
            ExitCode::FAILURE
        }
    }
}

fn probe(input: impl Read, mut output: impl Write) -> io::Result<()> {
    let isolation = serde_json::from_reader(input.take(INPUT_MAX))?;
    // Paths that do not exist are passed over, so nothing is writable.
    let nowhere = Path::new("/nonexistent");
    let in_force = isolation::apply(&isolation, nowhere, nowhere);
    serde_json::to_writer(&mut output, &in_force)?;
    output.flush()
}
