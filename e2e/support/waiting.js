// Waiting for values.

import { setTimeout as pause } from "node:timers/promises";

/** Far more than anything here takes on a busy machine, in milliseconds. */
export const PATIENCE = 60_000;

/** The pause between two looks, in milliseconds. */
const LOOK = 25;

/**
 * Looks until there is a value that is neither `undefined`, `null` nor `false`, and returns it.
 *
 * @param {string} what what is waited for, in words; stands in the error after `patience`
 * @param {() => any} look may be asynchronous; an error that it throws ends the waiting
 */
export async function until(what, look, patience = PATIENCE) {
  const deadline = Date.now() + patience;
  for (;;) {
    const value = await look();
    if (value !== undefined && value !== null && value !== false) {
      return value;
    }
    if (Date.now() > deadline) {
      throw new Error(`waited in vain: ${what}`);
    }
    await pause(LOOK);
  }
}
