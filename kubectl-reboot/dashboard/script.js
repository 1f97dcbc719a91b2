"use strict";
(() => {
  const silence = 50000; // milliseconds without an event until the page shows that it is old
  const live = document.body.dataset.live === "true";
  const $ = (id) => document.getElementById(id);

  // morph makes one element like another and keeps what has not changed: focus, selection and open details stay.
  const key = (n) => (n.nodeType === 1 ? n.dataset.key || n.id : "");
  const ours = ["open", "tabindex", "aria-current", "aria-pressed", "hidden"]; // what this script sets
  function morph(from, to) {
    if (from.isEqualNode(to)) return;
    if (from.nodeName !== to.nodeName || key(from) !== key(to)) return from.replaceWith(to);
    if (from.nodeType !== 1) {
      from.nodeValue = to.nodeValue;
      return;
    }
    for (const a of [...from.attributes]) if (!to.hasAttribute(a.name) && !ours.includes(a.name)) from.removeAttribute(a.name);
    for (const a of [...to.attributes]) if (from.getAttribute(a.name) !== a.value && !ours.includes(a.name)) from.setAttribute(a.name, a.value);
    const known = new Map([...from.children].filter(key).map((c) => [key(c), c]));
    let at = from.firstChild;
    for (const child of [...to.childNodes]) {
      const mine = key(child) ? known.get(key(child)) : at && !key(at) ? at : null;
      if (!mine) {
        from.insertBefore(child, at);
        continue;
      }
      if (mine === at) at = at.nextSibling;
      else from.insertBefore(mine, at);
      morph(mine, child);
    }
    while (at) {
      const next = at.nextSibling;
      at.remove();
      at = next;
    }
  }

  // Spans of time, as the plugin writes them.
  function span(ms) {
    const s = Math.max(0, Math.floor(ms / 1000)), m = Math.floor(s / 60), h = Math.floor(m / 60), d = Math.floor(h / 24);
    if (s < 120) return s + "s";
    if (m < 10) return m + "m" + (s % 60 ? (s % 60) + "s" : "");
    if (m < 180) return m + "m";
    if (h < 8) return h + "h" + (m % 60 ? (m % 60) + "m" : "");
    if (h < 48) return h + "h";
    if (d < 8) return d + "d" + (h % 24 ? (h % 24) + "h" : "");
    return d + "d";
  }
  function spans() {
    for (const t of document.querySelectorAll("time[data-span]")) {
      const off = Date.parse(t.dateTime) - Date.now();
      const text = t.dataset.span === "since" ? span(-off) : off > 0 ? "in " + span(off) : "now";
      if (t.textContent !== text) t.textContent = text;
    }
  }

  // Tiles: one of them takes part in the order of Tab, arrow keys move on.
  const tiles = () => [...document.querySelectorAll(".tiles .tile")];
  const shown = () => tiles().filter((t) => !t.parentNode.hidden);
  let chosen = "";
  function filter() {
    const words = $("find") ? $("find").value.trim().toLowerCase() : "";
    const only = [...document.querySelectorAll("[data-only][aria-pressed=true]")].map((b) => b.dataset.only);
    for (const t of tiles()) {
      const fits = t.getAttribute("aria-label").toLowerCase().includes(words) && (!only.length || only.some((s) => t.classList.contains(s)));
      if (t.parentNode.hidden === fits) t.parentNode.hidden = !fits;
    }
    const all = shown();
    const first = all.find((t) => t.dataset.node === chosen) || all[0];
    for (const t of tiles()) t.tabIndex = t === first ? 0 : -1;
  }
  function detail() {
    const tile = tiles().find((t) => t.dataset.node === chosen);
    $("detail").hidden = !tile;
    if (!tile) return;
    const text = tile.getAttribute("aria-label") + (tile.dataset.message ? ". " + tile.dataset.message : "") + " — ";
    const command = ("kubectl reboot explain " + chosen + " " + document.body.dataset.flags).trim();
    const code = document.createElement("code"), copy = document.createElement("button");
    code.textContent = command;
    Object.assign(copy, { type: "button", className: "copy", textContent: "copy" });
    copy.dataset.copy = command;
    copy.setAttribute("aria-label", "Copy: " + command);
    const head = $("detail").firstElementChild;
    if (head.textContent !== text + command + " copy") head.replaceChildren(text, code, " ", copy);
    explain(chosen);
    for (const t of tiles()) t === tile ? t.setAttribute("aria-current", "true") : t.removeAttribute("aria-current");
  }
  // The whole answer of kubectl reboot explain, from the server of this page.
  async function explain(node) {
    if (!live) return;
    try {
      const answer = await fetch("explain?node=" + encodeURIComponent(node));
      const text = answer.ok ? await answer.text() : "";
      const pre = $("detail").querySelector("pre");
      if (node !== chosen) return;
      if (pre.textContent !== text) pre.textContent = text;
      pre.hidden = !text;
    } catch {
      // the page already shows that it is old
    }
  }
  // A link to one node: #node=NAME.
  function fromAddress() {
    const name = decodeURIComponent(location.hash.replace(/^#node=/, ""));
    chosen = location.hash.startsWith("#node=") && tiles().some((t) => t.dataset.node === name) ? name : chosen;
  }
  function refresh() {
    filter();
    detail();
    if (live) spans();
    const headline = document.querySelector("[data-title]");
    if (headline) document.title = headline.dataset.title;
  }

  document.addEventListener("click", async (e) => {
    const only = e.target.closest("[data-only]"), tile = e.target.closest(".tiles .tile"), copy = e.target.closest("[data-copy]");
    if (only) {
      only.setAttribute("aria-pressed", only.getAttribute("aria-pressed") !== "true");
      filter();
    } else if (tile) {
      chosen = tile.dataset.node === chosen ? "" : tile.dataset.node;
      if (!chosen) tile.removeAttribute("aria-current");
      history.replaceState(null, "", chosen ? "#node=" + encodeURIComponent(chosen) : location.pathname);
      refresh();
    } else if (copy) {
      try {
        await navigator.clipboard.writeText(copy.dataset.copy);
        copy.textContent = "copied";
        setTimeout(() => (copy.textContent = "copy"), 1500);
      } catch {
        getSelection().selectAllChildren(copy.previousElementSibling);
      }
    }
  });
  document.addEventListener("input", (e) => e.target.id === "find" && filter());
  document.addEventListener("keydown", (e) => {
    const all = shown(), at = all.indexOf(document.activeElement);
    if (at < 0) return;
    const top = all[at].getBoundingClientRect().top;
    const below = all.findIndex((t) => t.getBoundingClientRect().top > top);
    const columns = Math.max(1, (below < 0 ? all.length : below) - all.findIndex((t) => t.getBoundingClientRect().top >= top));
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, ArrowDown: at + columns, ArrowUp: at - columns, Home: 0, End: all.length - 1 }[e.key];
    if (to === undefined || !all[to]) return;
    e.preventDefault();
    all[at].tabIndex = -1;
    all[to].tabIndex = 0;
    all[to].focus();
  });
  fromAddress();
  addEventListener("hashchange", () => {
    fromAddress();
    refresh();
  });
  refresh();
  if (!live) return;

  // Sections that changed come by server-sent events.
  let received = Date.now();
  function show(text, old) {
    if ($("live").textContent !== text) $("live").textContent = text;
    $("live").classList.toggle("old", old);
  }
  const parser = new DOMParser();
  const events = new EventSource("events");
  const alive = () => {
    received = Date.now();
    show("live", false);
  };
  events.onopen = alive;
  events.addEventListener("beat", alive);
  events.onmessage = (e) => {
    alive();
    for (const [name, html] of Object.entries(JSON.parse(e.data))) {
      const to = $(name).cloneNode(false);
      to.append(...parser.parseFromString(html, "text/html").body.childNodes);
      morph($(name), to);
    }
    refresh();
  };
  const old = () => show("OLD: no answer since " + new Date(received).toLocaleTimeString() + "; is kubectl reboot dashboard still running?", true);
  events.onerror = old;
  setInterval(() => {
    spans();
    if (Date.now() - received > silence) old();
  }, 1000);
})();
