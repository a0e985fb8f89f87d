// What a browser keeps apart: the dashboard's origin and cookie, surfaces' hosts, and what runs in
// sandboxes.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import path from "node:path";
import test from "node:test";

import { Person, appears, launch } from "./support/browser.js";
import { Platform } from "./support/platform.js";
import { until } from "./support/waiting.js";

const timeout = 180_000;

/** Signs up and waits for the mirror, whose page is the list of the workspace's files. */
async function atTheMirror(person, page) {
  await person.signUp(page, "ada");
  await page.getByRole("heading", { name: "Directory listing" }).waitFor();
}

/**
 * Puts a frame into a page of the dashboard. Its own pages embed nothing and say so in their policy,
 * so this needs a person whose browser ignores policies.
 */
const embed = (page, src) =>
  page.evaluate((src) => document.body.append(Object.assign(document.createElement("iframe"), { src })), src);

test("the dashboard's cookie reaches no surface, and no program sees the gateway's own", { timeout }, async (t) => {
  const browser = await launch(t);
  const platform = await Platform.up(t, { template: "mirror" });
  const ada = await Person.arrive(browser, platform);
  const page = await ada.window();
  const session = await ada.context.newCDPSession(page);
  const hosts = new Map();
  const sent = [];
  await session.send("Network.enable");
  session.on("Network.requestWillBeSent", ({ requestId, request }) => hosts.set(requestId, new URL(request.url).host));
  session.on("Network.requestWillBeSentExtraInfo", ({ headers }) => sent.push(headers));
  await atTheMirror(ada, page);
  await page.goto(ada.environmentPage);
  await page.goto(`${ada.app}/headers`);

  const cookies = await ada.context.cookies();
  const value = (host) => cookies.find(({ domain }) => domain === new URL(host).hostname).value;
  const [main, own] = [value(platform.origin), value(ada.app)];
  const of = (headers, name) => Object.entries(headers).find(([key]) => key.toLowerCase() === name)?.[1] ?? "";
  const to = (origin) => sent.filter((headers) => of(headers, "host") === new URL(origin).host);
  assert.ok(to(platform.origin).some((headers) => of(headers, "cookie").includes(main)), "the dashboard gets it");
  assert.ok(to(ada.app).some((headers) => of(headers, "cookie").includes(own)), "the surface gets its own");
  for (const headers of to(ada.app)) {
    assert.ok(!of(headers, "cookie").includes(main), "the dashboard's cookie stays at home");
  }
  for (const headers of to(platform.origin)) {
    assert.ok(!of(headers, "cookie").includes(own), "and the surface's as well");
  }
  // What the program got is what it says.
  const seen = await page.evaluate(async () => (await fetch("/headers")).text());
  assert.ok(!seen.includes(own) && !seen.includes(main), seen);
  assert.equal(await page.evaluate(() => document.cookie), "");
});

test("a page load of a path route leads to the surface's own host", { timeout }, async (t) => {
  const browser = await launch(t);
  const platform = await Platform.up(t, { template: "mirror" });
  const ada = await Person.arrive(browser, platform, { bypassCSP: true });
  const page = await ada.window();
  await atTheMirror(ada, page);
  writeFileSync(path.join(platform.workspace(ada.env), "page.html"), "<title>x</title><script>document.title = origin</script>");
  const agent = platform.surface(ada.env, "agent");
  const routes = [
    [`/api/proxy/${ada.env}/page.html?a=b%2Fc`, `${agent}/page.html?a=b%2Fc`],
    ["/u/ada/page.html?a=b%2Fc", `${ada.app}/page.html?a=b%2Fc`],
    ["/u/ada", `${ada.app}/`],
  ];
  for (const [route, place] of routes) {
    await page.goto(`${platform.origin}${route}`);
    assert.equal(page.url(), place);
    assert.equal(await page.evaluate(() => origin), new URL(place).origin);
  }

  // Where the dashboard's own origin asks by script, what comes is inert.
  await page.goto(`${platform.origin}/projects`);
  const answer = await page.evaluate(async (target) => {
    const response = await fetch(target);
    return { status: response.status, headers: Object.fromEntries(response.headers) };
  }, `/api/proxy/${ada.env}/page.html`);
  assert.equal(answer.status, 200);
  assert.match(answer.headers["content-security-policy"], /(^|[ ;,])sandbox/);
  assert.equal(answer.headers["x-content-type-options"], "nosniff");

  // A frame of the dashboard's origin does not get to run it there either.
  await embed(page, `/api/proxy/${ada.env}/page.html`);
  await until("the frame has gone where it goes", () => page.frames()[1]?.url() === `${agent}/page.html`);
});

