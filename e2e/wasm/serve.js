// The page's own origin.

import { createReadStream } from "node:fs";
import { createServer } from "node:http";
import { fileURLToPath } from "node:url";

/** Serves the page, its script and the module on a port of its own, until the end. */
export async function serve(ends, module) {
  const files = {
    "/page.js": [fileURLToPath(new URL("page.js", import.meta.url)), "text/javascript"],
    "/tests.wasm": [module, "application/wasm"],
  };
  const server = createServer((request, response) => {
    const [file, type] = files[request.url] ?? [];
    if (file !== undefined) {
      response.writeHead(200, { "content-type": type });
      createReadStream(file).pipe(response);
    } else if (request.url === "/") {
      response.writeHead(200, { "content-type": "text/html" });
      response.end("<!doctype html><title>Tests</title>");
    } else {
      response.writeHead(404).end();
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  ends.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${server.address().port}`;
}
