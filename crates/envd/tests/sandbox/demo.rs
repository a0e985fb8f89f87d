//! The shipped demo as a surface.

use std::io::{BufRead, BufReader, Write};

use serde_json::json;

use crate::fixture::{Ground, Sandbox};

fn demo() -> Sandbox {
    let mut ground = Ground::new(&[(
        "app",
        json!({ "command": "exec \"$WAKEFUL_BIN\" demo", "ready": { "http": "/healthz" } }),
    )]);
    ground.spec.isolation.landlock = true;
    ground.spec.isolation.seccomp = true;
    ground.spec.env_vars =
        [("GREETING", "hello <you>"), ("WAKEFUL_DASHBOARD_URL", "http://main/x")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into();
    let workspace = ground.spec.workspace.clone();
    std::fs::create_dir(workspace.join("sub dir")).unwrap();
    std::fs::write(workspace.join("sub dir/a.txt"), "text of a").unwrap();
    std::fs::write(workspace.join("big.bin"), vec![7; 300_000]).unwrap();
    ground.start()
}

#[test]
fn it_welcomes_and_lists_the_files() {
    let sandbox = demo();
    let page = sandbox.get("app", "/");
    assert!(page.starts_with("HTTP/1.1 200"), "{page}");
    assert!(page.contains("hello &lt;you&gt;"));
    assert!(page.contains("href=\"http://main/x\""));
    assert!(page.contains("href=\"files/sub%20dir/\""));
    let page = sandbox.get("app", "/files/sub%20dir/");
    assert!(page.contains("href=\"./a.txt\"") && page.contains("./a.txt?download"), "{page}");
    assert!(page.contains("href=\"../../style.css\""));
}

#[test]
fn it_serves_files_and_redirects_directories_without_leaving_a_prefix() {
    let sandbox = demo();
    let file = sandbox.get("app", "/files/sub%20dir/a.txt");
    assert!(file.contains("content-type: text/plain") && file.ends_with("\r\n\r\ntext of a"));
    let file = sandbox.get("app", "/files/sub%20dir/a.txt?download");
    assert!(file.contains("content-disposition: attachment; filename*=UTF-8''a.txt"));
    let file = sandbox.get("app", "/files/big.bin");
    assert!(file.contains("content-length: 300000"));
    assert_eq!(file.split("\r\n\r\n").nth(1).unwrap().len(), 300_000);
    let redirect = sandbox.get("app", "/files/sub%20dir");
    assert!(
        redirect.starts_with("HTTP/1.1 308") && redirect.contains("location: ./sub%20dir/\r\n")
    );
    for missing in
        ["/files/none", "/files/../x", "/files/%2e%2e/r/lock", "/none", "/files/big.bin/"]
    {
        assert!(sandbox.get("app", missing).starts_with("HTTP/1.1 404"), "{missing}");
    }
}

#[test]
fn its_event_stream_begins_at_once_and_stays_open() {
    let sandbox = demo();
    let mut stream = sandbox.dial_when_ready("app");
    stream.write_all(b"GET /events HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    let lines: Vec<_> = BufReader::new(stream)
        .lines()
        .map_while(Result::ok)
        .take_while(|l| l != "data: {}")
        .collect();
    assert!(lines.iter().any(|line| line == "content-type: text/event-stream"), "{lines:?}");
    assert!(lines.iter().any(|line| line == "event: connected"));
}
