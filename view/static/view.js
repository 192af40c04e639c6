// What pages do besides showing themselves: keys, a list that is searched while one
// types, kinds of steps that are hidden, and a running job that is shown anew. Without it
// every page works as it is.
"use strict";

const main = document.getElementById("main");

// Rows that keys walk through.
const rows = () => [...main.querySelectorAll("[data-row]")].filter((r) => r.offsetParent !== null);

function walk(by) {
  const all = rows();
  if (all.length === 0) return;
  const at = all.findIndex((r) => r.classList.contains("here"));
  const next = all[at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(Math.max(at + by, 0), all.length - 1)];
  if (at >= 0) all[at].classList.remove("here");
  next.classList.add("here");
  next.scrollIntoView({ block: "nearest" });
  const link = next.querySelector("td.name a, h3 a");
  if (link) link.focus({ preventScroll: true });
}

function follow(selector) {
  const link = document.querySelector(selector);
  if (link) link.click();
}

const keys = {
  "/": () => { const q = document.getElementById("q"); if (q) { q.focus(); q.select(); } },
  j: () => walk(1),
  k: () => walk(-1),
  "[": () => follow("a[rel=prev]"),
  "]": () => follow("a[rel=next]"),
  t: () => follow("a[data-trajectory]"),
  u: () => { const way = document.querySelectorAll(".way a"); if (way.length) way[way.length - 1].click(); },
  "?": () => help.showModal(),
};

const help = document.getElementById("help");
document.getElementById("keys").addEventListener("click", () => help.showModal());

document.addEventListener("keydown", (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || help.open) return;
  if (e.target.closest("input:not([type=checkbox]), textarea, select")) {
    if (e.key === "Escape") e.target.blur();
    return;
  }
  const does = keys[e.key];
  if (does) { e.preventDefault(); does(); }
});

// A list is searched while one types; Enter asks the server, so that it has an address.
function searchWhileTyping() {
  const input = main.querySelector("input[data-filter]");
  if (!input) return;
  const list = document.getElementById(input.dataset.filter);
  if (!list) return;
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of list.querySelectorAll("tbody tr")) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((w) => text.includes(w));
    }
  });
}

// Two jobs or more are compared.
function chooseJobs() {
  const button = document.getElementById("compare");
  if (!button) return;
  const boxes = [...main.querySelectorAll("input[name=job]")];
  const look = () => { button.disabled = boxes.filter((b) => b.checked).length < 2; };
  boxes.forEach((b) => b.addEventListener("change", look));
  look();
}

// Of a long list the parts far from the window are not there: each is asked for when it
// comes near, and leaves its place when it goes. The window does not jump, for a place is
// as high as its rows.
let nearby = null;

function partsOfList() {
  if (nearby) nearby.disconnect();
  const list = document.getElementById("list");
  if (!list || !list.dataset.rows) return;
  const size = 100; // rows of a part, as the server counts them
  const found = Number(list.getAttribute("aria-rowcount")) - 1;
  const there = new Map([...list.tBodies].map((b) => [Number(b.dataset.from), b]));
  const height = list.tBodies[0].offsetHeight / list.tBodies[0].rows.length;
  nearby = new IntersectionObserver((entries) => {
    for (const e of entries) e.isIntersecting ? fill(e.target) : leave(e.target);
  }, { rootMargin: "2000px 0px" });
  for (let from = 0; from < found; from += size) {
    let part = there.get(from);
    if (!part) {
      part = document.createElement("tbody");
      part.dataset.from = from;
      keepPlace(part, height * Math.min(size, found - from));
    }
    list.append(part);
    nearby.observe(part);
  }
  list.parentElement.querySelectorAll(".turn").forEach((turn) => { turn.hidden = true; });
  const first = Math.min(...there.keys());
  if (first > 0) there.get(first).scrollIntoView();
}

function keepPlace(part, height) {
  const row = document.createElement("tr");
  const cell = row.appendChild(document.createElement("td"));
  row.className = "place";
  row.style.height = height + "px";
  cell.colSpan = 6;
  part.replaceChildren(row);
}

