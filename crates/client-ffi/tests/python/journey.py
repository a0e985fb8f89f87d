"""What an application does with the client: pair, follow, work, lose the host and get it back."""

import asyncio
import json
import pathlib
import sys
import threading

import wakeful
from host import Server
from wakeful import Change, ClientError, ConnectionPhase, DataStatus

PATIENCE = 90


class Recorder(wakeful.Observer):
    """Keeps what it is told, and by which threads. Raises at every second change."""

    def __init__(self):
        self.loop, self.stirred = asyncio.get_running_loop(), asyncio.Event()
        self.told, self.threads, self.raised, self.session = [], set(), 0, None

    def changed(self, change):
        self.told.append(change)
        self.threads.add(threading.get_ident())
        if self.session is not None:
            # No lock is held over this call, so the session can be read from here.
            self.session.hosts()
        self.loop.call_soon_threadsafe(self.stirred.set)
        if len(self.told) % 2 == 0:
            self.raised += 1
            raise RuntimeError("an observer that raises")


class Application:
    """A client with its directories, and waits that end with the observer's word."""

    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        self.recorder = self.session = None

    async def start(self, **more):
        self.recorder = Recorder()
        config = wakeful.ClientConfig(
            config_dir=str(self.directory / "config"),
            cache_dir=str(self.directory / "cache"),
            label="journey",
            **more,
        )
        self.session = await wakeful.ClientSession.start(config, self.recorder)
        self.recorder.session = self.session
        return self.session

    async def until(self, what, is_so):
        """Waits until something is so, and looks again only when the observer was told."""
        stirred = self.recorder.stirred

        async def waiting():
            while True:
                stirred.clear()
                if found := is_so():
                    return found
                await stirred.wait()

        try:
            return await asyncio.wait_for(waiting(), PATIENCE)
        except asyncio.TimeoutError:
            last = self.recorder.told[-5:]
            raise AssertionError(f"waited in vain: {what}; told last: {last}") from None

    async def phase(self, host, *phases):
        def found():
            state = self.session.connection(host)
            return state if state is not None and state.phase in phases else None

        return await self.until(f"one of {phases}", found)

    async def detail(self, host, thread, what, is_so):
        def found():
            view = self.session.thread(host, thread)
            detail = json.loads(view.detail) if view and view.detail else None
            return detail if detail is not None and is_so(view, detail) else None

        return await self.until(what, found)


async def fails(kind, work):
    """Does what must fail, and returns the error."""
    try:
        result = work()
        if asyncio.iscoroutine(result):
            result = await result
    except kind as error:
        assert isinstance(error, ClientError), error
        return str(error)
    raise AssertionError(f"{kind.__name__} was expected and not {result!r}")


def items(detail, kind):
    bodies = [item["body"] for segment in detail["page"]["segments"] for item in segment["items"]]
    return [body for body in bodies if body["type"] == kind]


def shows(text):
    return lambda _view, detail: (
        any(text in body["text"] for body in items(detail, "terminal") + items(detail, "text"))
        and detail["thread"].get("turn") is None
    )


async def enters(application, server):
    """Pairs, after what does not work, and is connected."""
    session = application.session
    assert session.hosts() == []
    said = await fails(ClientError.CodeRefused, lambda: session.pair(server.address, "AAAA-AAAA"))
    assert said and "AAAA" not in said, said
    await fails(ClientError.Unreachable, lambda: session.pair("http://127.0.0.1:1", "AAAA-AAAA"))
    await fails(ClientError.Invalid, lambda: session.pair("http://a b", "AAAA-AAAA"))
    assert session.hosts() == []
    host = await session.pair(server.address, server.code, "desk host")
    assert host.name == "desk-host", host
    assert host.kind.is_PAIRED() and host.kind.addresses == [server.address], host
    assert session.hosts() == [host]
    state = await application.phase(host.id, ConnectionPhase.CONNECTED)
    assert state.generation == 1 and state.failure is None, state
    # The application came to know it by the observer alone.
    assert Change.CONNECTION(host.id) in application.recorder.told
    await application.until("agents", lambda: session.agents(host.id))
    assert "shell" in [agent.name for agent in session.agents(host.id)]
    return host.id


