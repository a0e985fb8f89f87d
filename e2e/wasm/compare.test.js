import assert from "node:assert/strict";
import test from "node:test";

import { compare } from "./compare.js";

const NATIVE = ["a::one", "a::two", "a::properties::many", "a::properties::world::more", "a::random::life"];
const passed = (...names) => new Map(names.map((name) => [name, undefined]));

test("a run with the same tests passes, properties aside", () => {
  const { lines, passed: well } = compare(passed("a::two", "a::one"), NATIVE);
  assert.ok(well);
  assert.match(lines.at(-1), /^2 tests in the page, 0 failed; 5 natively, of which 3 /);
});

test("whatever differs fails the run and is named", () => {
  const table = [
    [new Map([["a::one", undefined], ["a::two", "panicked"]]), "failed:", "a::two"],
    [new Map([["a::one", undefined], ["a::two", ""]]), "failed:", "a::two"],
    [passed("a::one"), "natively, but not in the page:", "a::two"],
    [passed("a::one", "a::two", "b::new"), "in the page, but not natively:", "b::new"],
    [passed("a::one", "a::two", "a::properties::many"), "in the page, but not natively:", "a::properties::many"],
  ];
  for (const [results, title, name] of table) {
    const { lines, passed: well } = compare(results, NATIVE);
    assert.ok(!well, title);
    assert.deepEqual(lines.slice(0, -2), ["", title, `  ${name}`]);
  }
});

test("a test is native only by its module, not by its own name", () => {
  assert.ok(!compare(passed("a::one"), ["a::one", "a::random"]).passed);
});

test("a run without tests does not pass", () => {
  assert.ok(!compare(passed(), []).passed);
  assert.ok(!compare(passed(), ["a::properties::many"]).passed);
});