function leave(part) {
  part.wanted = false;
  if (part.rows.length > 1 && !part.contains(document.activeElement)) keepPlace(part, part.offsetHeight);
}

async function fill(part) {
  if (part.wanted || !part.querySelector(".place")) return;
  part.wanted = true;
  const from = new URL(part.closest("table").dataset.rows, location.href);
  from.searchParams.set("from", part.dataset.from);
  const answer = await fetch(from).catch(() => null);
  if (!answer || !answer.ok || !part.wanted) { part.wanted = false; return; }
  const page = new DOMParser().parseFromString("<table>" + await answer.text() + "</table>", "text/html");
  if (part.wanted) part.replaceChildren(...page.querySelectorAll("tr"));
  part.wanted = false;
}

// A terminal's recording is played: its moments are asked for some at a time, and a pause
// is not longer than anybody waits.
let playing = null;

function playRecording() {
  clearTimeout(playing);
  const player = document.getElementById("player");
  if (!player) return;
  const [screen, button, slider, since, speed] = ["screen", "play", "moment", "since", "speed"].map((id) => document.getElementById(id));
  const some = 100, count = Number(player.dataset.count); // as many as the server sends
  const parts = new Map();
  let at = Number(player.dataset.moment), turn = 0;

  async function load(part) {
    const from = new URL(player.dataset.moments, location.href);
    from.searchParams.set("moment", part * some + 1);
    const answer = await fetch(from);
    if (!answer.ok) throw new Error(answer.statusText);
    return [...new DOMParser().parseFromString(await answer.text(), "text/html").querySelectorAll("pre")];
  }
  const kept = document.getElementById("moments");
  async function moment(n) {
    if (kept) return kept.children[n - 1];
    const part = Math.floor((n - 1) / some);
    if (!parts.has(part)) {
      for (const old of [...parts.keys()].slice(0, -3)) parts.delete(old);
      parts.set(part, load(part));
    }
    return (await parts.get(part))[(n - 1) % some];
  }
  async function show(n) {
    const mine = ++turn;
    const found = await moment(n);
    if (mine !== turn || !found) return false;
    at = n;
    screen.replaceChildren(...found.cloneNode(true).childNodes);
    slider.value = n;
    since.textContent = found.dataset.since;
    return true;
  }
  function stop() {
    clearTimeout(playing);
    playing = null;
    button.textContent = "Play";
    button.setAttribute("aria-pressed", "false");
  }
  async function next() {
    if (at >= count) return stop();
    const [now, then] = [await moment(at), await moment(at + 1)];
    const pause = Math.min(Number(then.dataset.at) - Number(now.dataset.at), 2) * 1000 / Number(speed.value);
    playing = setTimeout(async () => { if (await show(at + 1).catch(() => false)) next().catch(stop); else stop(); }, pause);
  }
  button.addEventListener("click", async () => {
    if (playing !== null) return stop();
    button.textContent = "Pause";
    button.setAttribute("aria-pressed", "true");
    playing = 0;
    if (at >= count) await show(1).catch(stop);
    next().catch(stop);
  });
  slider.addEventListener("input", () => { stop(); show(Number(slider.value)).catch(stop); });
  slider.addEventListener("change", () => history.replaceState(null, "", withMoment(slider.value)));
  const asked = Number(new URLSearchParams(location.search).get("moment"));
  if (kept && asked) show(Math.min(Math.max(Math.floor(asked), 1), count)).catch(stop);
  player.querySelector(".controls").hidden = false;
  player.querySelector(".without").hidden = true;
}

// A moment has an address.
function withMoment(n) {
  const to = new URL(location.href);
  to.searchParams.set("moment", n);
  return to;
}

