// What the page tells while its tests run, and that it goes on.

/** How long one test may take before it counts as one that does not end, in milliseconds. */
const PATIENCE = 60_000;

/** Follows a run of tests. */
export class Watch {
  /** Why each test that has ended failed, by its name; `undefined` if it did not. */
  results = new Map();
  /** Rejects once no more is to be expected. */
  broken;
  #break;
  #say;
  #patience;
  #timer;
  #last = "none";

  /** @param {(line: string) => void} say is given a line for every test that has ended */
  constructor(say, patience = PATIENCE) {
    this.#say = say;
    this.#patience = patience;
    this.broken = new Promise((_, reject) => {
      this.#break = reject;
    });
    // Who does not wait for it is not troubled by it.
    this.broken.catch(() => {});
    this.#wait();
  }

  /** Takes what `all` of `page.js` tells. */
  told({ name, ended = false, failure }) {
    this.#wait();
    this.#last = name;
    if (!ended) {
      return;
    }
    if (this.results.has(name)) {
      this.broke("two tests have one name");
    }
    this.results.set(name, failure);
    this.#say(failure === undefined ? `  PASS ${name}` : `  FAIL ${name}\n${failure}\n`);
  }

  /** Ends the run, for a reason. */
  broke(why) {
    this.over();
    this.#break(new Error(`${why}; the last test that was told of: ${this.#last}`));
  }

  /** No more is waited for. */
  over() {
    clearTimeout(this.#timer);
  }

  #wait() {
    clearTimeout(this.#timer);
    const late = () => this.broke(`nothing happened for ${this.#patience} ms`);
    this.#timer = setTimeout(late, this.#patience);
  }
}
