// Runs in the page: every test of a module, one after the other.

/** What the exports of tests begin with. */
const MARK = "test ";

/** The text that a test points to. */
const text = (memory, start, bytes) => new TextDecoder().decode(new Uint8Array(memory.buffer, start, bytes));

/** What the module asks for: the page's own two functions, and a refusal in the place of all others. */
function imports(module, page) {
  const given = {};
  for (const { module: from, name } of WebAssembly.Module.imports(module)) {
    given[from] ??= {};
    given[from][name] = () => {
      throw new Error(`a test in a page has no ${from}.${name}`);
    };
  }
  return { ...given, page };
}

/**
 * Runs one test in an instance of its own, and returns why it failed; `undefined` if it did not.
 *
 * @param {(name: string) => void} begun is told the name before the test does anything
 */
async function run(module, key, begun) {
  let memory;
  let failure;
  const page = {
    begun: (start, bytes) => begun(text(memory, start, bytes)),
    failed: (start, bytes) => {
      failure = text(memory, start, bytes);
    },
  };
  const instance = await WebAssembly.instantiate(module, imports(module, page));
  memory = instance.exports.memory;
  try {
    instance.exports[key]();
  } catch (error) {
    // A panic has said more about itself than its trap does.
    failure ??= `${error}`;
  }
  return failure;
}

/**
 * Runs the tests of a compiled module. Each is told twice, when it begins and when it has ended:
 * `told({ name })`, `told({ name, ended: true, failure })`.
 */
export async function all(module, told) {
  const keys = WebAssembly.Module.exports(module)
    .map(({ name }) => name)
    .filter((name) => name.startsWith(MARK));
  for (const key of keys) {
    let name = key;
    const failure = await run(module, key, (its) => {
      name = its;
      told({ name });
    });
    await told({ name, ended: true, failure });
  }
}
