// Datasette on its own host, used through its pages.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import path from "node:path";
import test from "node:test";

import { Person, launch } from "./support/browser.js";
import { TOOLS, required } from "./support/place.js";
import { Platform } from "./support/platform.js";

const SCHEMA = `
  create table rivers (name text primary key, km integer);
  insert into rivers values ('Rhine', 1233), ('Elbe', 1094), ('Loire', 1006);
`;

test("a database of the workspace is browsed and queried, and is there after a sleep", { timeout: 180_000 }, async (t) => {
  required(path.join(TOOLS, "bin/datasette"), "Datasette");
  const browser = await launch(t);
  const platform = await Platform.up(t, { template: "datasette" });
  const ada = await Person.arrive(browser, platform);
  const page = await ada.window();
  await ada.signUp(page, "ada");
  const host = platform.surface(ada.env, "db");
  await page.getByRole("link", { name: "data", exact: true }).waitFor();
  assert.equal(page.url(), `${host}/`, "the home surface is the database's");

  // It looks for databases when it starts.
  await ada.order("suspend", "suspended");
  execFileSync("sqlite3", [path.join(platform.workspace(ada.env), "water.db"), SCHEMA]);
  await page.goto(`${host}/`);
  await page.getByRole("link", { name: "water", exact: true }).click();
  await page.waitForURL(`${host}/water`);
  await page.getByRole("link", { name: "rivers", exact: true }).first().click();
  await page.getByRole("cell", { name: "Loire" }).first().waitFor();

  await page.goto(`${host}/water`);
  await page.locator(".cm-editor, .CodeMirror").click();
  await page.keyboard.press("Control+A");
  await page.keyboard.type("select name from rivers where km > 1050 order by km desc");
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Run SQL" }).click();
  await page.getByRole("heading", { name: /2 rows/ }).waitFor();
  assert.deepEqual(await page.locator("table.rows-and-columns tbody td").allTextContents(), ["Rhine", "Elbe"]);
  const result = page.url();

  await ada.order("suspend", "suspended");
  await page.goto(result);
  await page.getByRole("heading", { name: /2 rows/ }).waitFor();
  assert.equal(page.url(), result, "a query's address survives the waking page");
  ada.isUntroubled();
});