// Kinds of steps that are hidden are part of the address.
function hideKinds() {
  const boxes = [...main.querySelectorAll("[data-kinds] input")];
  if (boxes.length === 0) return;
  const hidden = new Set((new URLSearchParams(location.search).get("hide") || "").split(",").filter(Boolean));
  const put = (to) => { if (hidden.size) to.searchParams.set("hide", [...hidden].join(",")); else to.searchParams.delete("hide"); return to; };
  const apply = () => {
    for (const box of boxes) {
      box.checked = !hidden.has(box.value);
      main.classList.toggle("hide-" + box.value, hidden.has(box.value));
    }
    for (const link of main.querySelectorAll(".turn a, .choices a")) link.href = put(new URL(link.href));
  };
  for (const box of boxes) {
    box.addEventListener("change", () => {
      if (box.checked) hidden.delete(box.value); else hidden.add(box.value);
      history.replaceState(null, "", put(new URL(location.href)));
      apply();
    });
  }
  apply();
}

// Pages without a server choose and search by themselves, by the same addresses.
function chooseHere() {
  if (!("still" in document.body.dataset)) return;
  const asked = new URLSearchParams(location.search);
  const q = document.getElementById("q");
  const word = asked.get(q ? q.name : "q") || "";
  if (q && word) { q.value = word; q.dispatchEvent(new Event("input")); }
  const lines = document.getElementById("lines");
  if (lines && word) {
    for (const line of lines.children) {
      const hit = line.textContent.toLowerCase().includes(word.toLowerCase());
      line.classList.toggle("hit", hit);
      line.toggleAttribute("data-row", hit);
    }
  }
  const filters = document.getElementById("filters");
  const want = { outcome: asked.get("outcome"), error: asked.get("error"), task: asked.get("task") };
  if (!filters || !Object.values(want).some(Boolean)) return;
  const all = [...document.querySelectorAll("#list tbody tr")];
  for (const row of all) {
    const d = row.dataset;
    row.hidden = Boolean((want.outcome && d.outcome !== want.outcome) || (want.error && d.error !== want.error) || (want.task && !d.task.includes(want.task)));
  }
  document.getElementById("found").textContent = all.filter((row) => !row.hidden).length;
  filters.querySelector(".chip").textContent = Object.entries(want).filter(([, v]) => v).map(([k, v]) => k + " " + v).join(", ");
  filters.hidden = false;
  if (location.hash) document.querySelector(location.hash)?.scrollIntoView();
}

// What an address names is opened.
function openNamed() {
  const at = location.hash && document.getElementById(location.hash.slice(1));
  const folded = at && at.querySelector(":scope > details");
  if (folded) folded.open = true;
}
addEventListener("hashchange", openNamed);

function start() {
  searchWhileTyping();
  chooseJobs();
  partsOfList();
  playRecording();
  hideKinds();
  chooseHere();
  openNamed();
}

// What people have done to a page stays when it is shown anew.
async function refresh() {
  const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
  if (!answer.ok) return false;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const open = [...main.querySelectorAll("details")].map((d) => d.open);
  const here = rows().findIndex((r) => r.classList.contains("here"));
  const typed = document.getElementById("q");
  const focused = document.activeElement && document.activeElement.id;
  const at = scrollY;
  main.replaceChildren(...page.getElementById("main").childNodes);
  [...main.querySelectorAll("details")].forEach((d, i) => { if (i < open.length) d.open = open[i]; });
  const q = document.getElementById("q");
  if (typed && q) q.value = typed.value;
  if (here >= 0 && rows()[here]) rows()[here].classList.add("here");
  if (focused && document.getElementById(focused)) document.getElementById(focused).focus({ preventScroll: true });
  start();
  scrollTo({ top: at, behavior: "instant" });
  return page.body.dataset.changes !== undefined;
}

function live() {
  const from = document.body.dataset.changes;
  if (!from) return;
  const sign = document.getElementById("live");
  const stream = new EventSource(from);
  let due = 0;
  const show = async () => {
    due = 0;
    const running = await refresh().catch(() => true);
    if (!running) { stream.close(); sign.classList.remove("on"); sign.textContent = "ended"; }
  };
  stream.addEventListener("open", () => { sign.classList.add("on"); sign.textContent = "live"; });
  stream.addEventListener("error", () => { sign.classList.remove("on"); sign.textContent = "not connected"; });
  stream.addEventListener("change", () => { if (!due) due = setTimeout(show, 400); });
}

start();
live();
