// What people see: a picture of each page, in light and dark, on a desk and on a phone, and what can
// be said about all of them without eyes.

import assert from "node:assert/strict";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import test from "node:test";

import { Person, appears, launch } from "./support/browser.js";
import { PICTURES } from "./support/place.js";
import { Platform } from "./support/platform.js";
import { until } from "./support/waiting.js";

const SIZES = { desktop: { width: 1280, height: 800 }, phone: { width: 390, height: 844 } };

/** Pictures of what stands in a window, each fitting its width, with every field named. */
async function look(page, name) {
  for (const [size, viewport] of Object.entries(SIZES)) {
    await page.setViewportSize(viewport);
    for (const colorScheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      await page.screenshot({ path: path.join(PICTURES, `${name}-${size}-${colorScheme}.png`), fullPage: true });
    }
    const beyond = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(beyond <= 0, `${name} is ${beyond} pixels too wide for a ${size}`);
  }
  const nameless = await page.evaluate(() =>
    [...document.querySelectorAll("input:not([type=hidden], [hidden]), select, textarea")]
      .filter((field) => field.labels.length === 0 && field.ariaLabel === null)
      .map((field) => field.outerHTML),
  );
  assert.deepEqual(nameless, [], name);
  await page.setViewportSize(SIZES.desktop);
}

/** Waits until an element is there, loading the page again as a person would. */
const shows = (page, selector) =>
  until(`${page.url()} shows ${selector}`, async () => {
    if ((await page.locator(selector).count()) > 0) {
      return true;
    }
    await page.reload();
    return false;
  });

test("every page fits a desk and a phone in light and dark", { timeout: 300_000 }, async (t) => {
  rmSync(PICTURES, { recursive: true, force: true });
  mkdirSync(PICTURES, { recursive: true });
  const browser = await launch(t);
  const platform = await Platform.up(t);
  const ada = await Person.arrive(browser, platform);
  const page = await ada.window();
  const at = (place) => page.goto(`${platform.origin}${place}`);

  await at("/");
  await look(page, "sign-up");
  await page.getByLabel("Name").fill("Ada Lovelace");
  await page.getByLabel("Password").fill("1234567890");
  await page.evaluate(() => (document.querySelector("form").noValidate = true));
  await page.getByRole("button", { name: "Create my environment" }).click();
  await page.getByRole("alert").waitFor();
  await look(page, "sign-up-refused");
  await at("/login");
  await look(page, "sign-in");

  await ada.signUpToApp(page, "ada");
  await look(page, "app-empty");
  const workspace = platform.workspace(ada.env);
  mkdirSync(path.join(workspace, "photos"));
  writeFileSync(path.join(workspace, "photos", "boat.jpg"), "x".repeat(345_678));
  writeFileSync(path.join(workspace, "notes.md"), "# Notes\n".repeat(900));
  writeFileSync(path.join(workspace, "a-file-with-a-rather-long-name-that-goes-on-and-on.tar.gz"), "");
  await page.reload();
  await appears(page);
  await look(page, "app");
  await page.goto(`${ada.app}/files/photos/`);
  await look(page, "app-files");
  await page.goto(`${ada.app}/nothing`);
  await look(page, "app-nothing");
  await page.goto(`${ada.app}/`);

  // Projects in several phases.
  const make = async (title, template) => {
    const answer = await ada.ask("POST", "/api/projects", { title, template });
    assert.equal(answer.status, 201, answer.text);
    return answer.json.environments[0].id;
  };
  await make("Web shop", "mirror");
  const broken = await make("Accounting of the rowing club, second attempt", "broken");
  const gated = await make("Harbour map", "gated");
  const waking = await ada.window();
  await waking.goto(`${platform.surface(gated, "app")}/`);
  await waking.getByRole("heading", { name: "Waking Harbour map" }).waitFor();
  await look(waking, "waking");
  await ada.ask("POST", `/api/environments/${broken}/wake`);
  const board = await ada.window();
  const open = (place) => board.goto(`${platform.origin}${place}`);
  await open(`/environments/${broken}`);
  await shows(board, ".fault, .alert");
  await look(board, "environment-broken");
  await open("/projects");
  await look(board, "projects");
  await open("/projects/new");
  await look(board, "project-new");

  for (const variable of [
    { name: "GREETING", value: "hello", secret: false },
    { name: "API_KEY", value: "sk-0123456789abcdef0123456789abcdef", secret: true },
  ]) {
    const { name, ...body } = variable;
    const answer = await ada.ask("PUT", `/api/environments/${ada.env}/variables/${name}`, body);
    assert.ok(answer.status < 300, answer.text);
  }
  await ada.ask("POST", `/api/environments/${ada.env}/extend`, { minutes: 60 });
  await open(`/environments/${ada.env}`);
  await shows(board, ".reasons");
  await look(board, "environment");
  await open(`/environments/${ada.env}/files`);
  await look(board, "files");
  await page.goto("about:blank");
  await ada.order("suspend", "suspended");
  await open(`/environments/${ada.env}`);
  await look(board, "environment-asleep");

  await open("/account");
  await board.getByLabel("Name of a new token").fill("laptop");
  await board.getByRole("button", { name: "Make a token" }).click();
  await board.getByText("It is shown this once").waitFor();
  await look(board, "account");

  await open("/deleted");
  await look(board, "deleted-none");
  await ada.ask("DELETE", `/api/projects/${broken}`);
  await open("/deleted");
  await look(board, "deleted");

  await open("/nothing-here");
  await look(board, "error");
  await board.goto(`${platform.surface("01a22a69-0000-7000-8000-000000000000", "app")}/`);
  await look(board, "error-surface");
  await board.goto(`${ada.app}/.wakeful/ticket?ticket=spent&to=/`);
  await board.getByText("This way in was used already").waitFor();
  await look(board, "refused");
  ada.isUntroubled();
});
