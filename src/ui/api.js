// Requests, live data, and what the caller may do.

const EVENT_WITHIN_MS = 5000;
const NO_STREAMS_MS = 30000;
const POLL_MS = 2000;
const LONGEST_WAIT_MS = 10000;

const CLIENT_ID = randomUuid();

const STORED = 'claimd-token';

// The token is in no storage, unless the user wants that for the tab.
let token = '';
let streamsAgainAt = 0;
const running = new Set();

// project: the only one of the token. chosen: the one that the user named. clockBehind: how far the
// clock of the browser is behind the server, in milliseconds.
export const caller = {role: null, project: null, all_projects: false, actions: [], known: false,
  chosen: '', clockBehind: 0};
export const hooks = {unauthorized() {}, connection() {}};

export class ApiError extends Error {
  constructor(status, title, description, retryAfter = 0) {
    super(title);
    Object.assign(this, {status, title, description, retryAfter});
  }
}

// crypto.randomUUID() exists only with TLS or on loopback.
function randomUuid() {
  const b = crypto.getRandomValues(new Uint8Array(16));
  b[6] = b[6] & 15 | 64;
  b[8] = b[8] & 63 | 128;
  const hex = [...b].map((x) => x.toString(16).padStart(2, '0')).join('');
  return hex.replace(/(.{8})(.{4})(.{4})(.{4})(.{12})/, '$1-$2-$3-$4-$5');
}

// keep: over a reload, in this tab.
export function setToken(value, keep = false) {
  token = value;
  try {
    if (keep && token)
      sessionStorage.setItem(STORED, token);
    else
      sessionStorage.removeItem(STORED);
  } catch {
    // Without storage, a reload asks again.
  }
}

export function restoreToken() {
  try {
    token = sessionStorage.getItem(STORED) || '';
  } catch {
    token = '';
  }
}

export function hasToken() {
  return token !== '';
}

export function may(action) {
  return caller.actions.includes(action);
}

// Paths are relative, so that the page works behind a prefix.
export function queuePath(base, queue, rest = '') {
  if (queue === '.' || queue === '..')
    throw new ApiError(0, 'Not possible here',
      `A browser cannot address the name "${queue}". Use the commands.`);
  return `${base}/${encodeURIComponent(queue)}${rest}`;
}

export const view = (queue, rest) => queuePath('../queues', queue, rest);
export const schedulePath = (queue, name) => queuePath(view(queue, '/schedules'), name);
export const v2 = (queue, rest) => queuePath('../../v2/queues', queue, rest);

export function withQuery(path, parameters) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters))
    if (value !== null && value !== undefined && value !== '')
      query.set(name, value);
  const text = String(query);
  return text ? `${path}?${text}` : path;
}

// Headers carry bytes. fetch() takes one character for each of them.
function headerBytes(value) {
  return String.fromCharCode(...new TextEncoder().encode(value));
}

function headersFor(method, options) {
  const headers = new Headers({'Client-ID': CLIENT_ID,
    Accept: options.accept || 'application/json'});
  if (options.project)
    headers.set('X-Project-ID', headerBytes(options.project));
  if (token)
    headers.set('X-Auth-Token', headerBytes(token));  // Authorization may belong to a proxy
  if (options.body !== undefined)
    headers.set('Content-Type', 'application/json');
  if (options.prefer)
    headers.set('Prefer', options.prefer);
  if (method !== 'GET')
    headers.set('Claimd-UI', '1');
  return headers;
}

async function errorOf(response) {
  let document = {};
  try {
    document = JSON.parse(await response.text());
  } catch {
    // A proxy in between may send something else. The status says enough.
  }
  return new ApiError(response.status, document.title || `HTTP status ${response.status}`,
    document.description || '', Number(response.headers.get('Retry-After')) || 0);
}

// When its login has ended, a proxy sends a redirect or a 401. claimd redirects nothing, and its 401 names a scheme.
function isOfLogin(response) {
  return response.type === 'opaqueredirect' || (response.status === 401 &&
    !/^(Bearer|Keystone)/.test(response.headers.get('WWW-Authenticate') || ''));
}

