"""An agent that speaks ACP and behaves as badly as it is told to.

The prompt is a JSON list of steps, played in order. Started with words: `noise` writes lines that
are no messages before anything else, `mute` answers nothing, `dies` ends at once, `load` and
`resume` say that it can take up sessions again, `lost` has forgotten every session, `deaf` ignores
cancels, `liar` calls a cancelled turn done, `stays` goes on when its input closes, `early` speaks
before its session has a name.
"""

import json
import os
import subprocess
import sys
import threading
import time

words = sys.argv[1:]
out_lock = threading.Lock()
cancelled = threading.Event()
answers, answered = {}, threading.Condition()
serial = [0]
sessions = os.path.join(os.environ.get("HOME", "/tmp"), "fake-sessions")


def line(text):
    with out_lock:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()


def send(**message):
    line(json.dumps({"jsonrpc": "2.0", **message}))


def update(session, **body):
    send(method="session/update", params={"sessionId": session, "update": body})


def text(session, words, **more):
    update(session, sessionUpdate="agent_message_chunk", content={"type": "text", "text": words}, **more)


def ask(method, **params):
    serial[0] += 1
    number = f"q{serial[0]}"
    send(id=number, method=method, params=params)
    with answered:
        answered.wait_for(lambda: number in answers or cancelled.is_set())
        return answers.get(number, {})


def play(session, steps):
    """Plays the steps; a step with `stop` or `error` ends the turn with it."""
    for step in steps:
        if cancelled.is_set() and "deaf" not in words:
            return {"result": {"stopReason": "end_turn" if "liar" in words else "cancelled"}}
        if "say" in step:
            text(session, step["say"], **({"messageId": step["id"]} if "id" in step else {}))
        if "think" in step:
            update(session, sessionUpdate="agent_thought_chunk", content={"type": "text", "text": step["think"]})
        if "raw" in step:
            line(step["raw"])
        if "grumble" in step:
            sys.stderr.write(("x" * 99 + "\n") * (step["grumble"] // 100))
            sys.stderr.flush()
        if "flood" in step:
            for _ in range(step["flood"]):
                text(session, "x" * 1000)
        if "huge" in step:
            text(session, "x" * step["huge"])
        if "update" in step:
            update(session, **step["update"])
        if "spawn" in step:
            child = subprocess.Popen(
                ["setsid", "sh", "-c", step["spawn"]],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )
            text(session, f"pid {child.pid}")
        if "ask" in step:
            got = ask("session/request_permission", sessionId=session, toolCall=step["ask"], options=step.get("options", [
                {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
                {"optionId": "ever", "name": "Always", "kind": "allow_always"},
                {"optionId": "no", "name": "No", "kind": "reject_once"},
            ]))
            outcome = got.get("result", {}).get("outcome", {})
            text(session, f"answer {outcome.get('optionId', outcome.get('outcome', 'none'))}")
        if "ask_and_go_on" in step:
            send(id="forgotten", method="session/request_permission",
                 params={"sessionId": session, "toolCall": step["ask_and_go_on"],
                         "options": [{"optionId": "yes", "name": "Yes", "kind": "allow_once"}]})
        if "call" in step:
            got = ask(step["call"], sessionId=session, **step.get("with", {}))
            text(session, json.dumps(got.get("result", got.get("error"))))
        if "hang" in step:
            while not (cancelled.is_set() and "deaf" not in words):
                time.sleep(0.01)
        if "die" in step:
            os._exit(step["die"])
        if "close" in step:
            os.close(1)
            while True:
                time.sleep(1)
        if "later" in step:
            threading.Thread(target=later, args=(session, step["later"]), daemon=True).start()
        if "stop" in step:
            return {"result": {"stopReason": step["stop"], "usage": {"inputTokens": 7, "outputTokens": 2, "totalTokens": 9}}}
        if "error" in step:
            return {"error": step["error"]}
    return {"result": {"stopReason": "end_turn"}}


def later(session, steps):
    """Plays steps after the turn has been answered."""
    turn_over.wait()
    play(session, steps)


turn_over = threading.Event()


def prompt(number, params):
    cancelled.clear()
    turn_over.clear()
    session = params["sessionId"]
    said = "".join(part.get("text", "") for part in params["prompt"])
    steps = json.loads(said)
    for step in steps:
        # The answer and what is around it in one write, so that nobody can put them apart by chance.
        if "around" in step:
            first, last = step["around"]
            chunk = lambda words: json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": {
                "sessionId": session, "update": {"sessionUpdate": "agent_message_chunk",
                                                 "content": {"type": "text", "text": words}}}})
            answer = json.dumps({"jsonrpc": "2.0", "id": number, "result": {"stopReason": "end_turn"}})
            line("\n".join([chunk(first), answer, chunk(last)]))
            return
    send(id=number, **play(session, steps))
    turn_over.set()


def known(session):
    try:
        with open(sessions) as held:
            return session in held.read().split()
    except OSError:
        return False


def handle(message):
    number, method, params = message.get("id"), message.get("method"), message.get("params", {})
    if method is None:
        with answered:
            answers[number] = message
            answered.notify_all()
    elif method == "initialize":
        capabilities = {"loadSession": "load" in words, "sessionCapabilities": {}}
        if "resume" in words:
            capabilities["sessionCapabilities"]["resume"] = {}
        send(id=number, result={"protocolVersion": 1, "agentCapabilities": capabilities})
    elif method == "session/new":
        session = f"s-{os.getpid()}"
        with open(sessions, "a") as held:
            held.write(session + "\n")
        if "early" in words:
            text(session, "early words")
        send(id=number, result={"sessionId": session, "modes": {"currentModeId": "build", "availableModes": [
            {"id": "build", "name": "Build"}, {"id": "plan", "name": "Plan"}]}})
    elif method in ("session/load", "session/resume"):
        if "lost" in words or not known(params["sessionId"]):
            send(id=number, error={"code": -32603, "message": "no such session"})
            return
        if method == "session/load":
            text(params["sessionId"], "what was said before")
        send(id=number, result={})
    elif method == "session/prompt":
        threading.Thread(target=prompt, args=(number, params), daemon=True).start()
    elif method == "session/cancel":
        cancelled.set()
        with answered:
            answered.notify_all()
    elif method == "session/set_mode":
        if params["modeId"] == "none":
            send(id=number, error={"code": -32602, "message": "no such mode"})
        else:
            send(id=number, result={})
    else:
        send(id=number, error={"code": -32601, "message": "no such method"})


if "dies" in words:
    sys.stderr.write("the configuration is broken\n")
    sys.exit(3)
if "noise" in words:
    for noise in ["Welcome!", "", "[1, 2]", '{"level": "info"}', "\x1b[31mred\x1b[0m", '{"jsonrpc": "2.0", "id": 999, "result": {}}']:
        line(noise)
for received in sys.stdin:
    if "noise" in words:
        line("received: " + received.strip())
    if "mute" not in words:
        handle(json.loads(received))
while "stays" in words:
    time.sleep(1)
