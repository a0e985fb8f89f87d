// The platform under test: the real binary, with a port and a data directory of its own.

import { spawn } from "node:child_process";
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import http from "node:http";
import os from "node:os";
import path from "node:path";

import { TOOLS, binary, readable } from "./place.js";
import { kill, ofDataDirectory } from "./processes.js";
import { until } from "./waiting.js";

/** The system's own programs. */
const PATH = "/usr/local/bin:/usr/bin:/bin";

/** How much of a log is shown when a test fails, in lines. */
const SHOWN = 80;

/**
 * A template whose program starts once the file `go` is in its workspace, so that a test can look
 * at what people see meanwhile; one whose program mirrors requests and serves the workspace; one
 * whose program ends at once; and one whose program is not there.
 */
const TEMPLATES = (mirror) => `
[templates.gated]
title = "Gated"
home = "app"
[templates.gated.surfaces.app]
command = 'until [ -e go ]; do sleep 0.05; done; rm go; exec "$WAKEFUL_BIN" demo'
ready = { http = "/healthz", status = [200] }
background = ["/events"]

[templates.mirror]
title = "Mirror"
home = "app"
[templates.mirror.surfaces.app]
command = "exec python3 ${mirror}"
ready = { http = "/headers" }
[templates.mirror.surfaces.agent]
command = "exec python3 ${mirror}"
ready = { http = "/headers" }
route = "both"

[templates.broken]
title = "Broken"
home = "app"
[templates.broken.surfaces.app]
command = "echo 'no such configuration: /etc/shop.conf' >&2; exit 3"

[templates.missing]
title = "Missing"
home = "app"
description = "A program that is not installed here."
needs = ["a-program-that-nobody-has"]
install = "write it"
[templates.missing.surfaces.app]
command = "exec a-program-that-nobody-has"
`;

/** A running platform. */
export class Platform {
  #child;
  #home;

  /**
   * Starts one. `t` is the test that it ends with.
   *
   * @param {{ template?: string, settings?: string }} setup `settings` are further lines of
   *   `wakeful.toml`, before the first table of it
   */
  static async up(t, { template = "demo", settings = "" } = {}) {
    const platform = new Platform();
    t.after(() => platform.#end(t));
    await platform.#start(template, settings);
    return platform;
  }

  async #start(template, settings) {
    this.#home = realpathSync(mkdtempSync(path.join(os.tmpdir(), "wakeful-e2e-")));
    this.data = path.join(this.#home, "data");
    const mirror = path.join(import.meta.dirname, "mirror.py");
    const config = path.join(this.#home, "wakeful.toml");
    const list = [...readable(), mirror].map((file) => JSON.stringify(file)).join(", ");
    writeFileSync(
      config,
      `default_template = "${template}"\n${settings}\n[isolation]\nreadable = [${list}]\n${TEMPLATES(mirror)}`,
    );
    const log = openSync(this.#log, "w");
    this.#child = spawn(
      binary(),
      ["up", "--listen", "127.0.0.1:0", "--data", this.data, "--config", config],
      {
        cwd: this.#home,
        env: { PATH: `${path.join(TOOLS, "bin")}:${PATH}`, HOME: this.#home },
        stdio: ["ignore", "ignore", log],
      },
    );
    closeSync(log);
    // A run that is broken off must leave nothing behind either.
    process.once("exit", this.#killAll);
    this.origin = await until("the platform says where it is", () => {
      if (this.#child.exitCode !== null) {
        throw new Error(`the platform ended:\n${this.log()}`);
      }
      return /Wakeful is up: (http:\/\/wakeful\.localhost:[0-9]+)\//.exec(this.log())?.[1];
    });
    this.port = Number(new URL(this.origin).port);
  }

  #killAll = () => {
    const pid = this.#child?.pid;
    if (pid !== undefined && this.#child.exitCode === null && this.#child.signalCode === null) {
      kill(pid);
    }
    ofDataDirectory(this.data).forEach(kill);
  };

  async #end(t) {
    if (this.#child !== undefined) {
      // A clean stop takes its sandboxes down; whatever outlives it is killed.
      this.#child.kill("SIGTERM");
      try {
        await until("the platform ends", () => this.#child.exitCode !== null);
      } finally {
        this.#killAll();
        process.removeListener("exit", this.#killAll);
      }
      await until("its processes are gone", () => {
        const left = ofDataDirectory(this.data);
        left.forEach(kill);
        return left.length === 0;
      });
    }
    if (t.passed === false) {
      console.error(`--- the platform's log:\n${this.log().split("\n").slice(-SHOWN).join("\n")}`);
    }
    rmSync(this.#home, { recursive: true, force: true });
  }

  get #log() {
    return path.join(this.#home, "log");
  }

  /** What it has written. */
  log() {
    return existsSync(this.#log) ? readFileSync(this.#log, "utf8") : "";
  }

  /** The origin of a surface's own host. */
  surface(env, surface) {
    const label =
      { app: `${env}-dev.apps`, vscode: `${env}.code`, db: `${env}.db`, preview: `${env}.preview` }[surface] ??
      `${env}-${surface}.on`;
    return `http://${label}.wakeful.localhost:${this.port}`;
  }

  /** The directory of an environment's files. */
  workspace(env) {
    return path.join(this.data, "workspaces", env);
  }

  /**
   * A request to the main host, as a program sends it.
   *
   * @returns {Promise<{ status: number, text: string, json: any }>}
   */
  ask(method, target, { token, body } = {}) {
    const text = body === undefined ? undefined : JSON.stringify(body);
    const headers = { host: `wakeful.localhost:${this.port}` };
    if (token !== undefined) {
      headers.authorization = `Bearer ${token}`;
    }
    if (text !== undefined) {
      headers["content-type"] = "application/json";
    }
    return new Promise((resolve, reject) => {
      const request = http.request(
        { host: "127.0.0.1", port: this.port, method, path: target, headers, agent: false },
        (response) => {
          const pieces = [];
          response.on("data", (piece) => pieces.push(piece));
          response.on("error", reject);
          response.on("end", () => {
            const answer = Buffer.concat(pieces).toString();
            const isJson = /json/.test(response.headers["content-type"] ?? "");
            const json = isJson && answer !== "" ? JSON.parse(answer) : undefined;
            resolve({ status: response.statusCode, text: answer, json });
          });
        },
      );
      request.on("error", reject);
      request.end(text);
    });
  }

  /** The sum of a metric over its labels. */
  async metric(name) {
    const { text } = await this.ask("GET", "/metrics");
    const lines = text.split("\n").filter((line) => line.startsWith(`${name} `) || line.startsWith(`${name}{`));
    return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" ") + 1)), 0);
  }
}
