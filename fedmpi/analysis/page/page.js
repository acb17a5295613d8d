"use strict";
// The page reads and prints without scripts; they sort, filter and copy tables, hide series and choose a run.
document.documentElement.classList.add("scripted");
const hidden = new Set(); // Names whose buttons are off, in all legends.
const runs = new Map(Object.entries(JSON.parse(document.getElementById("filter")?.dataset.runs ?? "{}"))); // What each is of.
const labels = new Set([...runs.values()].map(([label]) => label));
const datasets = new Set([...runs.values()].map(([, about]) => about));

// Tables: a heading sorts by its column; numbers by value, largest first, and what has none stays last.
function sortBy(table, column, heading) {
  const cells = [...table.tBodies[0].rows].map((row) => ({ row, cell: row.cells[column] }));
  const numeric = cells.some(({ cell }) => cell.classList.contains("number") && cell.dataset.value !== undefined);
  const before = heading.getAttribute("aria-sort");
  const down = before ? before === "ascending" : numeric;
  const key = ({ cell }) => (numeric ? Number(cell.dataset.value ?? NaN) : cell.textContent);
  const order = (a, b) => {
    const [left, right] = [key(a), key(b)];
    if (!numeric) return left.localeCompare(right, "en", { numeric: true });
    if (Number.isNaN(left) || Number.isNaN(right)) return 0;
    return left - right;
  };
  const missing = (item) => numeric && Number.isNaN(key(item));
  const present = cells.filter((item) => !missing(item)).sort((a, b) => (down ? order(b, a) : order(a, b)));
  table.tBodies[0].append(...[...present, ...cells.filter(missing)].map(({ row }) => row));
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", down ? "descending" : "ascending");
}

// Tables as files: what ± says stands in a column of its own, and no text passes for a formula.
function csvOf(table) {
  const text = (cell) => cell.textContent.replace(/[★▲▼]/g, "").trim();
  const heads = [...table.tHead.rows[0].cells];
  const rows = [...table.tBodies[0].rows];
  const spread = heads.map((_, place) => rows.some((row) => text(row.cells[place]).includes("±")));
  const head = heads.flatMap((cell, place) => {
    const name = text(cell) + (cell.dataset.unit ? ` (${cell.dataset.unit})` : "");
    return spread[place] ? [name, `${name} ±`] : [name];
  });
  const body = rows.map((row) =>
    [...row.cells].flatMap((cell, place) => {
      const value = cell.classList.contains("number") && cell.dataset.value ? cell.dataset.value : guarded(text(cell));
      return spread[place] ? [value, (text(cell).match(/± ([\d.,]+)/)?.[1] ?? "").replaceAll(",", "")] : [value];
    }),
  );
  const quoted = (value) => (/[",\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);
  return [head, ...body].map((line) => line.map(quoted).join(",") + "\n").join("");
}

function guarded(text) {
  return /^[=+\-@']/.test(text) && text !== "-" ? `'${text}` : text;
}

function save(table) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([csvOf(table)], { type: "text/csv" }));
  link.download = `${table.id || "table"}.csv`;
  link.click();
  URL.revokeObjectURL(link.href);
}

async function copy(text, button) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = document.body.appendChild(document.createElement("textarea"));
    area.value = text;
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  const before = button.textContent;
  button.textContent = "copied";
  setTimeout(() => (button.textContent = before), 1500);
}

const wordsOf = (input) => (input?.value ?? "").toLowerCase().split(/\s+/).filter(Boolean);
const has = (words, text) => words.every((word) => text.toLowerCase().includes(word));

// The filter of a table shows the rows that have all its words.
function filterRows(input) {
  const table = input.closest(".table").querySelector("table");
  for (const row of table.tBodies[0].rows) row.classList.toggle("filtered", !has(wordsOf(input), row.textContent));
}

// Legends and the filter of the page: what they hide is hidden in all charts and tables and in the menu of runs.
function apply() {
  const words = wordsOf(document.querySelector("#filter [data-filter]"));
  const shown = (name, about) => !hidden.has(name) && (!labels.has(name) || has(words, `${about} ${name}`));
  const off = (element, isOff) => element.classList.toggle("off", isOff);
  for (const button of document.querySelectorAll("[data-toggle]")) {
    button.setAttribute("aria-pressed", String(!hidden.has(button.dataset.toggle)));
  }
  for (const figure of document.querySelectorAll("main figure")) {
    const about = `${figure.closest("[data-name]")?.dataset.name} ${figure.querySelector("figcaption").textContent}`;
    const series = [...figure.querySelectorAll("[data-series]")];
    for (const each of series) off(each, !shown(each.dataset.series, about));
    const cells = series.filter((each) => labels.has(each.dataset.series));
    off(figure, cells.length > 0 && cells.every((each) => each.classList.contains("off")));
  }
  for (const block of document.querySelectorAll("[data-name]")) off(block, !block.querySelector("figure:not(.off)"));
  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = [...table.tHead.rows[0].cells];
    const gone = heads.map((cell) => {
      const head = cell.textContent.trim();
      if (datasets.has(head)) return ![...labels].some((label) => shown(label, head));
      return !shown(head, table.caption.textContent);
    });
    heads.forEach((cell, place) => off(cell, gone[place]));
    for (const row of table.tBodies[0].rows) {
      const [first, ...others] = row.cells;
      const [label, about] = runs.get(first.textContent) ?? [first.textContent, table.tHead.textContent];
      const named = runs.has(first.textContent) ? [] : others.filter((cell) => cell.matches(".name"));
      off(row, !shown(label, about) || !named.every((cell) => shown(cell.textContent, first.textContent)));
      [...row.cells].forEach((cell, place) => off(cell, gone[place]));
    }
  }
  for (const option of document.querySelectorAll("#run-menu option")) option.hidden = !shown(...(runs.get(option.text) ?? []));
}

// One run at a time: the others wait in templates.
function chooseRun(place) {
  const menu = document.getElementById("run-menu");
  const shown = document.getElementById("run-shown");
  const contents = chooseRun.contents ?? (chooseRun.contents = [
    [...shown.childNodes],
    ...[...document.querySelectorAll("#run template")].map((template) => [...template.content.childNodes]),
  ]);
  const wanted = (place + contents.length) % contents.length;
  shown.replaceChildren(...contents[wanted]);
  menu.value = String(wanted);
  apply();
}

document.addEventListener("click", (event) => {
  const toggle = event.target.closest("[data-toggle]");
  if (toggle) {
    if (!hidden.delete(toggle.dataset.toggle)) hidden.add(toggle.dataset.toggle);
    apply();
  }
  const heading = event.target.closest(".sortable thead th");
  if (heading) sortBy(heading.closest("table"), heading.cellIndex, heading);
  const table = event.target.closest(".table")?.querySelector("table");
  if (event.target.matches("[data-csv]")) save(table);
  if (event.target.matches("[data-options]")) {
    copy(document.getElementById("command").textContent + event.target.dataset.options, event.target);
  }
  if (event.target.matches("[data-copy]")) copy(event.target.closest(".command").querySelector("code").textContent, event.target);
  if (event.target.id === "run-before") chooseRun(Number(document.getElementById("run-menu").value) - 1);
  if (event.target.id === "run-after") chooseRun(Number(document.getElementById("run-menu").value) + 1);
});
document.addEventListener("change", (event) => {
  if (event.target.id === "run-menu") chooseRun(Number(event.target.value));
});
document.addEventListener("input", (event) => {
  if (event.target.matches("#filter [data-filter]")) apply();
  else if (event.target.matches("[data-filter]")) filterRows(event.target);
});
