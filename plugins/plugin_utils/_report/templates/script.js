"use strict";
// Sorting, filtering, and the choice of light or dark. Without this script, the page is complete and readable.
(() => {
  const root = document.documentElement;
  const matrix = document.getElementById("matrix");
  const body = matrix.tBodies[0];
  const rows = Array.from(body.rows, (row) => ({
    row,
    section: document.getElementById(row.dataset.host),
    text: "",
    keys: Array.from(row.cells, keyOf),
  }));
  const order = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

  function keyOf(cell) {
    return cell.dataset.sort === undefined ? cell.textContent.trim() : Number(cell.dataset.sort);
  }

  function compare(a, b) {
    return typeof a === "number" ? a - b : order.compare(a, b);
  }

  function sortBy(column, heading) {
    const down = heading.getAttribute("aria-sort") === "ascending";
    for (const other of matrix.tHead.rows[0].cells) {
      other.removeAttribute("aria-sort");
    }
    heading.setAttribute("aria-sort", down ? "descending" : "ascending");
    rows.sort((a, b) => {
      const by = compare(a.keys[column], b.keys[column]) * (down ? -1 : 1);
      return by || order.compare(a.keys[0], b.keys[0]);
    });
    body.append(...rows.map((entry) => entry.row));
  }

  for (const [column, heading] of Array.from(matrix.tHead.rows[0].cells).entries()) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = heading.textContent;
    button.addEventListener("click", () => sortBy(column, heading));
    heading.replaceChildren(button);
  }

  // The content of a section is text in a noscript element until the section is opened. The text is HTML that the report
  // generated, like the rest of the page.
  function build(section) {
    const kept = section.querySelector(":scope > noscript");
    if (kept) {
      kept.replaceWith(...new DOMParser().parseFromString(kept.textContent, "text/html").body.childNodes);
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
    if (section.open) {
      build(section);
    }
  }

  const filter = document.getElementById("filter");
  const find = document.getElementById("find");
  const showing = document.getElementById("showing");
  const buttons = Array.from(filter.querySelectorAll("[data-status]"));
  let status = "";

  function apply() {
    const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const entry of rows) {
      if (words.length && !entry.text) {
        entry.text = textOf(entry);
      }
      const fits = (!status || entry.row.dataset.status === status) && words.every((word) => entry.text.includes(word));
      entry.row.hidden = !fits;
      entry.section.hidden = !fits;
      shown += fits ? 1 : 0;
    }
    document.getElementById("nothing").hidden = shown > 0;
    showing.value = shown === rows.length ? "" : `${shown.toLocaleString("en")} of ${rows.length.toLocaleString("en")}`;
  }

  for (const button of buttons) {
    button.addEventListener("click", () => {
      status = button.dataset.status;
      buttons.forEach((other) => other.setAttribute("aria-pressed", String(other === button)));
      apply();
    });
  }
  find.addEventListener("input", apply);
  filter.hidden = false;

  // A link into a closed or filtered section opens it.
  function reveal() {
    const id = location.hash.slice(1);
    const section = document.getElementById(id.split("-")[0]);
    if (section && section.matches("details.host")) {
      build(section);
      section.hidden = false;
      section.open = true;
      (document.getElementById(id) || section).scrollIntoView();
    }
  }
  addEventListener("hashchange", reveal);
  reveal();

  // A printout has what is on the screen, and the sections of the hosts that need attention.
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = rows.map((entry) => entry.section).filter((section) => !section.open && !section.hidden && section.dataset.status !== "clean");
    opened.forEach((section) => {
      build(section);
      section.open = true;
    });
  });
  addEventListener("afterprint", () => opened.forEach((section) => (section.open = false)));

  const theme = document.getElementById("theme");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);
  const label = () => (theme.textContent = isDark() ? "Light" : "Dark");
  theme.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    label();
  });
  dark.addEventListener("change", label);
  label();
  theme.hidden = false;
})();