export async function fetchResponse(method, path, options = {}) {
  const used = token;
  let response;
  try {
    // With credentials: a certificate of the browser or a login at a proxy.
    response = await fetch(path, {method, headers: headersFor(method, options), body: options.body,
      signal: options.signal, cache: 'no-store', credentials: 'same-origin', redirect: 'manual'});
  } catch (error) {
    if (error.name === 'AbortError')
      throw error;
    throw new ApiError(0, 'No response', 'The server cannot be reached.');
  }
  if (isOfLogin(response))
    throw new ApiError(0, 'Login needed', 'A proxy asks for a login. Reload the page.');
  const date = Date.parse(response.headers.get('Date'));
  // The header has whole seconds.
  if (Math.abs(date - Date.now()) < 1500)
    caller.clockBehind = 0;
  else if (!Number.isNaN(date))
    caller.clockBehind = date - Date.now();
  if (response.ok)
    return response;
  const error = await errorOf(response);
  // The user may have entered another token since.
  if (error.status === 401 && used === token)
    hooks.unauthorized(error);
  throw error;
}

export async function getJson(path, options) {
  return (await fetchResponse('GET', path, options)).json();
}

export async function send(method, path, project, body) {
  const options = {project, body: body === undefined || typeof body === 'string' ? body
    : JSON.stringify(body)};
  const response = await fetchResponse(method, path, options);
  return response.status === 204 ? null : JSON.parse(await response.text() || 'null');
}

// The permissions in a project, or in all of them.
export async function loadCaller(project) {
  const permissions = await getJson('../permissions', {project});
  Object.assign(caller, permissions, {known: true, chosen: project || ''});
}

// The project to look at unless the user names another one. '': all of them.
export function usualProject() {
  return caller.all_projects ? '' : caller.project || caller.chosen;
}

function sleep(ms, signal) {
  return new Promise((resolve) => {
    const wake = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', wake);
      resolve();
    };
    const timer = setTimeout(wake, ms);
    signal.addEventListener('abort', wake);
  });
}

function reportConnection() {
  const states = [...running].map((live) => live.state);
  const all = states.includes('down') ? 'disconnected, retrying'
    : states.includes('polling') ? 'updating every few seconds'
    : states.includes('live') ? 'live'
    : states.includes('timed') && !states.includes('new') ? 'updating every few seconds' : '';
  if (all)
    hooks.connection(all);
}

// Splits a stream of events. A chunk may end anywhere.
export class EventParser {
  #rest = '';

  push(chunk, onEvent) {
    const events = (this.#rest + chunk).replaceAll('\r\n', '\n').split('\n\n');
    this.#rest = events.pop();
    for (const event of events) {
      let type = 'message';
      const data = [];
      for (const line of event.split('\n')) {
        if (line.startsWith('data:'))
          data.push(line.slice(line[5] === ' ' ? 6 : 5));
        else if (line.startsWith('event:'))
          type = line.slice(6).trim();
      }
      if (data.length)
        onEvent(type, data.join('\n'));
    }
  }
}

// A GET request whose response is read again and again while the tab is visible: from a stream, or
// by polling if there is none. With `every`, always by polling at this interval.
export class Live {
  state = 'new';
  #abort = null;

  constructor(path, {project, onData, onError, every = 0, read}) {
    Object.assign(this, {path, project, onData, onError, every});
    this.read = read || ((response) => response.json());
  }

  start() {
    running.add(this);
    if (!this.#abort && !document.hidden) {
      this.#abort = new AbortController();
      this.#run(this.#abort.signal);
    }
    return this;
  }

  close() {
    running.delete(this);
    this.suspend();
  }

  suspend() {
    this.#abort?.abort();
    this.#abort = null;
  }

  // Asks for another path, or for the same again now.
  move(path = this.path) {
    this.path = path;
    if (running.has(this)) {
      this.suspend();
      this.start();
    }
  }

