"use strict";
// The page works without this script but for: sorting, hiding series, values under the pointer, choosing a run.

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

// Legends: a button hides or shows its series in all charts of its section.
function applyLegend(section) {
  const hidden = new Set();
  for (const button of section.querySelectorAll("[data-toggle]")) {
    if (button.getAttribute("aria-pressed") === "false") hidden.add(button.dataset.toggle);
  }
  for (const series of section.querySelectorAll("[data-series]")) {
    series.classList.toggle("off", hidden.has(series.dataset.series));
  }
}

// Line charts: the values at the round under the pointer, or chosen with the arrow keys.
const charts = new WeakMap();

function chartOf(svg) {
  if (!charts.has(svg)) {
    const plot = JSON.parse(svg.dataset.plot);
    const lines = [...svg.querySelectorAll(".line")].map((path) => ({ path, points: pointsOf(path.getAttribute("d")) }));
    charts.set(svg, { plot, lines, at: plot.x[0] });
  }
  return charts.get(svg);
}

function pointsOf(data) {
  const points = [];
  let [x, y] = [0, 0];
  for (const [, command, numbers] of data.matchAll(/([MlmhHvV])([^MlmhHvVz]*)/g)) {
    const values = (numbers.match(/-?\d+/g) || []).map(Number);
    if (command === "h") continue;
    for (let place = 0; place + 1 < values.length; place += 2) {
      x = command === "M" ? values[place] : x + values[place];
      y = command === "M" ? values[place + 1] : y + values[place + 1];
      points.push([x / 10, y / 10]);
    }
  }
  return points;
}

function valueOf([low, high, start, end], place, log) {
  const share = (place - start) / (end - start);
  return log ? low * (high / low) ** share : low + share * (high - low);
}

function showValues(svg, x, clientX, clientY) {
  const { plot, lines } = chartOf(svg);
  const rows = [];
  let cross = null;
  for (const { path, points } of lines) {
    if (path.closest(".off") || !points.length) continue;
    const nearest = points.reduce((best, point) => (Math.abs(point[0] - x) < Math.abs(best[0] - x) ? point : best));
    if (Math.abs(nearest[0] - x) > 12) continue;
    cross = cross ?? nearest[0];
    rows.push({ label: path.dataset.label, kind: path.getAttribute("class"), y: nearest[1] });
  }
  hideValues();
  if (!rows.length) return;
  rows.sort((a, b) => a.y - b.y);
  const line = document.createElementNS("http://www.w3.org/2000/svg", "path");
  line.setAttribute("class", "cross");
  line.setAttribute("d", `M${cross} ${plot.y[3]}V${plot.y[2]}`);
  svg.append(line);
  const tip = document.getElementById("tip");
  tip.replaceChildren(tipTable(plot, cross, rows));
  tip.hidden = false;
  const left = clientX + 14 + tip.offsetWidth > innerWidth ? clientX - 14 - tip.offsetWidth : clientX + 14;
  tip.style.left = `${Math.max(4, left)}px`;
  tip.style.top = `${Math.max(4, Math.min(clientY + 10, innerHeight - tip.offsetHeight - 4))}px`;
}

function tipTable(plot, cross, rows) {
  const table = document.createElement("table");
  table.createCaption().textContent = `${plot.name} ${Math.round(valueOf(plot.x, cross, false))}`;
  for (const { label, kind, y } of rows.slice(0, 16)) {
    const row = table.insertRow();
    const chip = document.createElement("i");
    chip.className = [...kind.split(" ")].filter((name) => /^c\d$/.test(name)).join(" ");
    row.insertCell().append(chip);
    row.insertCell().textContent = label;
    row.insertCell().textContent = Number(valueOf(plot.y, y, plot.log).toPrecision(4)).toString();
  }
  if (rows.length > 16) table.insertRow().insertCell().textContent = `and ${rows.length - 16} more`;
  return table;
}

function hideValues() {
  document.getElementById("tip").hidden = true;
  for (const line of document.querySelectorAll(".cross")) line.remove();
}

function step(svg, event) {
  const direction = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (!direction) return;
  event.preventDefault();
  const chart = chartOf(svg);
  const points = chart.lines.find(({ points }) => points.length)?.points ?? [];
  const place = Math.max(0, points.findIndex(([x]) => x >= chart.at));
  const next = points[Math.min(points.length - 1, Math.max(0, place + direction))];
  if (!next) return;
  chart.at = next[0];
  const frame = svg.getBoundingClientRect();
  showValues(svg, next[0], frame.left + (next[0] / svg.viewBox.baseVal.width) * frame.width, frame.top + 20);
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
  applyLegend(document.getElementById("run"));
}

document.addEventListener("click", (event) => {
  const toggle = event.target.closest("[data-toggle]");
  if (toggle) {
    toggle.setAttribute("aria-pressed", String(toggle.getAttribute("aria-pressed") === "false"));
    applyLegend(toggle.closest("section"));
  }
  const heading = event.target.closest(".sortable thead th");
  if (heading) sortBy(heading.closest("table"), heading.cellIndex, heading);
  if (event.target.id === "run-before") chooseRun(Number(document.getElementById("run-menu").value) - 1);
  if (event.target.id === "run-after") chooseRun(Number(document.getElementById("run-menu").value) + 1);
});
document.addEventListener("change", (event) => {
  if (event.target.id === "run-menu") chooseRun(Number(event.target.value));
});
document.addEventListener("pointermove", (event) => {
  const svg = event.target.closest?.("svg.lines");
  if (!svg) return hideValues();
  const frame = svg.getBoundingClientRect();
  const x = ((event.clientX - frame.left) / frame.width) * svg.viewBox.baseVal.width;
  showValues(svg, x, event.clientX, event.clientY);
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") hideValues();
  if (event.target.matches?.("svg.lines")) step(event.target, event);
});
document.addEventListener("focusout", hideValues);
