//! Files against a real directory with whatever a sandbox may have planted there.

use std::{io::Read as _, os::unix::fs::symlink, path::PathBuf};

use super::*;

struct Workspace {
    dir: tempfile::TempDir,
    outside: tempfile::TempDir,
    files: Files,
}

impl Workspace {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("secret"), "outside").unwrap();
        let files = Files::open(dir.path().to_owned()).await.unwrap();
        Self { dir, outside, files }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    async fn put(&self, to: &str, bytes: &[u8]) -> Result<u64, FileError> {
        let mut incoming = self.files.write(path(to)).await?;
        incoming.write(bytes).await?;
        incoming.finish().await
    }

    async fn get(&self, from: &str) -> Result<String, FileError> {
        match self.files.read(path(from)).await? {
            Found::File(mut open) => {
                let mut text = String::new();
                open.file.read_to_string(&mut text).unwrap();
                assert_eq!(open.size, text.len() as u64);
                Ok(text)
            }
            Found::Directory(_) => Err(FileError::IsDirectory),
        }
    }

    async fn names(&self, of: RelativePath) -> Vec<String> {
        match self.files.read(of).await.unwrap() {
            Found::Directory(listing) => listing.entries.into_iter().map(|e| e.name).collect(),
            Found::File(_) => panic!("a file"),
        }
    }
}

fn path(text: &str) -> RelativePath {
    RelativePath::parse(text).unwrap()
}

#[tokio::test]
async fn a_file_is_written_read_listed_and_removed() {
    let it = Workspace::new().await;
    assert_eq!(it.put("a/b/c.txt", b"hello").await.unwrap(), 5);
    assert_eq!(it.get("a/b/c.txt").await.unwrap(), "hello");
    it.put("empty", b"").await.unwrap();
    assert_eq!(it.get("empty").await.unwrap(), "");
    assert_eq!(it.names(RelativePath::root()).await, ["a", "empty"]);
    assert!(matches!(it.files.remove(path("a")).await, Err(FileError::NotEmpty)));
    it.files.remove(path("a/b/c.txt")).await.unwrap();
    it.files.remove(path("a/b")).await.unwrap();
    assert!(matches!(it.files.remove(path("a/b")).await, Err(FileError::NotFound)));
}

#[tokio::test]
async fn until_it_is_whole_a_new_file_is_not_seen() {
    let it = Workspace::new().await;
    it.put("notes.txt", b"old").await.unwrap();
    let mut incoming = it.files.write(path("notes.txt")).await.unwrap();
    incoming.write(b"half of the n").await.unwrap();
    assert_eq!(it.get("notes.txt").await.unwrap(), "old");
    assert_eq!(it.names(RelativePath::root()).await, ["notes.txt"]);
    drop(incoming);
    assert_eq!(it.get("notes.txt").await.unwrap(), "old");
    let left = std::fs::read_dir(it.dir.path()).unwrap().count();
    assert_eq!(left, 1, "nothing is left of what was given up");
}

#[tokio::test]
async fn of_two_writers_one_whole_file_wins() {
    let it = Workspace::new().await;
    let big_a = vec![b'a'; 300_000];
    let big_b = vec![b'b'; 300_000];
    let (a, b) = tokio::join!(it.put("f", &big_a), it.put("f", &big_b));
    assert!(a.is_ok() && b.is_ok());
    let text = it.get("f").await.unwrap();
    assert!(text.as_bytes() == big_a || text.as_bytes() == big_b);
    assert_eq!(std::fs::read_dir(it.dir.path()).unwrap().count(), 1);
}

#[tokio::test]
async fn writing_replaces_a_link_and_not_what_it_leads_to() {
    let it = Workspace::new().await;
    let target = it.outside.path().join("secret");
    symlink(&target, it.at("f")).unwrap();
    it.put("f", b"mine").await.unwrap();
    assert_eq!(std::fs::read_to_string(&target).unwrap(), "outside");
    assert!(std::fs::symlink_metadata(it.at("f")).unwrap().is_file());
}

#[tokio::test]
async fn no_planted_link_leads_a_read_write_or_removal_outside() {
    let it = Workspace::new().await;
    symlink(it.outside.path(), it.at("d")).unwrap();
    symlink("../../../../../../../../etc", it.at("up")).unwrap();
    symlink("/proc/self/environ", it.at("environ")).unwrap();
    symlink("loop", it.at("loop")).unwrap();
    for outside in ["d/secret", "up/passwd", "environ", "loop"] {
        assert!(it.get(outside).await.is_err(), "{outside}");
    }
    assert!(matches!(it.put("d/new", b"x").await, Err(FileError::NotDirectory)));
    assert!(it.files.remove(path("d/secret")).await.is_err());
    assert!(it.outside.path().join("secret").exists());
    assert!(!it.outside.path().join("new").exists());
    // The link itself is the workspace's own.
    it.files.remove(path("d")).await.unwrap();
    assert!(it.outside.path().join("secret").exists());
}

#[tokio::test]
async fn links_that_stay_inside_are_read_and_shown_as_links() {
    let it = Workspace::new().await;
    it.put("real/f", b"inside").await.unwrap();
    symlink("real/f", it.at("link")).unwrap();
    assert_eq!(it.get("link").await.unwrap(), "inside");
    let Found::Directory(listing) = it.files.read(RelativePath::root()).await.unwrap() else {
        panic!("a file")
    };
    let link = listing.entries.iter().find(|entry| entry.name == "link").unwrap();
    assert_eq!(link.kind, EntryKind::Link);
}