test("a page of a sandbox can neither use nor read nor frame the dashboard", { timeout }, async (t) => {
  const browser = await launch(t);
  const platform = await Platform.up(t, { template: "mirror" });
  const ada = await Person.arrive(browser, platform);
  const page = await ada.window();
  await atTheMirror(ada, page);
  assert.equal(new URL(page.url()).origin, ada.app);
  const { origin } = platform;

  /** What becomes of a request that the page of the sandbox makes with the dashboard's cookie. */
  const attempt = (target, options) =>
    page.evaluate(
      async ([url, options]) => {
        try {
          const response = await fetch(url, { credentials: "include", ...options });
          return `${response.type} ${response.status} ${await response.text()}`;
        } catch (error) {
          return error.name;
        }
      },
      [`${origin}${target}`, options ?? {}],
    );

  const statuses = [];
  page.on("response", (response) => {
    if (response.url().startsWith(origin)) {
      statuses.push(`${response.request().method()} ${new URL(response.url()).pathname} ${response.status()}`);
    }
  });
  // Reading: the answer never reaches the page.
  for (const target of ["/api/me", "/api/projects", "/account", `/api/proxy/${ada.env}/headers`]) {
    assert.equal(await attempt(target), "TypeError", target);
  }
  // Acting: in every way that needs no permission beforehand, and in those that do.
  const json = { "content-type": "application/json" };
  const body = JSON.stringify({ title: "planted", template: "demo" });
  for (const options of [
    { method: "POST", body },
    { method: "POST", body, mode: "no-cors" },
    { method: "POST", body, headers: json },
    { method: "DELETE" },
  ]) {
    const target = options.method === "DELETE" ? `/api/projects/${ada.project}` : "/api/projects";
    assert.match(await attempt(target, options), /^(TypeError|opaque 0 )$/);
  }
  const suspend = `/api/environments/${ada.env}/suspend`;
  assert.match(await attempt(suspend, { method: "POST", mode: "no-cors" }), /^(TypeError|opaque 0 )$/);
  // A form needs no permission at all.
  const attacks = [
    ["/projects", { title: "planted", template: "demo" }],
    [`/environments/${ada.env}/suspend`, {}],
    [`/projects/${ada.project}/delete`, {}],
    ["/account/tokens", { name: "planted" }],
    ["/logout", {}],
  ];
  for (const [target, fields] of attacks) {
    await page.goto(`${ada.app}/`);
    const answer = page.waitForResponse(`${origin}${target}`);
    await page.evaluate(
      ([action, fields]) => {
        const form = Object.assign(document.createElement("form"), { method: "post", action });
        for (const [name, value] of Object.entries(fields)) {
          form.append(Object.assign(document.createElement("input"), { name, value }));
        }
        document.body.append(form);
        form.submit();
      },
      [`${origin}${target}`, fields],
    );
    assert.equal((await answer).status(), 403, target);
    await page.waitForURL(`${origin}${target}`);
  }
  await page.goto(`${ada.app}/`);
  // A socket of the path route is refused, in a way that the page can tell.
  const closed = await page.evaluate(
    (url) =>
      new Promise((resolve) => {
        const socket = new WebSocket(url);
        socket.onclose = ({ code }) => resolve(code);
      }),
    `${origin.replace("http", "ws")}/api/proxy/${ada.env}/`,
  );
  assert.equal(closed, 4403);
  // A frame of the dashboard stays empty, and a script of it does not load.
  const framed = await page.evaluate(
    ([page, script]) =>
      new Promise((resolve) => {
        const frame = Object.assign(document.createElement("iframe"), { src: page });
        const tag = Object.assign(document.createElement("script"), { src: script });
        tag.onload = () => resolve("the script was loaded");
        tag.onerror = () => {
          frame.onload = () => resolve(frame.contentDocument === null ? "kept apart" : "open");
          document.body.append(frame);
        };
        document.body.append(tag);
      }),
    [`${origin}/projects`, `${origin}/api/me`],
  );
  assert.equal(framed, "kept apart");
  const inside = page.frames().find((frame) => frame !== page.mainFrame());
  assert.equal(await inside.getByText("My project").count(), 0);
  // A cookie that it plants for everybody takes nobody's place.
  await page.evaluate(() => {
    document.cookie = "wakeful_session=planted; Domain=wakeful.localhost; Path=/projects";
    document.cookie = "wakeful_session=planted; Domain=wakeful.localhost; Path=/";
  });
  const dashboard = await ada.window();
  await dashboard.goto(`${origin}/projects`);
  await dashboard.getByRole("link", { name: "My project" }).waitFor();

  const { json: projects } = await ada.ask("GET", "/api/projects");
  assert.deepEqual(projects.map(({ title }) => title), ["My project"]);
  assert.equal((await ada.environment()).phase, "ready");
  const { json: tokens } = await ada.ask("GET", "/api/tokens");
  assert.ok(!JSON.stringify(tokens).includes("planted"), JSON.stringify(tokens));
  assert.ok(statuses.length > 0 && !statuses.some((line) => /^(POST|DELETE) .* [23]/.test(line)), statuses.join("\n"));
});

