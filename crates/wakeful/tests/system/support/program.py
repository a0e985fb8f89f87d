"""The program behind the gateway in these tests: it does what a request tells it to.

Started in a workspace with $PORT set. Whoever waits here waits for a file of the workspace, so that
a test decides when it goes on.
"""

import asyncio
import base64
import hashlib
import os
import signal
import subprocess
from pathlib import Path

ACCEPT = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
hits = 0


async def file(name):
    while not Path(name).exists():
        await asyncio.sleep(0.01)


def head(status, fields=()):
    lines = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in fields)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def plain(text, status="200 OK"):
    body = text if isinstance(text, bytes) else str(text).encode()
    fields = [("Content-Type", "text/plain"), ("Content-Length", len(body))]
    return head(status, fields) + body


def chunk(data):
    return b"%x\r\n%s\r\n" % (len(data), data)


async def events(writer, last):
    """An event stream: `open` at once, `end` when the file `last` is there; for ever without."""
    fields = [("Content-Type", "text/event-stream"), ("Transfer-Encoding", "chunked")]
    writer.write(head("200 OK", fields) + chunk(b"data: open\n\n"))
    await writer.drain()
    await file(last or "there-is-no-such-file")
    writer.write(chunk(b"data: end\n\n") + chunk(b""))
    await writer.drain()


async def frames(reader, writer, headers):
    """A WebSocket that echoes each frame; a close frame too, and then ends."""
    accept = base64.b64encode(hashlib.sha1(headers["sec-websocket-key"].encode() + ACCEPT).digest())
    fields = [("Connection", "Upgrade"), ("Upgrade", "websocket")]
    fields.append(("Sec-WebSocket-Accept", accept.decode()))
    writer.write(head("101 Switching Protocols", fields))
    while True:
        first, second = await reader.readexactly(2)
        length = second & 0x7F
        if length == 126:
            length = int.from_bytes(await reader.readexactly(2), "big")
        mask = await reader.readexactly(4)
        masked = await reader.readexactly(length)
        data = bytes(byte ^ mask[at % 4] for at, byte in enumerate(masked))
        size = bytes([length]) if length < 126 else b"\x7e" + length.to_bytes(2, "big")
        writer.write(bytes([first]) + size + data)
        await writer.drain()
        if first & 0x0F == 8:
            return


def daemonise():
    """Leaves a grandchild behind that nobody waits for, in a session of its own and without any
    variable that marks it."""
    script = "env -i setsid sleep 1000 >/dev/null 2>&1 & echo $!"
    return subprocess.run(["sh", "-c", script], stdout=subprocess.PIPE, check=True).stdout


async def answer(method, path, headers, body, reader, writer):
    """Answers one request. Whether the connection can take another one."""
    global hits
    verb, _, rest = path.split("?")[0].lstrip("/").partition("/")
    if verb == "ready":
        writer.write(plain("ready"))
    elif verb == "hit":
        hits += 1
        writer.write(plain(f"{os.getpid()} {hits}"))
    elif verb == "pid":
        writer.write(plain(os.getpid()))
    elif verb == "variable":
        writer.write(plain(os.environ.get(rest, "")))
    elif verb == "seen":
        writer.write(plain("".join(f"{name}: {value}\n" for name, value in headers.items())))
    elif verb == "file" and method == "PUT":
        Path(rest).write_bytes(body)
        writer.write(plain("stored", "201 Created"))
    elif verb == "file":
        found = Path(rest).is_file()
        status = "200 OK" if found else "404 Not Found"
        writer.write(plain(Path(rest).read_bytes() if found else "no such file", status))
    elif verb == "hold":
        Path(f"{rest}.begun").touch()
        await file(rest)
        writer.write(plain("released"))
    elif verb == "events":
        await events(writer, rest)
    elif verb == "socket":
        await frames(reader, writer, headers)
        return False
    elif verb == "daemonise":
        writer.write(plain(daemonise()))
    elif verb == "half":
        writer.write(head("200 OK", [("Content-Length", "1000")]) + b"0123456789")
        await writer.drain()
        os._exit(9)
    elif verb == "die":
        os._exit(9)
    else:
        writer.write(plain(f"{method} {path}"))
    await writer.drain()
    return True


async def serve(reader, writer):
    try:
        while True:
            lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            method, path, _ = lines[0].split(" ")
            pairs = (line.partition(":") for line in lines[1:] if line)
            headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            if not await answer(method, path, headers, body, reader, writer):
                break
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def main():
    if os.environ.get("IGNORE_TERM"):
        told = Path("told-to-end").touch
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, told)
    print("the program has begun", flush=True)
    if gate := os.environ.get("START_GATE"):
        await file(gate)
    port = int(os.environ["PORT"])
    server = await asyncio.start_server(serve, "127.0.0.1", port, backlog=1024)
    await server.serve_forever()


asyncio.run(main())
