// Charts of the last hour, and sparklines. Colors come from page.css, by the class of each series.
/* global uPlot */
import {later, getJson, view} from './api.js';
import {count, plural} from './format.js';
import {h} from './dom.js';

const HOUR_S = 3600;
const RANGES_MIN = [5, 15, 60];
const PLOT_HEIGHT = 150;
// Steps of an axis with whole numbers: 1, 2, 5, 10, 20, 50 and so on.
const WHOLE = [...Array(30).keys()].map((i) => [1, 2, 5][i % 3] * 10 ** Math.floor(i / 3));
const FRESH_MS = 90000;
const MOST_KEPT = 500;
const HIDDEN = matchMedia('(max-width: 72rem)');   // the columns with the class `wide`

export const themed = new EventTarget();

function timeOfDay(seconds) {
  return new Date(seconds * 1000).toTimeString().slice(0, 5);
}

function colorOf(name) {
  const probe = h('span', {class: `series-${name}`, hidden: true});
  document.body.append(probe);
  const {color} = getComputedStyle(probe);
  probe.remove();
  return color;
}

// A chart with lines over time, from the first data or `range` seconds ago, and a legend that shows the values under the cursor, or the last.
export class Chart {
  #plot = null;
  #data = [[]];
  #range = HOUR_S;

