import assert from "node:assert/strict";
import test from "node:test";

import { Watch } from "./watch.js";

/** A watch of 100 ms, whose time is the test's. */
function watching(t) {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const lines = [];
  return { watch: new Watch((line) => lines.push(line), 100), lines };
}

/** Whether a run is broken. */
const isBroken = (watch) => Promise.race([watch.broken.catch(() => true), Promise.resolve(false).then()]);

test("a test is kept and said once it has ended, with what it failed of", (t) => {
  const { watch, lines } = watching(t);
  watch.told({ name: "one" });
  assert.equal(watch.results.size, 0);
  watch.told({ name: "one", ended: true });
  watch.told({ name: "two", ended: true, failure: "panicked at x" });
  assert.deepEqual([...watch.results], [["one", undefined], ["two", "panicked at x"]]);
  assert.deepEqual(lines, ["  PASS one", "  FAIL two\npanicked at x\n"]);
});

test("a test that does not end breaks the run and is named", async (t) => {
  const { watch } = watching(t);
  t.mock.timers.tick(99);
  watch.told({ name: "one", ended: true });
  t.mock.timers.tick(99);
  watch.told({ name: "for ever" });
  t.mock.timers.tick(99);
  assert.ok(!(await isBroken(watch)));
  t.mock.timers.tick(1);
  await assert.rejects(watch.broken, /nothing happened for 100 ms; .*: for ever$/);
});

test("two tests of one name break the run", async (t) => {
  const { watch } = watching(t);
  watch.told({ name: "one", ended: true });
  watch.told({ name: "one", ended: true });
  await assert.rejects(watch.broken, /two tests have one name; .*: one$/);
});

test("a run that is over waits no more", async (t) => {
  const { watch } = watching(t);
  watch.over();
  t.mock.timers.tick(1000);
  assert.ok(!(await isBroken(watch)));
});
