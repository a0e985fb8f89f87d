//! An environment server in front of a scripted upstream: it answers dials at a control socket,
//! and passes one end of a pair of Unix sockets whose other end leads to the upstream.

use std::{
    io::IoSlice,
    mem::MaybeUninit,
    net::SocketAddr,
    os::fd::AsFd,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
};

use parking_lot::Mutex;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    net::{TcpStream, UnixListener, UnixStream},
    task::AbortHandle,
};
use wakeful_wire::{
    SurfaceName,
    gate::Upstream,
    sandbox::{Ask, AskKind, Reply},
};

use super::raw::Raw;

const SECRET: &str = "s3cret";
/// The pair that programs of this environment are given.
pub(crate) const BASIC: &str = "user:password";

pub(crate) struct Envd {
    dir: tempfile::TempDir,
    dials: Arc<AtomicUsize>,
    tasks: Arc<Mutex<Vec<AbortHandle>>>,
}

impl Envd {
    /// Serves the surface `host` by what `raw` does.
    pub(crate) fn before(raw: &Raw) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(dir.path().join("envd.sock")).unwrap();
        let dials = Arc::<AtomicUsize>::default();
        let tasks = Arc::<Mutex<Vec<AbortHandle>>>::default();
        let address = raw.address;
        let accepting = tokio::spawn({
            let (dials, tasks) = (Arc::clone(&dials), Arc::clone(&tasks));
            async move {
                while let Ok((control, _)) = listener.accept().await {
                    dials.fetch_add(1, SeqCst);
                    let task = tokio::spawn(answer(control, address));
                    tasks.lock().push(task.abort_handle());
                }
            }
        });
        tasks.lock().push(accepting.abort_handle());
        Self { dir, dials, tasks }
    }

    pub(crate) fn upstream(&self) -> Upstream {
        Upstream::Broker {
            socket: self.dir.path().join("envd.sock"),
            secret: SECRET.to_owned(),
            authority: "127.0.0.1:4711".to_owned(),
            basic: Some(BASIC.to_owned()),
        }
    }

    /// How often it was dialled.
    pub(crate) fn dials(&self) -> usize {
        self.dials.load(SeqCst)
    }

    /// Ends at once, with every connection, and says nothing.
    pub(crate) fn kill(&self) {
        self.tasks.lock().drain(..).for_each(|task| task.abort());
    }
}

impl Drop for Envd {
    fn drop(&mut self) {
        self.kill();
    }
}

async fn answer(mut control: UnixStream, address: SocketAddr) {
    let mut line = String::new();
    BufReader::new(&mut control).read_line(&mut line).await.unwrap();
    let ask: Ask = serde_json::from_str(&line).unwrap();
    assert_eq!(ask.secret, SECRET);
    assert_eq!(ask.ask, AskKind::Dial { surface: SurfaceName::host() });
    let (passed, mut kept) = UnixStream::pair().unwrap();
    let mut reply = serde_json::to_vec(&Reply::Done).unwrap();
    reply.push(b'\n');
    {
        let descriptors = [passed.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        assert!(ancillary.push(SendAncillaryMessage::ScmRights(&descriptors)));
        let parts = [IoSlice::new(&reply)];
        rustix::net::sendmsg(&control, &parts, &mut ancillary, SendFlags::empty()).unwrap();
    }
    drop((passed, control));
    let mut upstream = TcpStream::connect(address).await.unwrap();
    upstream.set_nodelay(true).unwrap();
    let _ = tokio::io::copy_bidirectional(&mut kept, &mut upstream).await;
}
