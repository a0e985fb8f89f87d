"use strict";
(() => {
  const address = document.currentScript.dataset.events;
  const line = document.getElementById("live");
  const text = document.getElementById("live-text");
  const show = (open, words) => {
    line.hidden = false;
    line.classList.toggle("is-open", open);
    text.textContent = words;
  };
  const connect = () => {
    const events = new EventSource(address);
    events.addEventListener("open", () => show(true, "connected"));
    events.addEventListener("error", () => {
      show(false, "not connected: the environment may be asleep; reload to wake it");
      // After an error status a browser does not try again by itself.
      if (events.readyState === EventSource.CLOSED) setTimeout(connect, 5000);
    });
  };
  connect();
})();