async def works(application, host):
    """Makes a thread and runs a command in it. A prompt of one name is taken once."""
    session = application.session
    new = wakeful.NewThread(agent="shell", title="Journey")
    thread = await session.create_thread(host, new)
    session.open_thread(host, thread)
    prompt = await session.send_prompt(host, thread, "echo one-$((40 + 2))")
    again = await session.send_prompt(host, thread, "echo one-$((40 + 2))", prompt)
    assert again == prompt
    detail = await application.detail(host, thread, "its output", shows("one-42"))
    assert [body["prompt"]["client"] for body in items(detail, "prompt")] == [prompt], detail
    row = await application.until("its row", lambda: session.thread_row(host, thread))
    assert row.title == "Journey" and row.agent == "shell", row
    listed = lambda: [row.id for row in session.threads(host).rows] == [thread]
    await application.until("its row in the list", listed)
    assert Change.THREAD(host, thread) in application.recorder.told
    await fails(ClientError.NotDone, lambda: session.answer(host, thread, thread, "allow"))
    await fails(ClientError.Invalid, lambda: session.cancel_turn(host, "no id"))
    await fails(ClientError.NoSuchHost, lambda: session.threads(thread))
    return thread


async def loses(application, server, host, thread):
    """The host is killed: the state says so, and what was read stays readable."""
    session = application.session
    server.kill()
    lost = (ConnectionPhase.BACKOFF, ConnectionPhase.CONNECTING)
    state = await application.phase(host, *lost)
    await application.until("why", lambda: session.connection(host).failure)
    assert state.generation == 1, state
    stale = lambda: session.threads(host).status in (DataStatus.CACHED, DataStatus.SYNCHRONIZING)
    await application.until("a list that is not live", stale)
    assert [row.id for row in session.threads(host).rows] == [thread]
    assert shows("one-42")(None, json.loads(session.thread(host, thread).detail))
    await fails(ClientError.NotDone, lambda: session.send_prompt(host, thread, "echo lost"))


async def regains(application, server, host, thread):
    """It starts again where it was, and the same thread goes on."""
    session = application.session
    server.run()
    session.retry(host)
    state = await application.phase(host, ConnectionPhase.CONNECTED)
    assert state.generation == 2, state
    await session.send_prompt(host, thread, "echo two-$((40 + 2))")
    detail = await application.detail(host, thread, "new output", shows("two-42"))
    assert shows("one-42")(None, detail), "what was before is still there"
    assert len(items(detail, "prompt")) == 2, "what failed without a connection was never sent"


async def is_told(application, host):
    """What a device says is taken in without harm, and a pause lasts until it is resumed."""
    session = application.session
    session.set_network(wakeful.Network.OFFLINE)
    session.set_network(wakeful.Network.ONLINE)
    session.path_changed()
    session.foreground()
    session.foreground(60_000)
    session.active(host)
    session.wake(host)
    await application.phase(host, ConnectionPhase.CONNECTED)
    await session.pause(host)
    await application.phase(host, ConnectionPhase.AVAILABLE)
    assert session.hosts()[0].paused
    await fails(ClientError.NotDone, lambda: session.retry(host))
    await session.resume(host)
    await application.phase(host, ConnectionPhase.CONNECTED)


async def is_paired_anew(application, server, host):
    """A code for a host that is known stands for a new pairing; what is cached stays."""
    session = application.session
    server.kill()
    server.run()
    before = session.threads(host).rows
    again = await session.pair(server.address, server.code)
    assert again.id == host, again
    state = await application.phase(host, ConnectionPhase.CONNECTED)
    assert state.generation == 1, "it is another connection than the one of the pairing before"
    await application.until("the rows", lambda: session.threads(host).rows == before)


