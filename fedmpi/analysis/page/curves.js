"use strict";
// Charts over rounds: all values under the pointer or by arrow keys; a part of the rounds; axes of traffic or time; smoothing.
const charts = new WeakMap();
function chartOf(svg) {
  if (!charts.has(svg)) {
    const plot = JSON.parse(svg.dataset.plot);
    const shapes = [...svg.querySelectorAll(".line, .band, .fill")].map((path) => {
      const drawn = pointsOf(path.getAttribute("d"));
      return { path, area: !path.classList.contains("line"), drawn, points: drawn };
    });
    const valued = shapes.filter(({ path }) => !path.classList.contains("band"));
    charts.set(svg, { plot, shapes, valued, unit: "round", width: 1, part: null, x: plot.x.round, y: plot.y, at: plot.x.round[2] });
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

// The mean of as many neighbouring points; of an area's two edges, which are drawn forth and back, each apart.
function smoothed(shape, width, plot) {
  const values = shape.drawn.map(([, y]) => valueOf(plot.y, y, plot.log));
  const edge = shape.area ? values.length / 2 : values.length;
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

// Draw a chart by its unit, smoothed by its width, and of its part [from, to], places on the whole axis, the values there.
function redraw(svg) {
  const chart = chartOf(svg);
  const { plot, shapes, unit, width, part } = chart;
  const whole = plot.x[unit];
  const costs = unit === "round" ? {} : JSON.parse(svg.closest("[data-costs]").dataset.costs);
  for (const shape of shapes) {
    const heights = width > 1 ? smoothed(shape, width, plot) : shape.drawn.map(([, y]) => y);
    shape.points = shape.drawn.map(([x], place) => {
      const round = valueOf(plot.x.round, x, false);
      const spent = unit === "round" ? round : spentAt(costs[shape.path.dataset.series], unit, round) / whole[5];
      return [placeOf(whole, spent, false), heights[place]];
    });
    if (part) shape.points = shape.points.filter(([x]) => x >= part[0] && x <= part[1]);
  }
  [chart.x, chart.y] = [whole, plot.y];
  if (part) {
    const heights = chart.valued.filter(({ path }) => !path.closest(".off")).flatMap(({ points }) => points.map(([, y]) => y));
    const air = 0.05 * (Math.max(...heights) - Math.min(...heights)) || 4;
    const ends = [Math.min(Math.max(...heights) + air, plot.y[2]), Math.max(Math.min(...heights) - air, plot.y[3])];
    chart.x = [...part.map((x) => valueOf(whole, x, false)), ...whole.slice(2)];
    chart.y = [...ends.map((y) => valueOf(plot.y, y, plot.log)), ...plot.y.slice(2)];
    const within = (y) => Math.max(plot.y[3], Math.min(plot.y[2], y));
    for (const shape of shapes) {
      shape.points = shape.points.map(([x, y]) => [
        placeOf(chart.x, valueOf(whole, x, false), false),
        within(placeOf(chart.y, valueOf(plot.y, y, plot.log), plot.log)),
      ]);
    }
  }
  for (const { path, points, area } of shapes) path.setAttribute("d", pathOf(points, area));
  svg.querySelector(".ticks")?.remove();
  const own = part !== null || unit !== "round";
  for (const mark of svg.querySelectorAll(".grid, .tick, .across, .split")) mark.classList.toggle("out", own);
  if (own) svg.prepend(ticksOf(chart));
  const caption = svg.closest("figure").querySelector("figcaption");
  caption.dataset.smoothed = width > 1 ? ` (smoothed: mean of ${width} points)` : "";
}

function ticksOf({ plot, x, y, unit }) {
  const group = element("g", { class: "ticks" });
  const text = (content, place, kind) => (group.appendChild(element("text", { ...place, class: kind })).textContent = content);
  for (const value of rounded(x, false, unit === "round")) {
    const place = placeOf(x, value, false);
    group.append(element("path", { class: "axis", d: `M${place} ${y[2]}v4` }));
    text(value.toLocaleString("en"), { x: place, y: y[2] + 15 }, "tick middle");
  }
  text(x[6], { x: (x[2] + x[3]) / 2, y: y[2] + 29 }, "label middle");
  for (const value of rounded(y, plot.log, false)) {
    const place = placeOf(y, value, plot.log);
    group.prepend(element("path", { class: "grid", d: `M${x[2]} ${place}H${x[3]}` }));
    text(Number(value.toPrecision(4)).toString(), { x: x[2] - 5, y: place + 4 }, "tick end");
  }
  return group;
}

// Up to eight round values of an axis; of a logarithmic one as many, evenly spread over its places.
function rounded([low, high, start, end], log, whole) {
  if (log) return [0.1, 0.3, 0.5, 0.7, 0.9].map((share) => Number((low * (high / low) ** share).toPrecision(2)));
  const least = (high - low) / 7;
  const power = 10 ** Math.floor(Math.log10(least));
  const step = Math.max([1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= least), whole ? 1 : 0);
  const first = Math.ceil(low / step - 1e-9);
  return Array.from({ length: Math.floor(high / step + 1e-9) - first + 1 }, (_, place) => Number(((first + place) * step).toPrecision(12)));
}

function element(name, attributes) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

// Show the part between two places of what is shown; all of it without.
function zoom(svg, from, to) {
  const chart = chartOf(svg);
  const whole = chart.plot.x[chart.unit];
  const ends = [from, to].map((x) => placeOf(whole, valueOf(chart.x, x, false), false));
  const part = from === undefined ? null : [Math.max(Math.min(...ends), whole[2]), Math.min(Math.max(...ends), whole[3])];
  const here = valueOf(chart.x, chart.at, false);
  if (part && part[1] - part[0] < 1) return;
  chart.part = part && part[1] - part[0] < whole[3] - whole[2] - 0.5 ? part : null;
  hideValues();
  redraw(svg);
  chart.at = Math.max(whole[2], Math.min(whole[3], placeOf(chart.x, here, false)));
}

function redrawAll(section) {
  const unit = section.querySelector("[data-axis][aria-pressed=true]").dataset.axis;
  const width = Number(section.querySelector("[data-smooth]").value);
  for (const svg of section.querySelectorAll("svg.lines")) {
    const chart = chartOf(svg);
    if (chart.unit !== unit) chart.part = null;
    Object.assign(chart, { unit, width });
    redraw(svg);
  }
}

// The point of a shape near a place, with its height in the chart: of an area from edge to edge.
function pointAt({ area, points }, x, { plot, y }) {
  const upper = area ? points.slice(0, points.length / 2) : points;
  const place = area
    ? upper.findLastIndex(([left]) => left <= x)
    : upper.reduce((best, point, here) => (best < 0 || Math.abs(point[0] - x) < Math.abs(upper[best][0] - x) ? here : best), -1);
  if (place < 0) return null;
  const value = (at) => valueOf(y, points[at][1], plot.log);
  const height = area ? value(place) - value(points.length - 1 - place) : value(place);
  return { x: area ? x : upper[place][0], y: points[place][1], value: height };
}

function showValues(svg, x, clientX, clientY) {
  const chart = chartOf(svg);
  const rows = [];
  for (const shape of chart.valued) {
    if (shape.path.closest(".off")) continue;
    const point = pointAt(shape, x, chart);
    if (point && Math.abs(point.x - x) <= 12) rows.push({ ...point, label: shape.path.dataset.series, kind: shape.path.getAttribute("class") });
  }
  hideValues();
  if (!rows.length) return;
  const cross = rows[0].x;
  rows.sort((a, b) => a.y - b.y);
  svg.append(element("path", { class: "cross", d: `M${cross} ${chart.y[3]}V${chart.y[2]}` }));
  showTip([tipTable(chart, cross, rows)], clientX, clientY);
}

function showTip(content, clientX, clientY) {
  const tip = document.getElementById("tip");
  tip.replaceChildren(...content);
  tip.hidden = false;
  const left = clientX + 14 + tip.offsetWidth > innerWidth ? clientX - 14 - tip.offsetWidth : clientX + 14;
  tip.style.left = `${Math.max(4, left)}px`;
  tip.style.top = `${Math.max(4, Math.min(clientY + 10, innerHeight - tip.offsetHeight - 4))}px`;
}

// Other charts: what the marks under the pointer say, of a bar all its pieces.
function tipsAt(clientX, clientY) {
  const tips = new Set();
  for (const mark of document.elementsFromPoint(clientX, clientY)) {
    const around = mark.matches("rect") ? mark.closest("g[data-series]") ?? mark : mark;
    if (!mark.closest(".panel") || !mark.querySelector(":scope > title")) continue;
    for (const title of around.querySelectorAll("title")) tips.add(title.textContent);
  }
  return [...tips].slice(0, 16).map((text) => Object.assign(document.createElement("div"), { textContent: text }));
}

function tipTable({ x }, cross, rows) {
  const table = document.createElement("table");
  const at = valueOf(x, cross, false);
  const unit = x[4];
  table.createCaption().textContent = unit ? `${Number(at.toPrecision(3))} ${unit}` : `round ${Math.round(at)}`;
  for (const { label, kind, value } of rows.slice(0, 16)) {
    const row = table.insertRow();
    const chip = document.createElement("i");
    chip.className = [...kind.split(" ")].filter((name) => /^c\d$/.test(name)).join(" ");
    row.insertCell().append(chip);
    row.insertCell().textContent = label;
    row.insertCell().textContent = Number(value.toPrecision(4)).toString();
  }
  if (rows.length > 16) table.insertRow().insertCell().textContent = `and ${rows.length - 16} more`;
  return table;
}

function hideValues() {
  document.getElementById("tip").hidden = true;
  for (const line of document.querySelectorAll(".cross")) line.remove();
}

function step(svg, event) {
  const chart = chartOf(svg);
  const [left, right] = [chart.x[2], chart.x[3]];
  const near = (right - left) / 4;
  if (event.key === "+") return zoom(svg, chart.at - near, chart.at + near);
  if (event.key === "-") return zoom(svg, left - 2 * near, right + 2 * near);
  const direction = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (!direction) return;
  event.preventDefault();
  const points = chart.valued.find(({ points }) => points.length)?.points ?? [];
  const place = Math.max(0, points.findIndex(([x]) => x >= chart.at));
  const next = points[Math.min(points.length - 1, Math.max(0, place + direction))];
  if (!next) return;
  chart.at = next[0];
  const frame = svg.getBoundingClientRect();
  showValues(svg, next[0], frame.left + (next[0] / svg.viewBox.baseVal.width) * frame.width, frame.top + 20);
}

function placeIn(svg, clientX) {
  const frame = svg.getBoundingClientRect();
  return ((clientX - frame.left) / frame.width) * svg.viewBox.baseVal.width;
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

let drag = null; // The chart over which the pointer is dragged, and where that began.
document.addEventListener("pointerdown", (event) => {
  const svg = event.target.closest?.("svg.lines");
  if (svg && event.button === 0) drag = { svg, from: placeIn(svg, event.clientX) };
});
document.addEventListener("pointermove", (event) => {
  const svg = drag?.svg ?? event.target.closest?.("svg.lines");
  document.querySelector(".drag")?.remove();
  if (drag) {
    const { x, y } = chartOf(svg);
    const [left, right] = [drag.from, placeIn(svg, event.clientX)].map((at) => Math.max(x[2], Math.min(x[3], at))).sort((a, b) => a - b);
    svg.append(element("rect", { class: "drag", x: left, y: y[3], width: right - left, height: y[2] - y[3] }));
  }
  if (svg) return showValues(svg, placeIn(svg, event.clientX), event.clientX, event.clientY);
  hideValues();
  const tips = event.target.closest?.(".panel svg") ? tipsAt(event.clientX, event.clientY) : [];
  if (tips.length) showTip(tips, event.clientX, event.clientY);
});
for (const end of ["pointerup", "pointercancel"]) {
  document.addEventListener(end, (event) => {
    document.querySelector(".drag")?.remove();
    const to = drag && placeIn(drag.svg, event.clientX);
    if (end === "pointerup" && drag && Math.abs(to - drag.from) > 6) zoom(drag.svg, drag.from, to);
    drag = null;
  });
}
document.addEventListener("dblclick", (event) => {
  const svg = event.target.closest?.("svg.lines");
  if (svg) zoom(svg);
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    hideValues();
    for (const svg of document.querySelectorAll("svg.lines:has(.ticks)")) zoom(svg);
  }
  if (event.target.matches?.("svg.lines")) step(event.target, event);
});
document.addEventListener("focusout", hideValues);
