//! Prints the JSON Schema of an environment server's messages, for `cargo xtask docs`.

use std::io::{self, Write as _};

fn main() -> io::Result<()> {
    io::stdout().lock().write_all(wakeful_wire::schema::text().as_bytes())
}
