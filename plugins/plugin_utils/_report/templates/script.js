"use strict";
// Sorting, filtering and copying. Without this script, the page is complete and readable.
// What is shown is in the address (#show=drift&group=web), so that it can be sent to somebody.
(() => {
  const $ = (id) => document.getElementById(id);
  const matrix = $("matrix");
  const body = matrix.tBodies[0];
  const headings = Array.from(matrix.tHead.rows[0].cells);
  const split = (text, by) => (text ? text.split(by) : []);
  const rows = Array.from(body.rows, (row) => ({
    row,
    section: $(row.dataset.host),
    name: row.cells[0].textContent.trim(),
    tags: split(row.dataset.tags, " "),
    causes: split(row.dataset.causes, " "),
    groups: split(row.dataset.groups, "\n"),
    runtimes: split(row.dataset.runtimes, "\n"),
    text: "",
    keys: Array.from(row.cells, keyOf),
  }));
  const order = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

  // ---- the address: what is shown, of which runtime, group and cause, with which words, in which order, and which host is open

  const KEYS = ["show", "runtime", "group", "cause", "q", "sort", "host"];
  let state = {};

  function read() {
    const given = new URLSearchParams(location.hash.slice(1));
    return Object.fromEntries(KEYS.map((key) => [key, given.get(key) || ""]));
  }

  const addressOf = (shown) => new URLSearchParams(KEYS.filter((key) => shown[key]).map((key) => [key, shown[key]]));

  // Words are typed letter by letter, so they must not fill the history.
  function go(changes, replace = false) {
    const query = "#" + addressOf({ ...state, ...changes });
    if (replace) location.replace(query);
    else location.hash = query;
    follow();
  }

  // ---- sorting

  function keyOf(cell) {
    return cell.dataset.sort === undefined ? cell.textContent.trim() : Number(cell.dataset.sort);
  }

  const compare = (a, b) => (typeof a === "number" ? a - b : order.compare(a, b));

  let sorted = "1";
  function sort() {
    const wanted = /^-?\d$/.test(state.sort) && Math.abs(state.sort) < headings.length ? state.sort : "1";
    if (wanted === sorted) return;
    sorted = wanted;
    const column = Math.abs(wanted);
    const down = wanted.startsWith("-");
    headings.forEach((heading) => heading.removeAttribute("aria-sort"));
    headings[column].setAttribute("aria-sort", down ? "descending" : "ascending");
    rows.sort((a, b) => compare(a.keys[column], b.keys[column]) * (down ? -1 : 1) || order.compare(a.name, b.name));
    body.append(...rows.map((entry) => entry.row));
  }

  for (const [column, heading] of headings.entries()) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = heading.textContent;
    button.addEventListener("click", () => {
      const down = heading.getAttribute("aria-sort") === "ascending";
      go({ sort: (down ? "-" : "") + column });
    });
    heading.replaceChildren(button);
  }

  // ---- filtering

  // The content of a section is text in a noscript element until the section is opened. The text is HTML that the report
  // generated, like the rest of the page.
  function build(section) {
    const kept = section.querySelector(":scope > noscript");
    if (kept) {
      const nodes = new DOMParser().parseFromString(kept.textContent, "text/html").body.childNodes;
      kept.replaceWith(...nodes);
      addCopyButtons(section);
    }
  }

  // Without the commands, because their words would match every host.
  function textOf(entry) {
    const kept = entry.section.querySelector(":scope > noscript");
    const inside = kept ? kept.textContent.replace(/<code.*?<\/code>|<[^>]*>/gs, " ") : entry.section.textContent;
    return (entry.row.textContent + " " + inside).toLowerCase();
  }

  for (const { section } of rows) {
    section.addEventListener("toggle", () => section.open && build(section));
  }

  const find = $("find");

  function fits(entry, words) {
    if (state.show && !entry.tags.includes(state.show)) return false;
    if (state.runtime && !entry.runtimes.includes(state.runtime)) return false;
    if (state.group && !entry.groups.includes(state.group)) return false;
    if (state.cause && !entry.causes.includes(state.cause)) return false;
    if (words.length && !entry.text) entry.text = textOf(entry);
    return words.every((word) => entry.text.includes(word));
  }

  function apply() {
    const words = state.q.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const entry of rows) {
      const hidden = !fits(entry, words);
      entry.row.hidden = hidden;
      entry.section.hidden = hidden;
      shown += hidden ? 0 : 1;
    }
    const filtered = ["show", "runtime", "group", "cause", "q"].some((key) => state[key]);
    $("nothing").hidden = shown > 0;
    $("clear").hidden = !filtered;
    $("showing").value = filtered ? `${shown.toLocaleString("en")} of ${rows.length.toLocaleString("en")}` : "";
    for (const link of document.querySelectorAll("[data-show] > a, [data-cause] > a")) {
      const { show, cause } = link.parentElement.dataset;
      link.ariaCurrent = (cause === undefined ? show === state.show : cause === state.cause) ? "true" : null;
    }
    if (find.value !== state.q) find.value = state.q;
    $("runtime").value = state.runtime;
    $("group").value = state.group;
  }

  function fill(select, key) {
    const names = [...new Set(rows.flatMap((entry) => entry[key]))].sort(order.compare);
    select.append(...names.map((name) => new Option(name, name)));
    select.parentElement.hidden = names.length < 2;
  }
  fill($("runtime"), "runtimes");
  fill($("group"), "groups");
  find.addEventListener("input", () => go({ q: find.value }, true));
  $("runtime").addEventListener("change", () => go({ runtime: $("runtime").value }));
  $("group").addEventListener("change", () => go({ group: $("group").value }));
  $("clear").addEventListener("click", () => go({ show: "", runtime: "", group: "", cause: "", q: "" }));

  // Tiles and causes become links, which keep the rest of the filter.
  function link(element, key, value) {
    const anchor = document.createElement("a");
    anchor.href = `#${key}=${encodeURIComponent(value)}`;
    anchor.append(...element.childNodes);
    anchor.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      go({ [key]: state[key] === value ? "" : value });
      if (key === "cause") $("hosts").scrollIntoView();
    });
    element.append(anchor);
  }
  document.querySelectorAll("[data-show]").forEach((tile) => link(tile, "show", tile.dataset.show));
  document.querySelectorAll("[data-cause]").forEach((count) => link(count, "cause", count.dataset.cause));
  $("filter").hidden = rows.length < 2;

  // ---- hosts

  function open(section, place) {
    build(section);
    section.hidden = false;
    section.open = true;
    (place || section).scrollIntoView();
  }

  // A link to a place on the page (h3-pools) leads to the name of the host: places differ from report to report.
  function follow() {
    const place = location.hash.slice(1);
    const section = /^h\d+(-[a-z]+)?$/.test(place) && $(place.split("-")[0]);
    if (section) {
      const entry = rows.find((one) => one.section === section);
      const part = place.split("-")[1];
      build(section);
      state = { ...state, host: entry.name };
      history.replaceState(null, "", "#" + addressOf(state));
      open(section, part && $(place));
      section.querySelector("summary").focus({ preventScroll: true });
      return;
    }
    const before = state.host;
    state = read();
    sort();
    apply();
    const entry = state.host && state.host !== before && rows.find((one) => one.name === state.host);
    if (entry) open(entry.section);
  }
  addEventListener("hashchange", follow);

  // ---- copying

  async function copy(code) {
    try {
      await navigator.clipboard.writeText(code.textContent);
    } catch {
      // Pages from files may not have a clipboard; a selection can always be copied.
      getSelection().selectAllChildren(code);
      if (!document.execCommand("copy")) return say("Press Ctrl+C to copy");
    }
    say("Copied");
    const button = code.parentElement.querySelector("button");
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 2000);
  }

  const say = (text) => ($("said").textContent = text);

  function addCopyButtons(element) {
    for (const code of element.querySelectorAll(".command > code")) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = "Copy";
      button.setAttribute("aria-label", `Copy: ${code.parentElement.querySelector("span")?.textContent || "command"}`);
      button.addEventListener("click", () => copy(code));
      code.after(button);
    }
  }
  addCopyButtons(document);

  // ---- printing: what is on the screen, and the sections of the hosts that need attention

  let opened = [];
  addEventListener("beforeprint", () => {
    opened = rows.map((entry) => entry.section).filter((section) => !section.open && !section.hidden && section.dataset.level !== "clean");
    opened.forEach((section) => {
      build(section);
      section.open = true;
    });
  });
  addEventListener("afterprint", () => opened.forEach((section) => (section.open = false)));

  rows.filter((entry) => entry.section.open).forEach((entry) => build(entry.section));
  follow();
})();