#[tokio::test]
async fn a_directory_that_is_swapped_for_a_link_is_never_written_through() {
    let it = Workspace::new().await;
    std::fs::create_dir(it.at("d")).unwrap();
    symlink(it.outside.path(), it.at("evil")).unwrap();
    let (real, evil) = (it.at("d"), it.at("evil"));
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let swapper = std::thread::spawn(move || {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        while !stopped.load(std::sync::atomic::Ordering::Relaxed) {
            renameat_with(CWD, &real, CWD, &evil, RenameFlags::EXCHANGE).unwrap();
        }
    });
    for _ in 0..300 {
        // It may fail whenever the link stands there; it must not go through it.
        let _ = it.put("d/new", b"x").await;
        let _ = it.files.remove(path("d/secret")).await;
        assert!(it.get("d/secret").await.is_err());
        let _ = it.files.remove(path("d/new")).await;
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    swapper.join().unwrap();
    assert!(!it.outside.path().join("new").exists());
    assert!(it.outside.path().join("secret").exists());
}

#[tokio::test]
async fn pipes_and_devices_are_neither_waited_for_nor_read() {
    let it = Workspace::new().await;
    let mode = Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, it.at("pipe"), FileType::Fifo, mode, 0).unwrap();
    assert!(matches!(it.get("pipe").await, Err(FileError::NotFound)));
    it.put("pipe", b"a file now").await.unwrap();
    assert_eq!(it.get("pipe").await.unwrap(), "a file now");
}

#[tokio::test]
async fn a_directory_is_not_overwritten_and_a_file_is_no_directory() {
    let it = Workspace::new().await;
    it.put("d/f", b"x").await.unwrap();
    assert!(matches!(it.put("d", b"x").await, Err(FileError::IsDirectory)));
    assert!(matches!(it.put("d/f/g", b"x").await, Err(FileError::NotDirectory)));
    assert!(matches!(it.get("d/f/g").await, Err(FileError::NotDirectory)));
    assert_eq!(it.get("d/f").await.unwrap(), "x");
}

#[tokio::test]
async fn a_replaced_script_stays_executable_and_never_becomes_set_uid() {
    use std::os::unix::fs::PermissionsExt as _;
    let it = Workspace::new().await;
    it.put("run.sh", b"one").await.unwrap();
    let permissions = std::fs::Permissions::from_mode(0o4_755);
    std::fs::set_permissions(it.at("run.sh"), permissions).unwrap();
    it.put("run.sh", b"two").await.unwrap();
    let mode = std::fs::metadata(it.at("run.sh")).unwrap().permissions().mode();
    assert_eq!(mode & 0o7_100, 0o100);
}

#[tokio::test]
async fn a_changed_file_has_another_version() {
    let it = Workspace::new().await;
    let version = async |it: &Workspace| match it.files.read(path("f")).await.unwrap() {
        Found::File(open) => open.version,
        Found::Directory(_) => panic!("a directory"),
    };
    it.put("f", b"one").await.unwrap();
    let first = version(&it).await;
    assert_eq!(version(&it).await, first);
    it.put("f", b"two").await.unwrap();
    assert_ne!(version(&it).await, first);
}

#[tokio::test]
async fn the_environment_servers_directory_is_out_of_reach() {
    let it = Workspace::new().await;
    std::fs::create_dir(it.at(".wakeful")).unwrap();
    std::fs::write(it.at(".wakeful/threads.db"), "log").unwrap();
    std::fs::create_dir(it.at("sub")).unwrap();
    symlink(".wakeful/threads.db", it.at("file")).unwrap();
    symlink("../.wakeful", it.at("sub/dir")).unwrap();
    symlink(".", it.at("top")).unwrap();
    let reserved = |refused: Result<_, FileError>| matches!(refused, Err(FileError::Reserved));
    for spelling in [".wakeful", "./.wakeful", ".wakeful/threads.db", ".//.wakeful/./new/deep"] {
        assert!(reserved(it.get(spelling).await.map(drop)), "{spelling}");
        assert!(reserved(it.put(spelling, b"x").await.map(drop)), "{spelling}");
        assert!(reserved(it.files.remove(path(spelling)).await), "{spelling}");
    }
    for link in
        ["file", "sub/dir", "sub/dir/threads.db", "top/.wakeful", "top/top/.wakeful/threads.db"]
    {
        assert!(reserved(it.get(link).await.map(drop)), "{link}");
    }
    assert_eq!(std::fs::read_to_string(it.at(".wakeful/threads.db")).unwrap(), "log");
    assert_eq!(std::fs::read_dir(it.at(".wakeful")).unwrap().count(), 1);
    assert_eq!(it.names(RelativePath::root()).await, ["file", "sub", "top"]);
    assert_eq!(it.names(path("top")).await, ["file", "sub", "top"]);
    // Elsewhere the name means nothing.
    it.put("sub/.wakeful/x", b"mine").await.unwrap();
    assert_eq!(it.get("sub/.wakeful/x").await.unwrap(), "mine");
    assert_eq!(it.names(path("sub")).await, [".wakeful", "dir"]);
    // A link of that name's is only a link.
    it.files.remove(path("file")).await.unwrap();
}