async def ends(application, host, thread):
    """After the end nothing is told and everything fails, and nothing crashes."""
    session, recorder = application.session, application.recorder
    session.close_thread(host, thread)
    session.close_thread(host, thread)
    under_way = [asyncio.ensure_future(session.send_prompt(host, thread, "true")) for _ in range(8)]
    await asyncio.sleep(0)
    await session.close()
    for outcome in await asyncio.gather(*under_way, return_exceptions=True):
        assert isinstance(outcome, (str, ClientError)), repr(outcome)
    told = len(recorder.told)
    assert session.is_closed()
    await session.close()
    await fails(ClientError.Closed, lambda: session.hosts())
    await fails(ClientError.Closed, lambda: session.connection(host))
    await fails(ClientError.Closed, lambda: session.thread(host, thread))
    await fails(ClientError.Closed, lambda: session.open_thread(host, thread))
    await fails(ClientError.Closed, lambda: session.set_network(wakeful.Network.ONLINE))
    await fails(ClientError.Closed, lambda: session.send_prompt(host, thread, "true"))
    await fails(ClientError.Closed, lambda: session.pair("http://127.0.0.1:1", "AAAA-AAAA"))
    await fails(ClientError.Closed, lambda: session.remove(host))
    assert len(recorder.told) == told
    assert recorder.raised > 0
    assert len(recorder.threads) == 1, "one thread tells the observer"
    assert threading.main_thread().ident not in recorder.threads


async def remembers(application, server, host, thread):
    """A later run shows what was cached, without the host, until the host is removed."""
    server.kill()
    session = await application.start()
    assert [known.id for known in session.hosts()] == [host]
    cached = lambda: [row.id for row in session.threads(host).rows] == [thread]
    await application.until("the cached list", cached)
    assert session.threads(host).live_at is not None
    assert session.threads(host).status != DataStatus.LIVE
    session.open_thread(host, thread)
    await application.detail(host, thread, "the cached thread", shows("two-42"))
    await session.remove(host)
    assert session.hosts() == []
    await fails(ClientError.NoSuchHost, lambda: session.threads(host))
    await session.close()


async def misuses(directory):
    """What is wrong from the start is said so, no secret is shown, and one may just let go."""
    wrong = wakeful.ClientConfig(config_dir=str(directory), label=" ")
    await fails(ClientError.Invalid, lambda: wakeful.ClientSession.start(wrong, None))
    token = wakeful.Secret("s3cr3t")
    account = wakeful.ServerAccount(server="nowhere", user="ada", token=token)
    config = wakeful.ClientConfig(config_dir=str(directory), label="x", accounts=[account])
    assert "s3cr3t" not in f"{config} {config!r}"
    said = await fails(ClientError.Invalid, lambda: wakeful.ClientSession.start(config, None))
    assert "s3cr3t" not in said, said
    plain = wakeful.ClientConfig(config_dir=str(directory), label="x")
    for observer in (None, Recorder(), None):
        session = await wakeful.ClientSession.start(plain, observer)
        del session


async def closes_from_its_observer(directory):
    """An observer that closes its own session neither waits for itself nor is told any more."""

    class Closing(wakeful.Observer):
        def __init__(self):
            self.session, self.told, self.closed = None, 0, threading.Event()

        def changed(self, change):
            if self.session is not None:
                self.told += 1
                asyncio.run(self.session.close())
                self.closed.set()

    closing = Closing()
    config = wakeful.ClientConfig(config_dir=str(directory), label="x")
    session = await wakeful.ClientSession.start(config, closing)
    closing.session = session
    session.set_network(wakeful.Network.OFFLINE)
    closed = await asyncio.get_running_loop().run_in_executor(None, closing.closed.wait, PATIENCE)
    assert closed and session.is_closed()
    assert closing.told == 1, closing.told


async def leaves_nothing():
    """No thread of a client outlives it. None may call an interpreter that ends, either."""

    def left():
        tasks = pathlib.Path("/proc/self/task").glob("*/comm")
        return [name for task in tasks if (name := text_of(task)).startswith("wakeful-")]

    async def waiting():
        while left():
            await asyncio.sleep(0.01)

    await asyncio.wait_for(waiting(), PATIENCE)


def text_of(file):
    try:
        return file.read_text()
    except OSError:
        return ""  # It has ended meanwhile.


async def main(program, directory):
    directory = pathlib.Path(directory)
    server = Server(program, directory / "host")
    try:
        application = Application(directory / "application")
        await application.start()
        host = await enters(application, server)
        thread = await works(application, host)
        await loses(application, server, host, thread)
        await regains(application, server, host, thread)
        await is_told(application, host)
        await is_paired_anew(application, server, host)
        await ends(application, host, thread)
        await remembers(application, server, host, thread)
        await misuses(directory / "misuse")
        await closes_from_its_observer(directory / "closing")
        await leaves_nothing()
    finally:
        server.kill()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
