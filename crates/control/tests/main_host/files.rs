//! Files of a workspace: PUT, GET with ranges, DELETE.

use std::os::unix::fs::symlink;

use axum::body::Body;
use bytes::Bytes;
use futures::stream;
use http::{Method, StatusCode};
use serde_json::json;

use crate::support::{Call, User, World};

fn path(user: &User, file: &str) -> String {
    format!("/api/projects/{}/files/{file}", user.project)
}

fn put(user: &User, file: &str, bytes: impl Into<Body>) -> Call {
    user.call(Method::PUT, &path(user, file)).body(bytes)
}

#[tokio::test]
async fn a_file_goes_there_and_back_whether_or_not_it_runs() {
    let world = World::new().await;
    let alice = world.user("alice").await;
    let sleep = format!("/api/environments/{}/suspend", alice.project);
    world.send(alice.post(&sleep)).await;
    let asleep = world.phase(&alice, "suspended").await;
    let starts = world.driver.creates();
    let answer = world.send(put(&alice, "notes/a%20b.txt", "hello")).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{answer:?}");
    assert_eq!(answer.json(), json!({ "path": "notes/a b.txt", "size": 5 }));
    for spelling in ["notes/a%20b.txt", "workspace/notes/a%20b.txt", "notes//./a%20b.txt"] {
        let answer = world.send(alice.get(&path(&alice, spelling))).await;
        assert_eq!(answer.text(), "hello", "{spelling}");
        let disposition = answer.header("content-disposition");
        assert!(disposition.starts_with("attachment; filename=\"a b.txt\""), "{disposition}");
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
        assert!(answer.header("content-security-policy").contains("sandbox"));
    }
    let list = world.send(alice.get(&path(&alice, "notes"))).await.json();
    assert_eq!(list["entries"][0]["name"], "a b.txt");
    assert_eq!(list["entries"][0]["kind"], "file");
    let root = format!("/api/projects/{}/files", alice.project);
    let list = world.send(alice.get(&root)).await.json();
    assert_eq!(list["entries"][0]["kind"], "directory");
    assert_eq!(world.phase(&alice, "suspended").await["generation"], asleep["generation"]);
    assert_eq!(world.driver.creates(), starts, "nothing is woken");
    let removed = world.send(alice.call(Method::DELETE, &path(&alice, "notes/a%20b.txt"))).await;
    assert_eq!(removed.status, StatusCode::NO_CONTENT);
    world.send(alice.get(&path(&alice, "notes/a%20b.txt"))).await.refused(404, "not_found");
}

#[tokio::test]
async fn an_empty_file_is_a_file() {
    let world = World::new().await;
    let alice = world.user("alice").await;
    for (file, call) in [
        ("none", put(&alice, "none", Body::empty())),
        ("zero", put(&alice, "zero", Body::empty()).header("content-length", "0")),
    ] {
        let answer = world.send(call).await;
        assert_eq!(answer.status, StatusCode::CREATED, "{file}");
        let answer = world.send(alice.get(&path(&alice, file))).await;
        assert_eq!((answer.status, answer.body.len()), (StatusCode::OK, 0));
    }
}

#[tokio::test]
async fn a_transfer_that_breaks_off_leaves_the_old_file_whole() {
    let world = World::new().await;
    let alice = world.user("alice").await;
    world.send(put(&alice, "notes.txt", "old")).await;
    let broken = stream::iter([
        Ok(Bytes::from_static(b"half of")),
        Err(std::io::Error::from(std::io::ErrorKind::ConnectionReset)),
    ]);
    let answer = world.send(put(&alice, "notes.txt", Body::from_stream(broken))).await;
    answer.refused(400, "bad_request");
    assert_eq!(world.send(alice.get(&path(&alice, "notes.txt"))).await.text(), "old");
    // Also when whoever sends goes away in the middle: the handler is dropped.
    let endless = stream::unfold((), async |()| {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        Some((Ok::<_, std::io::Error>(Bytes::from_static(b"x")), ()))
    });
    let sending = world.send(put(&alice, "notes.txt", Body::from_stream(endless)));
    assert!(tokio::time::timeout(std::time::Duration::from_millis(100), sending).await.is_err());
    assert_eq!(world.send(alice.get(&path(&alice, "notes.txt"))).await.text(), "old");
    let left: Vec<_> = std::fs::read_dir(world.workspace(&alice)).unwrap().collect();
    assert_eq!(left.len(), 1, "nothing else is left: {left:?}");
}

