// Somebody who is new: signs up, lands on the woken app, finds the dashboard, puts the environment
// to sleep, and visits it again.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import test from "node:test";

import { Person, PASSWORD, appears, launch } from "./support/browser.js";
import { Platform } from "./support/platform.js";
import { until } from "./support/waiting.js";

const timeout = 180_000;

/** Every address that a window's back button leads to. */
async function history(page) {
  const session = await page.context().newCDPSession(page);
  const { entries } = await session.send("Page.getNavigationHistory");
  return entries.map((entry) => entry.url);
}

test("a newcomer signs up by the form and ends on the woken app", { timeout }, async (t) => {
  const browser = await launch(t);
  const platform = await Platform.up(t);
  const ada = await Person.arrive(browser, platform);
  const page = await ada.window();
  const hops = [];
  page.on("request", (request) => {
    if (request.isNavigationRequest()) {
      hops.push(new URL(request.url()));
    }
  });

  await page.goto(`${platform.origin}/`);
  await page.getByRole("heading", { name: "Sign up" }).waitFor();
  await ada.signUpToApp(page, "ada");

  const own = hops.filter((hop) => hop.origin === platform.origin).map((hop) => hop.pathname);
  assert.ok(own.includes("/u/ada/"), own.join(" "));
  assert.equal(page.url(), `${ada.app}/`);
  // The secrets of the way here are in no place that stays.
  const secrets = hops.flatMap((hop) => ["ticket", "nonce"].map((name) => hop.searchParams.get(name)));
  const [ticket] = secrets.filter((secret) => secret !== null && secret.length > 20);
  assert.ok(ticket, "the way led over a ticket");
  const kept = [...(await history(page)), await page.evaluate(() => document.referrer)].join(" ");
  for (const secret of secrets.filter((secret) => secret !== null)) {
    assert.ok(!kept.includes(secret), kept);
  }

  const cookies = await ada.context.cookies();
  const at = (host) => cookies.filter((cookie) => cookie.domain === host);
  const main = at("wakeful.localhost");
  assert.deepEqual(main.map((cookie) => cookie.name), ["wakeful_session"]);
  const app = at(new URL(ada.app).hostname);
  assert.equal(app.length, 1, JSON.stringify(app));
  assert.notEqual(app[0].value, main[0].value);
  for (const cookie of [...main, ...app]) {
    assert.ok(cookie.httpOnly && cookie.sameSite === "Lax" && cookie.path === "/", JSON.stringify(cookie));
  }
  assert.equal(cookies.length, 2, JSON.stringify(cookies));

  // A used ticket opens nothing.
  const used = hops.find((hop) => hop.searchParams.get("ticket") === ticket || hop.pathname === "/.wakeful/ticket");
  const stranger = await Person.arrive(browser, platform);
  const response = await (await stranger.window()).goto(used.href);
  assert.equal(response.status(), 401);

  await page.getByRole("link", { name: "Open the dashboard" }).click();
  await page.waitForURL(ada.environmentPage);
  await page.locator('.phase[data-phase="ready"]').waitFor();
  await page.getByRole("link", { name: "Projects" }).first().click();
  await page.waitForURL(`${platform.origin}/projects`);
  await page.getByRole("link", { name: "My project" }).click();
  await page.waitForURL(ada.environmentPage);
  ada.isUntroubled();
});

test("the environment's page follows the phase while it stays open", { timeout }, async (t) => {
  const browser = await launch(t);
  const platform = await Platform.up(t);
  const ada = await Person.arrive(browser, platform);
  const page = await ada.window();
  await ada.signUpToApp(page, "ada");
  await page.goto("about:blank");

  const watching = await ada.window();
  const stream = watching.waitForRequest(`${platform.origin}/api/events`);
  await watching.goto(ada.environmentPage);
  await stream;
  await watching.locator('.phase[data-phase="ready"]').waitFor();
  await watching.evaluate(() => {
    globalThis.loadedOnce = true;
  });

  const acting = await ada.window();
  await acting.goto(ada.environmentPage);
  await acting.getByRole("button", { name: "Put to sleep" }).click();
  for (const window of [acting, watching]) {
    await window.locator('.phase[data-phase="suspended"]').waitFor();
    await window.getByRole("button", { name: "Wake" }).waitFor();
    await window.getByText("Why it sleeps").waitFor();
  }
  await acting.getByRole("button", { name: "Wake" }).click();
  for (const window of [acting, watching]) {
    await window.locator('.phase[data-phase="ready"]').waitFor();
  }
  // What holds it awake is shown: the demo's page in another window.
  await page.goto(`${ada.app}/`);
  await appears(page);
  await acting.reload();
  await acting.getByText("app: 1 open stream").waitFor();
  assert.equal(await watching.evaluate(() => globalThis.loadedOnce), true, "it was not loaded again");
  ada.isUntroubled();
});

