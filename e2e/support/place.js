// Where things are, and that they are there.

import { existsSync, realpathSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

/** The root of the checkout. */
export const ROOT = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../..");

/** What `cargo xtask setup` installs. */
export const TOOLS = path.join(ROOT, ".tools");

/** Where cargo builds. */
const TARGET = path.resolve(ROOT, process.env.CARGO_TARGET_DIR ?? "target");

/** Where the browser's pictures go. */
export const PICTURES = path.join(TARGET, "e2e");

/** A file that must be there. */
export function required(file, what) {
  if (!existsSync(file)) {
    throw new Error(`${what} is missing (${file}): run \`cargo xtask setup\``);
  }
  return file;
}

/** The program under test: `WAKEFUL_BIN`, else what `cargo build` makes. */
export function binary() {
  const file = process.env.WAKEFUL_BIN ?? path.join(TARGET, "debug/wakeful");
  if (!existsSync(file)) {
    throw new Error(`${file} is missing: run \`cargo build\``);
  }
  return file;
}

/** What sandboxes must be able to read so that the installed programs run in them. */
export function readable() {
  const python = path.join(TOOLS, "python/bin/python3");
  // A virtual environment uses the libraries of the Python that it was made from.
  return existsSync(python) ? [TOOLS, path.resolve(realpathSync(python), "../..")] : [TOOLS];
}