#[tokio::test]
async fn what_is_too_large_is_refused_with_and_without_a_length() {
    let world = World::new().await;
    let alice = world.user("alice").await;
    world.send(put(&alice, "big", "old")).await;
    // The body would never end: it is not asked for.
    let unread = Body::from_stream(stream::pending::<Result<Bytes, std::io::Error>>());
    let stated = put(&alice, "big", unread).header("content-length", "1048577");
    world.send(stated).await.refused(413, "too_large");
    let chunk = Bytes::from(vec![0; 64 * 1024]);
    let endless = stream::repeat_with(move || Ok::<_, std::io::Error>(chunk.clone()));
    let answer = world.send(put(&alice, "big", Body::from_stream(endless))).await;
    answer.refused(413, "too_large");
    assert_eq!(world.send(alice.get(&path(&alice, "big"))).await.text(), "old");
    let exact = world.send(put(&alice, "big", vec![0; 1 << 20])).await;
    assert_eq!(exact.status, StatusCode::CREATED);
    let stranger = Call::new(Method::PUT, &path(&alice, "big"))
        .body(Body::from_stream(stream::pending::<Result<Bytes, std::io::Error>>()));
    world.send(stranger).await.refused(401, "unauthenticated");
}

#[tokio::test]
async fn no_path_and_no_planted_link_leads_outside() {
    let world = World::new().await;
    let alice = world.user("alice").await;
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("secret"), "outside").unwrap();
    let workspace = world.workspace(&alice);
    symlink(outside.path(), workspace.join("d")).unwrap();
    symlink(outside.path().join("secret"), workspace.join("f")).unwrap();
    symlink("/proc/self/environ", workspace.join("environ")).unwrap();
    for bad in ["..%2fx", "%2e%2e/x", "a/..%2f..%2fx", "..%5cx", "%2fetc%2fpasswd", "a%00b"] {
        for method in [Method::GET, Method::PUT, Method::DELETE] {
            let answer = world.send(alice.call(method.clone(), &path(&alice, bad))).await;
            answer.refused(400, "bad_request");
        }
    }
    let long = "x/".repeat(2_500);
    world.send(alice.get(&path(&alice, &long))).await.refused(400, "bad_request");
    for link in ["f", "d/secret", "environ"] {
        world.send(alice.get(&path(&alice, link))).await.refused(404, "not_found");
    }
    world.send(put(&alice, "d/new", "x")).await.refused(409, "conflict");
    let answer = world.send(alice.call(Method::DELETE, &path(&alice, "d/secret"))).await;
    assert!(answer.status.is_client_error());
    assert_eq!(world.send(put(&alice, "f", "mine")).await.status, StatusCode::CREATED);
    assert_eq!(std::fs::read_to_string(outside.path().join("secret")).unwrap(), "outside");
    assert!(!outside.path().join("new").exists());
    world.send(put(&alice, "dir/x", "x")).await;
    world.send(put(&alice, "dir", "x")).await.refused(409, "conflict");
    world.send(alice.call(Method::DELETE, &path(&alice, "dir"))).await.refused(409, "conflict");
}

