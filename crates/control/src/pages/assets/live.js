// Keeps the parts of a page that are marked `data-live` as the server would render them now.
// Without it a page is right as of when it was loaded.
"use strict";

(() => {
  const REFRESH_MS = 30_000;
  const SETTLE_MS = 120;
  let source = null;
  let timer = 0;
  let running = false;
  let again = false;

  // Something is being typed or chosen in this part: it is left alone.
  const inUse = (part) => {
    const focused = document.activeElement;
    return part.contains(focused) && focused.matches("input, select, textarea, summary");
  };

  const swap = (fresh) => {
    for (const part of document.querySelectorAll("[data-live]")) {
      const next = fresh.getElementById(part.id);
      if (next === null || inUse(part) || next.innerHTML === part.innerHTML) {
        continue;
      }
      const log = part.querySelector("pre");
      const atEnd = log !== null && log.scrollTop + log.clientHeight >= log.scrollHeight - 8;
      part.replaceWith(document.adoptNode(next));
      if (atEnd) {
        scrollToEnd(next);
      }
    }
  };

  const scrollToEnd = (part) => {
    const log = part.querySelector("pre");
    if (log !== null) {
      log.scrollTop = log.scrollHeight;
    }
  };

  const refresh = async () => {
    if (running) {
      again = true;
      return;
    }
    running = true;
    try {
      const response = await fetch(location.pathname + location.search, { cache: "no-store" });
      if (response.ok) {
        swap(new DOMParser().parseFromString(await response.text(), "text/html"));
      } else if (response.status === 401 || response.status === 404) {
        location.reload();
      }
    } catch {
      // The connection is lost; the event stream comes back by itself and refreshes then.
    } finally {
      running = false;
      if (again) {
        again = false;
        soon();
      }
    }
  };

  const soon = () => {
    clearTimeout(timer);
    timer = setTimeout(refresh, SETTLE_MS);
  };

  const last = new Map();

  // Whether an event says something that the page does not show yet.
  const changed = (environment) => {
    const { id, phase, generation, surfaces, failure } = environment;
    const state = JSON.stringify([phase, generation, surfaces, failure]);
    const before = last.get(id);
    last.set(id, state);
    if (before !== undefined) {
      return before !== state;
    }
    const shown = document.querySelector(`[data-env="${CSS.escape(id)}"]`);
    return (
      shown !== null &&
      (shown.dataset.phase !== phase || shown.dataset.generation !== String(generation))
    );
  };

  const open = () => {
    if (source !== null || document.hidden) {
      return;
    }
    source = new EventSource("/api/events");
    source.addEventListener("environment", (event) => {
      if (changed(JSON.parse(event.data))) {
        soon();
      }
    });
  };

  const close = () => {
    source?.close();
    source = null;
  };

  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      close();
    } else {
      open();
      soon();
    }
  });
  addEventListener("pagehide", close);
  addEventListener("pageshow", open);
  setInterval(() => {
    if (!document.hidden) {
      refresh();
    }
  }, REFRESH_MS);
  for (const part of document.querySelectorAll("[data-live]")) {
    scrollToEnd(part);
  }
  open();
})();