test("a visit of a sleeping app shows how it wakes and goes on by itself", { timeout }, async (t) => {
  const browser = await launch(t);
  const platform = await Platform.up(t, { template: "gated" });
  const ada = await Person.arrive(browser, platform);
  const page = await ada.window();
  await ada.signUp(page, "ada");
  const go = () => writeFileSync(path.join(platform.workspace(ada.env), "go"), "");

  await page.getByRole("heading", { name: "Waking My project" }).waitFor();
  await page.locator(".phase", { hasText: "starting" }).waitFor();
  const dashboard = page.getByRole("link", { name: "Open the dashboard" });
  assert.equal(await dashboard.getAttribute("href"), ada.environmentPage);
  go();
  await appears(page);

  await ada.order("suspend", "suspended");
  const deep = `${ada.app}/files/?of=this`;
  const first = await page.goto(deep);
  assert.equal(first.status(), 503);
  assert.equal(first.headers()["cache-control"], "no-store");
  await page.getByRole("heading", { name: "Waking" }).waitFor();
  go();
  await page.getByText("An empty directory.").waitFor();
  assert.equal(page.url(), deep, "it goes on to where the visit led");
  const entries = (await history(page)).filter((url) => url === deep);
  assert.equal(entries.length, 1, "waiting leaves nothing in the history");
  ada.isUntroubled();
});

test("everything basic works without script", { timeout }, async (t) => {
  const browser = await launch(t);
  const platform = await Platform.up(t, { template: "gated" });
  const ada = await Person.arrive(browser, platform, { javaScriptEnabled: false });
  const page = await ada.window();
  await ada.signUp(page, "ada");
  const go = () => writeFileSync(path.join(platform.workspace(ada.env), "go"), "");
  await page.getByRole("heading", { name: "Waking My project" }).waitFor();
  go();
  // The waking page loads itself again.
  await appears(page);
  await page.getByRole("link", { name: "Open the dashboard" }).click();
  await page.locator('.phase[data-phase="ready"]').waitFor();

  /**
   * Sends a form and waits for the page that answers it. It stands at the same address, so the sign of
   * it is that one more page has loaded; whoever went on before might break the sending off.
   */
  const send = async (button) => {
    await page.waitForLoadState("load");
    const answered = page.waitForEvent("load");
    await page.getByRole("button", { name: button }).click();
    await answered;
    assert.equal(page.url(), ada.environmentPage);
  };
  /** Loads the page again until it says so. */
  const says = (phase) =>
    until(`the page says ${phase}`, async () => {
      await page.goto(ada.environmentPage);
      return (await page.locator(`.phase[data-phase="${phase}"]`).count()) > 0;
    });
  await send("Put to sleep");
  await says("suspended");
  await send("Wake");
  await says("starting");
  go();
  await says("ready");
  await send("Extend");

  // A variable, and a project, and its way out and back.
  await page.getByLabel("Name").fill("GREETING");
  await page.getByLabel("Value").fill("hello from a form");
  await page.getByLabel("It is a secret").uncheck();
  await page.getByRole("button", { name: "Set", exact: true }).click();
  await page.getByText("hello from a form").waitFor();
  await page.goto(`${platform.origin}/projects`);
  await page.getByRole("link", { name: "New project" }).click();
  await page.getByLabel("Title").fill("Second");
  await page.getByRole("radio", { name: /^Demo/ }).check();
  await page.getByRole("button", { name: "Make it" }).click();
  await page.getByRole("heading", { name: "Second" }).waitFor();
  await page.getByText("Delete this project…").click();
  await page.getByRole("button", { name: "Delete “Second”" }).click();
  await page.waitForURL(`${platform.origin}/deleted`);
  await page.getByRole("button", { name: "Restore" }).click();
  await page.getByRole("heading", { name: "Second" }).waitFor();

  await page.getByRole("button", { name: "Sign out" }).click();
  await page.waitForURL(`${platform.origin}/login`);
  await page.getByLabel("Name").fill("ada");
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.waitForURL(`${platform.origin}/projects`);
  ada.isUntroubled();
});

