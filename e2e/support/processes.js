// Processes of this machine that belong to a data directory.

import { readFileSync, readdirSync, readlinkSync } from "node:fs";

/** Reads what may be gone meanwhile. */
function look(read) {
  try {
    return read();
  } catch {
    return "";
  }
}

function lives(pid) {
  const stat = look(() => readFileSync(`/proc/${pid}/stat`, "latin1"));
  const state = stat.slice(stat.lastIndexOf(")") + 2).charAt(0);
  return state !== "" && state !== "Z" && state !== "X";
}

/** The ids of those that a sandbox of this data directory marked, or that work inside it. */
export function ofDataDirectory(data) {
  const inside = (file) => file === data || file.startsWith(`${data}/`);
  return readdirSync("/proc")
    .filter((name) => /^[0-9]+$/.test(name))
    .map(Number)
    .filter((pid) => {
      const environment = look(() => readFileSync(`/proc/${pid}/environ`, "latin1")).split("\0");
      const run = environment.find((pair) => pair.startsWith("WAKEFUL_RUN_DIR="));
      const marked = run !== undefined && inside(run.slice(run.indexOf("=") + 1));
      return (marked || inside(look(() => readlinkSync(`/proc/${pid}/cwd`)))) && lives(pid);
    });
}

/** Kills a process at once, if it still lives. */
export function kill(pid) {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if (error.code !== "ESRCH") {
      throw error;
    }
  }
}
