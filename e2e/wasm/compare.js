// What became of the tests in the page, beside what there is natively.

/** What modules of properties are called, which go through random inputs and run natively only. */
const NATIVE_ONLY = ["properties", "random"];

/** Whether a test is not meant for the page. */
const isNativeOnly = (name) => name.split("::").slice(0, -1).some((module) => NATIVE_ONLY.includes(module));

/** A title with names below it, if there are any. */
const list = (title, names) => (names.length === 0 ? [] : ["", title, ...names.map((name) => `  ${name}`)]);

/**
 * Says how a run went. It passed if every test passed, and if the same tests ran in the page as
 * there are natively, properties aside.
 *
 * @param {Map<string, string | undefined>} results why each test of the page failed
 * @param {string[]} native the names of all tests natively
 * @returns {{ lines: string[], passed: boolean }}
 */
export function compare(results, native) {
  const meant = native.filter((name) => !isNativeOnly(name));
  const failed = [...results.keys()].filter((name) => results.get(name) !== undefined);
  const absent = meant.filter((name) => !results.has(name));
  const strange = [...results.keys()].filter((name) => !meant.includes(name));
  const lines = [
    ...list("failed:", failed),
    ...list("natively, but not in the page:", absent),
    ...list("in the page, but not natively:", strange),
    "",
    `${results.size} tests in the page, ${failed.length} failed; ` +
      `${native.length} natively, of which ${native.length - meant.length} are properties and run only there`,
  ];
  return { lines, passed: meant.length > 0 && failed.length + absent.length + strange.length === 0 };
}