  constructor({id, title, unit, series, format = count}) {
    Object.assign(this, {series, format, unit, title});
    this.box = h('div', {class: 'plot', role: 'img'});
    this.values = series.map(() => h('span', {class: 'value'}));
    const legend = h('ul', {class: 'legend'}, series.map((s, i) => h('li', {},
      h('span', {class: `swatch series-${s.name}`}), s.title, ' ', this.values[i])));
    this.element = h('figure', {id}, h('figcaption', {}, h('h2', {}, title), legend), this.box);
    this.observer = new ResizeObserver(() => this.#resize());
    this.observer.observe(this.box);
    this.onTheme = () => this.#draw();
    themed.addEventListener('change', this.onTheme);
  }

  close() {
    this.observer.disconnect();
    themed.removeEventListener('change', this.onTheme);
    this.#plot?.destroy();
    this.#plot = null;
  }

  // data: times in seconds, then an array for each series.
  set(data) {
    this.#data = data;
    if (this.#plot)
      this.#plot.setData(data);
    else
      this.#draw();
    this.#legend(data[0].length - 1);
    this.#describe();
  }

  #describe() {
    if (!this.#data[0].length)
      return;
    const now = this.series.map((s, i) => `${s.title} ${this.format(this.#data[i + 1].at(-1))}`);
    this.box.setAttribute('aria-label',
      `${this.title} from ${timeOfDay(this.#shown()[0])} on, now: ${now.join(', ')}`);
  }

  // Shows the last so many seconds.
  setRange(seconds) {
    this.#range = seconds;
    this.#plot?.setData(this.#data);
    this.#describe();
  }

  // From the first data on, but at least a minute.
  #shown() {
    const [times] = this.#data;
    const end = times.at(-1);
    return [Math.min(Math.max(end - this.#range, times[0]), end - 60), end];
  }

  #legend(index) {
    const at = index === null || index === undefined ? this.#data[0].length - 1 : index;
    this.values.forEach((value, i) => {
      value.textContent = this.format(this.#data[i + 1]?.[at]);
    });
  }

  #resize() {
    const width = this.box.clientWidth;
    if (this.#plot && width > 0 && width !== this.#plot.width)
      this.#plot.setSize({width, height: PLOT_HEIGHT});
  }

  #draw() {
    this.#plot?.destroy();
    const axis = {stroke: colorOf('axis'), grid: {stroke: colorOf('grid'), width: 1},
      ticks: {show: false}, font: '12px system-ui, sans-serif'};
    this.#plot = new uPlot({
      width: this.box.clientWidth || 400, height: PLOT_HEIGHT, legend: {show: false},
      cursor: {drag: {setScale: false}, y: false},
      scales: {x: {range: () => this.#shown()},
        y: {range: (u, low, high) => [0, Math.max(high * 1.1, 4)]}},
      axes: [{...axis, size: 28, space: 60, incrs: [60, 120, 300, 600, 900, 1800], values: (u, ticks) => ticks.map(timeOfDay)},
        {...axis, size: 64, incrs: WHOLE, values: (u, ticks) => ticks.map((t) => count(t))}],
      series: [{}, ...this.series.map((s) => ({stroke: colorOf(s.name), width: 2,
        points: {show: false}, fill: s.fill ? colorOf(`${s.name}-fill`) : undefined}))],
      hooks: {setCursor: [(u) => this.#legend(u.cursor.idx)]},
    }, this.#data, this.box);
  }
}

// Buttons for the range of charts.
export function rangeButtons(plots) {
  const choose = (minutes) => {
    plots.forEach((plot) => plot.setRange(minutes * 60));
    buttons.forEach((b, i) => b.setAttribute('aria-pressed', RANGES_MIN[i] === minutes));
  };
  const buttons = RANGES_MIN.map((minutes) =>
    h('button', {type: 'button', onclick: () => choose(minutes)}, `${minutes} min`));
  choose(RANGES_MIN.at(-1));
  return h('p', {id: 'chart-range', class: 'buttons', role: 'group', 'aria-label': 'Time in the charts'},
    buttons);
}

// ---------------------------------------------------------------- sparklines

const histories = new Map();   // key -> {points, at}

function remember(key, points) {
  histories.delete(key);
  histories.set(key, {points, at: Date.now()});
  if (histories.size > MOST_KEPT)
    histories.delete(histories.keys().next().value);
}

// points: seconds before now, and the ready messages then.
function draw(canvas, points) {
  const scale = window.devicePixelRatio || 1;
  const [width, height] = [96, 24];
  canvas.width = width * scale;
  canvas.height = height * scale;
  const context = canvas.getContext('2d');
  context.scale(scale, scale);
  const values = points.map(([, ready]) => ready);
  const most = Math.max(...values, 1);
  const x = (seconds) => width * (1 - Math.min(seconds / HOUR_S, 1));
  const y = (ready) => height - 2 - (height - 4) * ready / most;
  context.beginPath();
  for (const [seconds, ready] of points)
    context.lineTo(x(seconds), y(ready));
  context.strokeStyle = colorOf('ready');
  context.lineWidth = 1.5;
  context.stroke();
  context.lineTo(x(points.at(-1)[0]), height);
  context.lineTo(x(points[0][0]), height);
  context.fillStyle = colorOf('ready-fill');
  context.fill();
  const label = `Ready in the last hour: at most ${plural(Math.max(...values), 'message')}, ` +
    `now ${count(values.at(-1))}`;
  canvas.setAttribute('aria-label', label);
  canvas.title = label;
}

// Thins the samples to what the canvas can show.
function thin(samples, now) {
  const step = Math.max(1, Math.floor(samples.length / 96));
  return samples.filter((_, i) => (samples.length - 1 - i) % step === 0)
    .map((s) => [(Date.parse(now) - Date.parse(s.at)) / 1000, s.ready]);
}

// Keeps the cell up to date with the history of its queue. Queues without rates have no history.
export function sparkline(cell, row) {
  const key = `${row.project}\n${row.name}`;
  const known = histories.get(key);
  if (known?.points && cell.shown !== known) {
    cell.shown = known;
    const canvas = cell.firstElementChild || h('canvas', {role: 'img', class: 'sparkline'});
    if (!canvas.isConnected)
      cell.append(canvas);
    draw(canvas, known.points);
  }
  if (HIDDEN.matches || !row.rates || cell.asking || known && Date.now() - known.at < FRESH_MS)
    return;
  cell.asking = true;
  later(async () => {
    try {
      const {samples, now} = await getJson(view(row.name, '/history'), {project: row.project});
      remember(key, samples?.length > 1 ? thin(samples, now) : null);
    } catch {
      remember(key, null);
    } finally {
      cell.asking = false;
    }
    if (cell.isConnected)
      sparkline(cell, row);
  }, () => {
    cell.asking = cell.isConnected;
    return cell.isConnected;
  });
}

themed.addEventListener('change', () => {
  for (const [key, known] of histories)
    histories.set(key, {...known});
});
