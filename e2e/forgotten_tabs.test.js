// Tabs that are left open: what their pages ask for by themselves does not wake an environment, and
// a page load does.

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import test from "node:test";

import { Person, appears, launch } from "./support/browser.js";
import { TOOLS, required } from "./support/place.js";
import { Platform } from "./support/platform.js";
import { PATIENCE, until } from "./support/waiting.js";

/** Keeps what a window asked a surface for, and what it was answered. */
class Asked {
  #answers = [];

  constructor(page, origin) {
    page.on("response", (response) => {
      const url = new URL(response.url());
      if (url.origin === origin && !url.pathname.startsWith("/.wakeful/")) {
        const method = response.request().method();
        this.#answers.push({ method, path: url.pathname, status: response.status(), response });
      }
    });
  }

  /** The answers, or those of one path. */
  all(pathname) {
    return this.#answers.filter((answer) => pathname === undefined || answer.path === pathname);
  }

  /** How often the tab tried in vain at a path, because the environment sleeps. */
  tried(pathname) {
    return this.all(pathname).filter(({ status }) => status === 503).length;
  }

  toString() {
    return this.#answers.map(({ method, path, status }) => `${status} ${method} ${path}`).join("\n");
  }
}

/** Looks, until the tab has tried often enough, whether the environment sleeps on. */
async function sleepsOn(person, asked, hasTriedEnough) {
  const { platform } = person;
  const starts = await platform.metric("wakeful_sandbox_starts_total");
  const { generation } = await person.environment();
  await until(
    "the tab has tried often enough",
    async () => {
      const { phase } = await person.environment();
      assert.equal(phase, "suspended", `the tab woke it:\n${asked}`);
      return hasTriedEnough();
    },
    120_000,
  );
  assert.equal(await platform.metric("wakeful_sandbox_starts_total"), starts);
  assert.equal((await person.environment()).generation, generation, "nothing happened to it");
  return starts;
}

test("the demo's forgotten tab does not wake it and a page load does", { timeout: 240_000 }, async (t) => {
  const browser = await launch(t);
  const platform = await Platform.up(t);
  const ada = await Person.arrive(browser, platform);
  const page = await ada.window();
  await ada.signUpToApp(page, "ada");
  const asked = new Asked(page, ada.app);
  await page.getByText("connected", { exact: true }).waitFor();

  await ada.order("suspend", "suspended");
  await page.getByText("not connected").waitFor();
  const starts = await sleepsOn(ada, asked, () => asked.tried("/events") >= 4);

  await page.reload();
  await appears(page);
  await page.getByText("connected", { exact: true }).waitFor();
  await ada.reaches("ready");
  assert.equal(await platform.metric("wakeful_sandbox_starts_total"), starts + 1);
  ada.isUntroubled();
});

test("OpenCode's page works on its host, and its forgotten tab does not wake it", { timeout: 400_000 }, async (t) => {
  required(path.join(TOOLS, "bin/opencode"), "OpenCode");
  const browser = await launch(t);
  const platform = await Platform.up(t, { template: "opencode" });
  const ada = await Person.arrive(browser, platform, { viewport: { width: 1300, height: 850 } });
  const page = await ada.window();
  await ada.signUp(page, "ada");
  const host = platform.surface(ada.env, "agent");
  // The waking page goes on to OpenCode's own.
  await page.getByText("Add project").waitFor();
  assert.equal(page.url(), `${host}/`);
  assert.equal(await page.title(), "OpenCode");

  // A session that a program makes by the path route is shown by the page on the host.
  const made = await ada.ask("POST", `/api/proxy/${ada.env}/session`, {});
  assert.equal(made.status, 200, made.text);
  const asked = new Asked(page, host);
  // Until then there is much to load.
  const socket = page.waitForEvent("websocket", { timeout: 3 * PATIENCE });
  await page.goto(`${host}/server/${Buffer.from(host).toString("base64url")}/session/${made.json.id}`);
  await page.getByText("Ask anything").waitFor();
  await until("its event stream is open", () => asked.all("/global/event").length > 0);
  const [stream] = asked.all("/global/event");
  assert.equal(stream.status, 200);
  assert.match(stream.response.headers()["content-type"], /^text\/event-stream/);

  // Its terminal is a WebSocket. The key that opens it also closes it, so it is pressed once more
  // only if nothing came of it.
  await page.keyboard.press("Control+Backquote");
  await until("a terminal is asked for", () => asked.all("/pty").length > 0, 15_000).catch(() =>
    page.keyboard.press("Control+Backquote"),
  );
  const terminal = await socket;
  assert.match(terminal.url(), /\/pty\/[^/]+\/connect\?/);
  let shown = "";
  terminal.on("framereceived", ({ payload }) => {
    shown += payload.toString();
  });
  await until("the shell asks for a command", () => /[#$] /.test(shown));
  const written = path.join(platform.workspace(ada.env), "typed.txt");
  await page.keyboard.type("pwd > typed.txt\n");
  await until("what was typed has run", () => existsSync(written) && readFileSync(written, "utf8") !== "");
  const refused = asked.all().filter(({ status }) => status >= 400);
  assert.deepEqual(refused, [], `${asked}`);

  await ada.order("suspend", "suspended");
  await until("the terminal's socket is closed", () => terminal.isClosed());
  const wanted = { "/api/health": 4, "/global/health": 4, "/global/event": 3, "/pty": 1 };
  const starts = await sleepsOn(ada, asked, () =>
    Object.entries(wanted).every(([pathname, times]) => asked.tried(pathname) >= times),
  );

  await page.reload();
  await page.getByText("Ask anything").waitFor();
  await ada.reaches("ready");
  assert.equal(await platform.metric("wakeful_sandbox_starts_total"), starts + 1);
  ada.isUntroubled();
});
