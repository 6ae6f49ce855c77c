// Numbers, times and foreign text, in a form for people.

const GROUPED = new Intl.NumberFormat('en-US', {maximumFractionDigits: 0});
const COMPACT = new Intl.NumberFormat('en-US', {notation: 'compact'});
const SHORT = new Intl.NumberFormat('en-US', {maximumSignificantDigits: 3});

export const NONE = '–';

export function count(n) {
  return n === null || n === undefined ? NONE : GROUPED.format(n);
}

// At most four characters: 999, 3.1k, 31k, 1.2M.
export function short(n) {
  return n === null || n === undefined ? NONE : COMPACT.format(n).replace('K', 'k');
}

export function plural(n, one, many = `${one}s`) {
  return `${count(n)} ${n === 1 ? one : many}`;
}

export function perMinute(perSecond) {
  if (perSecond === null || perSecond === undefined)
    return NONE;
  const n = perSecond * 60;
  return n > 0 && n < 0.1 ? '< 0.1' : n < 100 ? SHORT.format(Number(n.toFixed(1))) : count(n);
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined)
    return NONE;
  const s = Math.max(0, Math.floor(seconds));
  const pair = (a, unitA, b, unitB) => b ? `${a} ${unitA} ${b} ${unitB}` : `${a} ${unitA}`;
  if (s < 60)
    return `${s} s`;
  if (s < 3600)
    return pair(Math.floor(s / 60), 'min', s % 60, 's');
  if (s < 86400)
    return pair(Math.floor(s / 3600), 'h', Math.floor(s % 3600 / 60), 'min');
  return pair(Math.floor(s / 86400), 'd', Math.floor(s % 86400 / 3600), 'h');
}

// The same for a narrow column: 3h 12m.
export function age(seconds) {
  return duration(seconds).replace(/ (min|[smhd])\b/g, (_, unit) => unit[0]);
}

export function shortSeconds(seconds) {
  if (!Number.isFinite(seconds))
    return NONE;
  return seconds < 1 ? `${SHORT.format(seconds * 1000)} ms` : `${SHORT.format(seconds)} s`;
}

export function bytes(n) {
  if (n === null || n === undefined)
    return NONE;
  let value = n;
  let unit = 0;
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${unit ? SHORT.format(value) : count(value)} ${units[unit]}`;
}

// The worker that holds a claim, as far as claimd knows it. A Client-ID changes at each start.
export function holderName({worker, address, client}) {
  return worker || address || client || null;
}

// Local time of day, with the date if it is not today.
export function clock(ms) {
  const two = (n) => String(n).padStart(2, '0');
  const at = new Date(ms);
  if (Number.isNaN(at.getTime()))
    return NONE;
  const time = `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
  if (at.toDateString() === new Date().toDateString())
    return time;
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${time}`;
}

// Characters that show nothing, or that reorder the text around them, could make a name or a
// reason look like another one.
const HIDDEN =
  /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]|[^\S ]/gu;

function escapeOf(character) {
  const code = character.codePointAt(0).toString(16);
  return code.length <= 4 ? `\\u${code.padStart(4, '0')}` : `\\u{${code}}`;
}

export function visible(value) {
  return String(value).replace(HIDDEN, escapeOf);
}

// Calls add(text, escaped) for each run of the text. The characters in `keep` stay as they are.
export function eachRun(value, keep, add) {
  const text = String(value);
  let from = 0;
  for (const match of text.matchAll(HIDDEN)) {
    if (keep.includes(match[0]))
      continue;
    if (match.index > from)
      add(text.slice(from, match.index), false);
    add(escapeOf(match[0]), true);
    from = match.index + match[0].length;
  }
  if (from < text.length)
    add(text.slice(from), false);
}

const TOKEN = /\s+|"[^"\\]*(?:\\[^][^"\\]*)*"|[{}[\],:]|[^\s"{}[\],:]+/gy;

// Indents JSON without parsing its values, so that large numbers, repeated names and escapes stay
// as they were posted. Returns null if the text cannot be JSON.
export function indentJson(text) {
  let out = '';
  let depth = 0;
  let before = '';
  let read = 0;
  for (const [token] of text.matchAll(TOKEN)) {
    read += token.length;
    if (token.trim() === '')
      continue;
    const closes = token === '}' || token === ']';
    if (closes && --depth < 0)
      return null;
    const opened = before === '{' || before === '[';
    if (before === ',' || opened && !closes || closes && !opened)
      out += `\n${'  '.repeat(Math.min(depth, 40))}`;
    out += token === ':' ? ': ' : token;
    if (token === '{' || token === '[')
      depth++;
    before = token;
  }
  return read === text.length && depth === 0 ? out : null;
}

// The text of one member of a JSON object, as it stands there.
export function memberText(text, name) {
  const tokens = [...text.matchAll(TOKEN)].filter((t) => t[0].trim() !== '');
  let depth = 0;
  for (let i = 0; i < tokens.length; i++) {
    const token = tokens[i][0];
    if (depth === 1 && token === `"${name}"` && tokens[i + 1]?.[0] === ':')
      return valueText(text, tokens, i + 2);
    if (token === '{' || token === '[')
      depth++;
    else if (token === '}' || token === ']')
      depth--;
  }
  return null;
}

function valueText(text, tokens, first) {
  let depth = 0;
  for (let i = first; i < tokens.length; i++) {
    const token = tokens[i][0];
    depth += token === '{' || token === '[' ? 1 : token === '}' || token === ']' ? -1 : 0;
    if (depth === 0)
      return text.slice(tokens[first].index, tokens[i].index + token.length);
  }
  return null;
}
