import assert from "node:assert/strict";
import test from "node:test";

import { all } from "./page.js";

// The few instructions and kinds that the modules below are made of.
const CALL = 0x10;
const CONST = 0x41;
const UNREACHABLE = 0x00;
const END = 0x0b;
const MEMORY = 0x02;
const FUNCTION = 0x00;

const vector = (items) => [items.length, ...items.flat()];
const text = (words) => vector([...new TextEncoder().encode(words)]);
const section = (id, content) => [id, ...vector(content)];

/** Where its words stand in the memory of a module. */
const WORDS = "one two why";
const at = (word) => [CONST, WORDS.indexOf(word), CONST, word.length];

/** The imports of every module below, in their order. */
const BEGUN = [CALL, 0];
const FAILED = [CALL, 1];
const CLOCK = [CALL, 2];

/** A module whose exports do these things; each begins with a list of its own. */
function module(exports) {
  const names = Object.keys(exports);
  const imports = [["page", "begun", 0], ["page", "failed", 0], ["host", "clock", 1]];
  const code = Object.values(exports).map((body) => vector([0, ...body.flat(Infinity), END]));
  return WebAssembly.compile(
    Uint8Array.from([
      ...[0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00],
      // (i32, i32) -> (), and () -> ().
      ...section(1, vector([[0x60, 2, 0x7f, 0x7f, 0], [0x60, 0, 0]])),
      ...section(2, vector(imports.map(([from, name, type]) => [...text(from), ...text(name), FUNCTION, type]))),
      ...section(3, vector(names.map(() => 1))),
      ...section(5, vector([[0, 1]])),
      ...section(7, [
        names.length + 1,
        ...[...text("memory"), MEMORY, 0],
        ...names.flatMap((name, index) => [...text(name), FUNCTION, imports.length + index]),
      ]),
      ...section(10, vector(code)),
      ...section(11, vector([[0, CONST, 0, END, ...text(WORDS)]])),
    ]),
  );
}

/** What is told of a module's tests. */
async function run(exports) {
  const told = [];
  await all(await module(exports), (what) => told.push(what));
  return told;
}

test("every test is told by its own name when it begins and when it has ended", async () => {
  const told = await run({
    "test 1": [at("one"), BEGUN],
    helper: [[UNREACHABLE]],
    "test 2": [at("two"), BEGUN],
  });
  assert.deepEqual(told, [
    { name: "one" },
    { name: "one", ended: true, failure: undefined },
    { name: "two" },
    { name: "two", ended: true, failure: undefined },
  ]);
});

test("a failure is told in its own words, and the next test runs", async () => {
  const why = [at("why"), FAILED];
  const told = await run({
    "test 1": [at("one"), BEGUN, why, [UNREACHABLE]],
    "test 2": [at("two"), BEGUN, why],
  });
  assert.deepEqual(
    told.filter(({ ended }) => ended),
    [
      { name: "one", ended: true, failure: "why" },
      { name: "two", ended: true, failure: "why" },
    ],
  );
});

test("a trap without words is a failure, also before the name is known", async () => {
  const [told] = await run({ "test 1": [[UNREACHABLE]] });
  assert.equal(told.name, "test 1");
  assert.match(told.failure, /unreachable/);
});

test("a test that asks for more than the page has fails by what it asked for", async () => {
  const told = await run({ "test 1": [at("one"), BEGUN, CLOCK] });
  assert.equal(told.at(-1).failure, "Error: a test in a page has no host.clock");
});
