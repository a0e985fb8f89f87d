//! What clients cost, measured with real hosts and real sockets.
//!
//! `crowd [CLIENTS]`: so many clients of one host, which is killed and started again where it was.
//! `idle [HOSTS] [MINUTES]`: one client with so many connected hosts on which nothing happens.
//!
//! `WAKEFUL` names the binary whose hosts are measured; `target/release/wakeful` unless set.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "it measures for whoever runs it, and ends where that does not work"
)]

mod crowd;
mod host;
mod idle;
mod process;
mod way;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |place: usize, otherwise| {
        words.get(place).map_or(otherwise, |word| word.parse().expect("a number"))
    };
    let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    match words.first().map(String::as_str) {
        Some("crowd") => tokio.block_on(crowd::measure(number(1, 500))),
        Some("idle") => tokio.block_on(idle::measure(number(1, 20), number(2, 3) as u64)),
        // The client that `idle` looks at.
        Some("client") => tokio.block_on(idle::client(words[1].as_ref(), number(2, 1))),
        _ => println!("crowd [CLIENTS] | idle [HOSTS] [MINUTES]"),
    }
}
