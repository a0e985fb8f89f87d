"""An OpenAI-compatible model server whose answers are written in the prompt.

The newest user message that holds SCRIPT[…] carries a JSON list of steps, and the step to play is the
number of assistant messages after it: so the server needs no memory, and a restart changes nothing.
A step has `say` (text), `tool` with `args` (a tool call), `hang_s` (silence after the text). Requests
without tools are for a title. It prints `READY http://127.0.0.1:PORT/v1` and ends with its input.
"""

import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def content(message):
    held = message.get("content") or ""
    return held if isinstance(held, str) else "\n".join(part.get("text", "") for part in held)


def step_of(request):
    if not request.get("tools"):
        return {"say": "A title"}
    messages = request.get("messages", [])
    for place in reversed(range(len(messages))):
        held = content(messages[place])
        if messages[place].get("role") == "user" and "SCRIPT[" in held:
            steps, _ = json.JSONDecoder().raw_decode(held[held.index("SCRIPT[") + 6 :])
            played = sum(1 for message in messages[place:] if message.get("role") == "assistant")
            return steps[played] if played < len(steps) else {"say": "The script is over."}
    return {"say": "There is no script."}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, value):
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.answer({"object": "list", "data": [{"id": "m1", "object": "model"}]})

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        step = step_of(request)
        head = {"id": "scripted", "created": int(time.time()), "model": request.get("model")}
        usage = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
        calls = []
        if "tool" in step:
            named = {"name": step["tool"], "arguments": json.dumps(step.get("args", {}))}
            serial = sum(1 for message in request["messages"] if message.get("role") == "assistant")
            calls = [{"index": 0, "id": f"call_{serial}", "type": "function", "function": named}]
        reason = "tool_calls" if calls else "stop"
        if not request.get("stream"):
            message = {"role": "assistant", "content": step.get("say"), **({"tool_calls": calls} if calls else {})}
            choice = {"index": 0, "message": message, "finish_reason": reason}
            return self.answer({**head, "object": "chat.completion", "usage": usage, "choices": [choice]})
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True

        def chunk(delta, finish=None, **more):
            choice = {"index": 0, "delta": delta, "finish_reason": finish}
            event = {**head, "object": "chat.completion.chunk", "choices": [choice], **more}
            self.wfile.write(b"data: " + json.dumps(event).encode() + b"\n\n")

        try:
            chunk({"role": "assistant", "content": ""})
            said = step.get("say", "")
            for place in range(0, len(said), 12):
                chunk({"content": said[place : place + 12]})
            if calls:
                chunk({"tool_calls": calls})
            until = time.time() + step.get("hang_s", 0)
            while time.time() < until:
                time.sleep(0.2)
                self.wfile.write(b": waiting\n\n")
            chunk({}, reason, usage=usage)
            self.wfile.write(b"data: [DONE]\n\n")
        except (BrokenPipeError, ConnectionResetError):
            pass


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        pass


server = Server(("127.0.0.1", 0), Handler)
print(f"READY http://127.0.0.1:{server.server_address[1]}/v1", flush=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.stdin.read()
