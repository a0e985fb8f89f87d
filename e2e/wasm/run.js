// The unit tests of a crate, compiled for the browser, in a real one.
//
//     node run.js CRATE BUILT NATIVE
//
// BUILT is what `cargo test --no-run --message-format json` said, and NATIVE what `cargo nextest
// list --message-format json` did. Fails if a test fails, does not end, or is in one place only.

import { readFileSync } from "node:fs";

import { launch } from "../support/browser.js";
import { compare } from "./compare.js";
import { serve } from "./serve.js";
import { Watch } from "./watch.js";

/** The module that cargo built of the crate's unit tests. */
function built(file, crate) {
  const name = crate.replaceAll("-", "_");
  const modules = readFileSync(file, "utf8")
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line))
    .filter(({ executable, target }) => executable && target.name === name)
    .map(({ executable }) => executable);
  if (modules.length !== 1) {
    throw new Error(`${file} tells of ${modules.length} modules of ${crate}`);
  }
  return modules[0];
}

/** The names of the crate's unit tests natively. */
function native(file, crate) {
  const suite = JSON.parse(readFileSync(file, "utf8"))["rust-suites"][crate];
  if (suite === undefined) {
    throw new Error(`${file} does not tell of ${crate}`);
  }
  return Object.keys(suite.testcases);
}

/** Runs the tests of a module in a page. */
async function inPage(ends, module, say) {
  const browser = await launch(ends);
  say(`  Chromium ${browser.version()}`);
  const origin = await serve(ends, module);
  const page = await browser.newPage();
  const watch = new Watch(say);
  ends.after(() => watch.over());
  page.on("crash", () => watch.broke("the page crashed"));
  await page.exposeFunction("told", (what) => watch.told(what));
  await page.goto(origin);
  const run = page.evaluate(async () => {
    const { all } = await import("/page.js");
    await all(await WebAssembly.compileStreaming(fetch("/tests.wasm")), globalThis.told);
  });
  await Promise.race([run, watch.broken]);
  return watch.results;
}

async function main([crate, builtFile, nativeFile]) {
  const say = (line) => process.stdout.write(`${line}\n`);
  const ending = [];
  try {
    const ends = { after: (end) => ending.unshift(end) };
    const results = await inPage(ends, built(builtFile, crate), say);
    const { lines, passed } = compare(results, native(nativeFile, crate));
    lines.forEach(say);
    return passed;
  } finally {
    for (const end of ending) {
      await end();
    }
  }
}

process.exitCode = (await main(process.argv.slice(2))) ? 0 : 1;