  async #run(signal) {
    let failures = 0;
    while (!signal.aborted) {
      const streams = !this.every && Date.now() >= streamsAgainAt;
      let wait = this.every || POLL_MS;
      try {
        await (streams ? this.#stream(signal) : this.#poll(signal));
        failures = 0;
        if (streams)
          wait = 100;
      } catch (error) {
        if (signal.aborted)
          return;
        failures = this.state === 'live' ? 1 : failures + 1;
        wait = Math.max(error.retryAfter * 1000 || 0,
          Math.min(LONGEST_WAIT_MS, 500 * 2 ** Math.min(failures, 6)));
        // A server, or a proxy, without streams.
        if (error.status === 406 && streams) {
          streamsAgainAt = Date.now() + NO_STREAMS_MS;
          continue;
        }
        this.#fail(error);
        // A login starts it again.
        if (error.status === 401)
          return;
      }
      await sleep(wait, signal);
    }
  }

  #fail(error) {
    const known = error instanceof ApiError;
    if (!known)
      console.error(error);
    const down = !known || error.status === 0 || error.status >= 502;
    const answered = ['new', 'down'].includes(this.state) ? 'timed' : this.state;
    this.#report(down ? 'down' : answered);
    this.onError?.(known ? error : new ApiError(0, 'Unexpected response', String(error.message)));
  }

  #report(state) {
    this.state = state;
    reportConnection();
  }

  async #poll(signal) {
    const response = await fetchResponse('GET', this.path, {project: this.project, signal});
    const data = await this.read(response);
    if (signal.aborted)
      return;
    this.#report(this.every ? 'timed' : 'polling');
    this.onData(data);
  }

  async #stream(signal) {
    const inner = new AbortController();
    const stop = () => inner.abort();
    signal.addEventListener('abort', stop);
    // A proxy that buffers lets no event through. The next attempt polls.
    const tooLate = () => {
      streamsAgainAt = Date.now() + NO_STREAMS_MS;
      stop();
    };
    const watch = {timer: setTimeout(tooLate, EVENT_WITHIN_MS)};
    try {
      await this.#readStream(inner.signal, () => {
        clearTimeout(watch.timer);
        watch.timer = setTimeout(tooLate, EVENT_WITHIN_MS);
      });
    } catch (error) {
      if (signal.aborted || !inner.signal.aborted)
        throw error;
    } finally {
      clearTimeout(watch.timer);
      signal.removeEventListener('abort', stop);
      stop();
    }
  }

  async #readStream(signal, onEvent) {
    const response = await fetchResponse('GET', this.path,
      {project: this.project, signal, accept: 'text/event-stream'});
    if (!response.headers.get('Content-Type')?.startsWith('text/event-stream')) {
      streamsAgainAt = Date.now() + NO_STREAMS_MS;
      this.#report('polling');
      this.onData(await response.json());
      return;
    }
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    const parser = new EventParser();
    for (;;) {
      const {done, value} = await reader.read().catch(() => ({done: true}));
      if (done)
        throw new ApiError(0, 'No response', 'The connection ended.');
      parser.push(value, (type, data) => {
        if (signal.aborted)
          return;
        onEvent();
        const document = JSON.parse(data);
        if (type === 'end')
          throw new ApiError(document.title === 'Not found' ? 404 : 503, document.title,
            document.description);
        this.#report('live');
        this.onData(document);
      });
    }
  }
}

document.addEventListener('visibilitychange', () => {
  for (const live of running)
    document.hidden ? live.suspend() : live.start();
});

window.addEventListener('online', restartAll);

export function restartAll() {
  for (const live of running)
    live.move();
}

// Runs lazy requests, at most four at once. `wanted` may say that one is no longer needed.
const waiting = [];
let active = 0;

export function later(work, wanted = () => true) {
  waiting.push({work, wanted});
  next();
}

function next() {
  while (active < 4 && waiting.length && !document.hidden) {
    const job = waiting.shift();
    if (!job.wanted())
      continue;
    active++;
    job.work().catch(() => {}).finally(() => {
      active--;
      next();
    });
  }
}

document.addEventListener('visibilitychange', next);