test("the preview works in a frame of the dashboard's site, also while it wakes", { timeout }, async (t) => {
  const browser = await launch(t);
  const platform = await Platform.up(t, { template: "gated" });
  const ada = await Person.arrive(browser, platform, { bypassCSP: true });
  const page = await ada.window();
  await ada.signUp(page, "ada");
  const go = () => writeFileSync(path.join(platform.workspace(ada.env), "go"), "");
  go();
  await appears(page);
  await ada.order("suspend", "suspended");
  await page.goto("about:blank");

  const dashboard = await ada.window();
  const preview = platform.surface(ada.env, "preview");
  await dashboard.goto(`${platform.origin}/projects`);
  await embed(dashboard, `${preview}/`);
  const frame = dashboard.frameLocator("iframe");
  await frame.getByRole("heading", { name: "Waking My project" }).waitFor();
  go();
  await frame.getByRole("heading", { name: "It is awake." }).waitFor();
  assert.equal(dashboard.frames()[1].url(), `${preview}/`);
  const kept = (await ada.context.cookies()).filter(({ domain }) => domain === new URL(preview).hostname);
  assert.ok(kept.length === 1 && kept[0].httpOnly, JSON.stringify(kept));
  ada.isUntroubled();
});

test("no page of the dashboard breaks its own policy", { timeout }, async (t) => {
  const browser = await launch(t);
  const platform = await Platform.up(t);
  const ada = await Person.arrive(browser, platform);
  const page = await ada.window();
  for (const place of ["/", "/signup", "/login", "/login?next=%2Fprojects"]) {
    await page.goto(`${platform.origin}${place}`);
  }
  await ada.signUp(page, "ada");
  await appears(page);
  for (const place of [
    "/projects",
    "/projects/new",
    "/deleted",
    "/account",
    `/environments/${ada.env}`,
    `/environments/${ada.env}?log=app`,
    "/nothing-here",
  ]) {
    const response = await page.goto(`${platform.origin}${place}`);
    const policy = response.headers()["content-security-policy"];
    assert.match(policy, /default-src 'none'/, place);
    assert.match(policy, /frame-ancestors 'none'/, place);
    assert.ok(!policy.includes("unsafe"), policy);
    assert.equal(await page.locator("link[rel=stylesheet]").count(), 1, place);
    assert.notEqual(await page.evaluate(() => getComputedStyle(document.body).fontFamily), "", place);
  }
  // What the forms send is answered without breaking it either.
  await page.goto(`${platform.origin}/account`);
  await page.getByLabel("Name of a new token").fill("laptop");
  await page.getByRole("button", { name: "Make a token" }).click();
  await page.getByText("It is shown this once").waitFor();
  ada.isUntroubled();
});