test("a file is put in by a form, shown by the app, and taken out again", { timeout }, async (t) => {
  const browser = await launch(t);
  const platform = await Platform.up(t);
  const ada = await Person.arrive(browser, platform, { javaScriptEnabled: false });
  const page = await ada.window();
  await ada.signUpToApp(page, "ada");
  // Files need no sandbox.
  await ada.order("suspend", "suspended");
  await page.goto(ada.environmentPage);
  await page.getByRole("link", { name: "Browse and upload" }).click();
  const name = "größe & ähnliches.txt";
  await page.getByLabel("Put files here").setInputFiles([
    { name, mimeType: "text/plain", buffer: Buffer.from("kept") },
    { name: "page.html", mimeType: "text/html", buffer: Buffer.from("<h1>hello</h1>") },
  ]);
  await page.getByRole("button", { name: "Upload" }).click();
  const link = page.getByRole("link", { name });
  await link.waitFor();
  // What somebody put there is handed out, and never shown in the dashboard's origin.
  const downloads = [];
  for (const wanted of [name, "page.html"]) {
    const download = page.waitForEvent("download");
    await page.getByRole("link", { name: wanted }).click();
    downloads.push(readFileSync(await (await download).path(), "utf8"));
  }
  assert.deepEqual(downloads, ["kept", "<h1>hello</h1>"]);
  assert.equal((await ada.environment()).phase, "suspended", "none of this needed it awake");

  const app = await ada.window();
  await app.goto(`${ada.app}/`);
  await app.getByRole("link", { name }).click();
  await app.getByText("kept").waitFor();
  await page.getByRole("button", { name: `Remove ${name}` }).click();
  await link.waitFor({ state: "detached" });
  await app.goto(`${ada.app}/`);
  await appears(app);
  assert.equal(await app.getByRole("link", { name }).count(), 0);
  ada.isUntroubled();
});

test("whoever comes by another name of this machine is led to the right one", { timeout }, async (t) => {
  const browser = await launch(t);
  const platform = await Platform.up(t);
  const ada = await Person.arrive(browser, platform);
  const page = await ada.window();
  await page.goto(`http://localhost:${platform.port}/login?next=%2Faccount`);
  assert.equal(page.url(), `${platform.origin}/login?next=%2Faccount`);
  await page.goto(`http://127.0.0.1:${platform.port}/signup`);
  assert.equal(page.url(), `${platform.origin}/signup`);
  const misdirected = await page.goto(`http://elsewhere.localhost:${platform.port}/`);
  assert.equal(misdirected.status(), 421);
  ada.isUntroubled();
});

test("whoever signs out is out everywhere, and others never get in", { timeout }, async (t) => {
  const browser = await launch(t);
  const platform = await Platform.up(t);
  const ada = await Person.arrive(browser, platform);
  const page = await ada.window();
  await ada.signUpToApp(page, "ada");

  const bob = await Person.arrive(browser, platform);
  const other = await bob.window();
  await bob.signUpToApp(other, "bob");
  for (const address of [ada.environmentPage, `${ada.app}/`, `${platform.origin}/u/ada/`]) {
    const response = await other.goto(address);
    assert.equal(response.status(), 404, address);
    assert.ok(!(await other.content()).includes("It is awake."), address);
  }

  const dashboard = await ada.window();
  await dashboard.goto(`${platform.origin}/projects`);
  await dashboard.getByRole("button", { name: "Sign out" }).click();
  await dashboard.waitForURL(`${platform.origin}/login`);
  // The gateway hears of it a moment later, and long before it would have asked again by itself.
  const isOut = async () => {
    await page.reload();
    const { origin, pathname } = new URL(page.url());
    return origin === platform.origin && pathname === "/login";
  };
  await until("the app leads to the sign-in page", isOut, 15_000);
  // Signing in leads back to where it was wanted, over a new ticket.
  await page.getByLabel("Name").fill("ada");
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Sign in" }).click();
  await appears(page);
  assert.equal(page.url(), `${ada.app}/`);
  ada.isUntroubled();
  bob.isUntroubled();
});
