"""A real host on this machine, started and ended by the journey."""

import os
import pathlib
import subprocess
import threading


class Server:
    """`wakeful envd` in a directory of its own, which outlives it."""

    def __init__(self, program, directory):
        self.program, self.directory = program, pathlib.Path(directory)
        self.directory.mkdir()
        (self.directory / "w").mkdir()
        self.listen, self.code, self.process = "127.0.0.1:0", None, None
        self.run()

    @property
    def address(self):
        return f"http://{self.listen}"

    def run(self):
        """Starts it, again where it was."""
        command = [self.program, "envd", "--label", "Lab", "--listen", self.listen]
        command += ["--workspace", self.directory / "w", "--state", self.directory / "s"]
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.directory)}
        self.process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        said = []
        for line in self.process.stderr:
            said.append(line)
            words = line.split()
            if words[:2] == ["wakeful", "pair"]:
                self.listen, self.code = words[2].removeprefix("http://"), words[3]
                break
        else:
            raise AssertionError(f"the host ended: {said}")
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def kill(self):
        """Ends it at once."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None
