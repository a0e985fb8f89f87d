const main = document.querySelector("main");
const now = document.querySelector(".now");
const phase = document.querySelector(".phase");
const words = JSON.parse(main.dataset.words);
let wait = 300;
async function look() {
  try {
    const answer = await fetch(main.dataset.status, { cache: "no-store", credentials: "same-origin" });
    if (answer.ok) {
      const status = await answer.json();
      if (status.ready || !status.waiting) return location.reload();
      phase.textContent = status.phase;
      now.textContent = status.reason || words[status.phase] || now.textContent;
    } else if (answer.status < 500) {
      return location.reload();
    }
  } catch {
    now.textContent = words.offline;
  }
  wait = Math.min(wait * 1.25, 2000);
  setTimeout(look, wait);
}
setTimeout(look, wait);
