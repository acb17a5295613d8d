"use strict";
// Line charts: values under the pointer or by arrow keys; axes of rounds, traffic or time; smoothing.
const charts = new WeakMap();
function chartOf(svg) {
  if (!charts.has(svg)) {
    const plot = JSON.parse(svg.dataset.plot);
    const shapes = [...svg.querySelectorAll(".line, .band")].map((path) => {
      const drawn = pointsOf(path.getAttribute("d"));
      return { path, band: path.classList.contains("band"), drawn, points: drawn };
    });
    const x = plot.x.round;
    charts.set(svg, { plot, x, shapes, lines: shapes.filter((shape) => !shape.band), at: x[0] });
  }
  return charts.get(svg);
}

// Points [x, y] in units of the chart; paths are in tenths.
function pointsOf(data) {
  const points = [];
  let [x, y] = [0, 0];
  for (const [, command, numbers] of data.matchAll(/([Mlh])([^Mlhz]*)/g)) {
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

function pathOf(points, closed) {
  const parts = points.map(([x, y]) => `${Math.round(10 * x)} ${Math.round(10 * y)}`);
  return (parts.length ? `M${parts.join("L")}` : "") + (points.length === 1 ? "h0" : "") + (closed ? "z" : "");
}

function valueOf([low, high, start, end], place, log) {
  const share = (place - start) / (end - start);
  return log ? low * (high / low) ** share : low + share * (high - low);
}

function placeOf([low, high, start, end], value, log) {
  const share = log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
  return start + share * (end - start);
}

// The mean of as many neighbouring points; of a band's two edges, which are drawn forth and back, each apart.
function smoothed(shape, width, plot) {
  const values = shape.drawn.map(([, y]) => valueOf(plot.y, y, plot.log));
  const edge = shape.band ? values.length / 2 : values.length;
  const reach = (width - 1) / 2;
  return values.map((_, place) => {
    const first = place < edge ? 0 : edge;
    const near = values.slice(Math.max(first, place - reach), Math.min(first + edge, place + reach + 1));
    return placeOf(plot.y, near.reduce((sum, value) => sum + value, 0) / near.length, plot.log);
  });
}

function spentAt(costs, unit, round) {
  const after = costs.round.findIndex((each) => each >= round);
  if (after <= 0) return after ? costs[unit].at(-1) : costs[unit][0];
  const [left, right] = [costs.round[after - 1], costs.round[after]];
  return costs[unit][after - 1] + ((round - left) / (right - left)) * (costs[unit][after] - costs[unit][after - 1]);
}

function redraw(svg, costs, unit, width) {
  const chart = chartOf(svg);
  const { plot, shapes } = chart;
  chart.x = plot.x[unit];
  const [, , , , , size] = chart.x;
  for (const shape of shapes) {
    const heights = width > 1 ? smoothed(shape, width, plot) : shape.drawn.map(([, y]) => y);
    shape.points = shape.drawn.map(([x], place) => {
      const round = valueOf(plot.x.round, x, false);
      const spent = unit === "round" ? round : spentAt(costs[shape.path.dataset.series], unit, round) / size;
      return [placeOf(chart.x, spent, false), heights[place]];
    });
    shape.path.setAttribute("d", pathOf(shape.points, shape.band));
  }
  for (const axis of svg.querySelectorAll(".across")) axis.classList.toggle("off", (axis.dataset.across ?? "round") !== unit);
  const caption = svg.closest("figure").querySelector("figcaption");
  caption.dataset.smoothed = width > 1 ? ` (smoothed: mean of ${width} points)` : "";
}

function redrawAll(section) {
  const unit = section.querySelector("[data-axis][aria-pressed=true]").dataset.axis;
  const width = Number(section.querySelector("[data-smooth]").value);
  for (const block of section.querySelectorAll("[data-costs]")) {
    const costs = JSON.parse(block.dataset.costs);
    for (const svg of block.querySelectorAll("svg.lines")) redraw(svg, costs, unit, width);
  }
}

function showValues(svg, x, clientX, clientY) {
  const chart = chartOf(svg);
  const rows = [];
  let cross = null;
  for (const { path, points } of chart.lines) {
    if (path.closest(".off, .filtered") || !points.length) continue;
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
  line.setAttribute("d", `M${cross} ${chart.plot.y[3]}V${chart.plot.y[2]}`);
  svg.append(line);
  const tip = document.getElementById("tip");
  tip.replaceChildren(tipTable(chart, cross, rows));
  tip.hidden = false;
  const left = clientX + 14 + tip.offsetWidth > innerWidth ? clientX - 14 - tip.offsetWidth : clientX + 14;
  tip.style.left = `${Math.max(4, left)}px`;
  tip.style.top = `${Math.max(4, Math.min(clientY + 10, innerHeight - tip.offsetHeight - 4))}px`;
}

function tipTable({ plot, x }, cross, rows) {
  const table = document.createElement("table");
  const at = valueOf(x, cross, false);
  const unit = x[4];
  table.createCaption().textContent = unit ? `${Number(at.toPrecision(3))} ${unit}` : `round ${Math.round(at)}`;
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

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-axis]");
  if (!button) return;
  for (const each of button.parentElement.querySelectorAll("[data-axis]")) each.setAttribute("aria-pressed", String(each === button));
  redrawAll(button.closest("section"));
});
document.addEventListener("change", (event) => {
  if (event.target.matches("[data-smooth]")) redrawAll(event.target.closest("section"));
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