#[tokio::test]
async fn parts_of_a_file_are_what_they_say() {
    let world = World::new().await;
    let alice = world.user("alice").await;
    let text: String = (0..2_000).map(|n| format!("{n:04} ")).collect();
    world.send(put(&alice, "f", text.clone())).await;
    let get = || alice.get(&path(&alice, "f"));
    let whole = world.send(get()).await;
    assert_eq!(whole.header("accept-ranges"), "bytes");
    let tag = whole.header("etag").to_owned();
    let table = [
        ("bytes=0-99", 206, "bytes 0-99/10000", &text[..100]),
        ("bytes=9990-", 206, "bytes 9990-9999/10000", &text[9_990..]),
        ("bytes=-5", 206, "bytes 9995-9999/10000", &text[9_995..]),
        ("bytes=0-0,5-9", 200, "", &text),
        ("bytes=5-2", 200, "", &text),
    ];
    for (range, status, content_range, expected) in table {
        let answer = world.send(get().header("range", range)).await;
        assert_eq!(answer.status.as_u16(), status, "{range}");
        assert_eq!(answer.header("content-range"), content_range, "{range}");
        assert_eq!(answer.text(), expected, "{range}");
        assert_eq!(answer.header("content-length"), expected.len().to_string());
    }
    let answer = world.send(get().header("range", "bytes=10000-")).await;
    answer.refused(416, "invalid");
    assert_eq!(answer.header("content-range"), "bytes */10000");
    let same = get().header("range", "bytes=0-0").header("if-range", &tag);
    assert_eq!(world.send(same).await.status, StatusCode::PARTIAL_CONTENT);
    for other in ["\"other\"", "W/\"x\"", "Wed, 21 Oct 2026 07:28:00 GMT"] {
        let changed = get().header("range", "bytes=0-0").header("if-range", other);
        assert_eq!(world.send(changed).await.status, StatusCode::OK, "{other}");
    }
    let known = world.send(get().header("if-none-match", &tag)).await;
    assert_eq!((known.status, known.body.len()), (StatusCode::NOT_MODIFIED, 0));
    let head = world.send(alice.call(Method::HEAD, &path(&alice, "f"))).await;
    assert_eq!((head.header("content-length"), head.body.len()), ("10000", 0));
}

#[tokio::test]
async fn a_file_that_is_cut_off_meanwhile_ends_visibly_broken() {
    use http_body_util::BodyExt as _;
    use tower::ServiceExt as _;
    let world = World::new().await;
    let alice = world.user("alice").await;
    world.send(put(&alice, "f", vec![b'x'; 500_000])).await;
    let request = http::Request::get(path(&alice, "f"))
        .header("x-wakeful-token", &alice.token)
        .body(Body::empty())
        .unwrap();
    let response = world.router.clone().oneshot(request).await.unwrap();
    let mut body = response.into_body();
    body.frame().await.unwrap().unwrap();
    let file = std::fs::File::options().write(true).open(world.workspace(&alice).join("f"));
    file.unwrap().set_len(100).unwrap();
    assert!(body.collect().await.is_err());
}

#[tokio::test]
async fn the_threads_of_an_environment_are_no_files() {
    let world = World::new().await;
    let alice = world.user("alice").await;
    let directory = world.workspace(&alice).join(".wakeful");
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("sessions.db"), "log").unwrap();
    let refused = async |call: Call| {
        let answer = world.send(call).await;
        answer.refused(400, "invalid");
        assert_eq!(answer.json()["field"], "path");
        assert!(answer.text().contains("holds the threads of this environment"), "{answer:?}");
    };
    for file in [".wakeful", ".wakeful/sessions.db", "%2ewakeful//sessions.db", "./.wakeful/x/y"] {
        refused(put(&alice, file, "x")).await;
        refused(alice.get(&path(&alice, file))).await;
        refused(alice.call(Method::DELETE, &path(&alice, file))).await;
    }
    // What an agent calls `/workspace/x` is `x` here.
    refused(alice.get(&path(&alice, "workspace/.wakeful/sessions.db"))).await;
    assert_eq!(std::fs::read_to_string(directory.join("sessions.db")).unwrap(), "log");
    let list = world.send(alice.get(&format!("/api/projects/{}/files", alice.project))).await;
    assert!(!list.text().contains(".wakeful"), "{list:?}");
}
