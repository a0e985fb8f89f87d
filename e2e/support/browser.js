// The browser, and what a person does in it.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import path from "node:path";

import { TOOLS, required } from "./place.js";
import { PATIENCE, until } from "./waiting.js";

/** Debian's Chromium. */
const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";

const FLAGS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  // Nothing but this machine is ever asked; names under `.localhost` need no resolver.
  "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE *.localhost, EXCLUDE 127.0.0.1",
];

/** A password that is good enough. */
export const PASSWORD = "correct horse battery";

/** Starts a browser, which ends with the test. */
export async function launch(t) {
  const core = required(path.join(TOOLS, "node/node_modules/playwright-core"), "playwright-core");
  const { chromium } = createRequire(import.meta.url)(core);
  const executablePath = required(CHROMIUM, "Chromium");
  const browser = await chromium.launch({ executablePath, args: FLAGS, timeout: PATIENCE });
  t.after(() => browser.close());
  return browser;
}

/** Somebody with a browser of their own: cookies, history and windows that nobody else has. */
export class Person {
  /** What pages were kept from doing by their Content-Security-Policy. */
  violations = [];
  /** Exceptions that no page caught. */
  exceptions = [];

  /** @param {{ context?: object }} more options of the browser's context */
  static async arrive(browser, platform, more = {}) {
    const person = new Person();
    person.platform = platform;
    person.context = await browser.newContext(more);
    person.context.setDefaultTimeout(PATIENCE);
    person.context.setDefaultNavigationTimeout(PATIENCE);
    person.context.on("weberror", (error) => person.exceptions.push(error.error().message));
    person.context.on("console", (message) => {
      if (message.text().includes("Content Security Policy")) {
        person.violations.push(`${message.page()?.url()}: ${message.text()}`);
      }
    });
    return person;
  }

  /** Opens another window. */
  window() {
    return this.context.newPage();
  }

  /** Signs up by the form of `page`, and waits until the answer leads away from it. */
  async signUp(page, name) {
    this.name = name;
    await page.goto(`${this.platform.origin}/signup`);
    await page.getByLabel("Name").fill(name);
    await page.getByLabel("Password").fill(PASSWORD);
    await page.getByRole("button", { name: "Create my environment" }).click();
    await page.waitForURL((url) => url.origin !== this.platform.origin);
    await this.#learn();
  }

  /** Signs up and waits for the woken app. */
  async signUpToApp(page, name) {
    await this.signUp(page, name);
    await appears(page);
  }

  /** What a program of the same person knows: a token, and the environment. */
  async #learn() {
    const body = { user: this.name, password: PASSWORD };
    const { json } = await this.platform.ask("POST", "/login", { body });
    this.token = json.token;
    this.env = json.project.environments[0].id;
    this.project = json.project.id;
    this.app = this.platform.surface(this.env, "app");
    this.environmentPage = `${this.platform.origin}/environments/${this.env}`;
  }

  /** A call of the API by this person's token. */
  ask(method, target, body) {
    return this.platform.ask(method, target, { token: this.token, body });
  }

  /** The environment as the API tells it. */
  async environment() {
    const answer = await this.ask("GET", `/api/environments/${this.env}`);
    assert.equal(answer.status, 200, answer.text);
    return answer.json;
  }

  /** Orders by the API: `wake`, `suspend`, `restart`. Returns once the phase is reached. */
  async order(what, phase) {
    const answer = await this.ask("POST", `/api/environments/${this.env}/${what}`);
    assert.ok(answer.status === 200 || answer.status === 202, answer.text);
    await this.reaches(phase);
  }

  /** Waits until the environment is in a phase. */
  async reaches(phase) {
    await until(`the environment is ${phase}`, async () => (await this.environment()).phase === phase);
  }

  /** Nothing went wrong in any page. */
  isUntroubled() {
    assert.deepEqual(this.violations, []);
    assert.deepEqual(this.exceptions, []);
  }
}

/** Waits until the demo's page stands in a window, however often a waking page loads it again. */
export async function appears(page) {
  await page.getByRole("heading", { name: "It is awake." }).waitFor();
}
