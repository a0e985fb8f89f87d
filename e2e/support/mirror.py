"""Serves the files of the workspace, and says at /headers which headers came."""

import http.server
import json
import os


class Mirror(http.server.SimpleHTTPRequestHandler):
    """The files of the working directory, beside the mirror."""

    def do_GET(self):
        if self.path != "/headers":
            super().do_GET()
            return
        body = json.dumps(dict(self.headers.items())).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Mirror).serve_forever()
