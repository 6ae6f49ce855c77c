// The frame around the views: routes, login, theme and keys.
import {
  caller, hasToken, hooks, loadCaller, restartAll, restoreToken, setToken,
} from './api.js';
import {themed} from './charts.js';
import {byId, clearToasts, errorText, h, lead} from './dom.js';
import {visible} from './format.js';
import {queuesView} from './queues.js';
import {queueView} from './queue.js';
import {messageView} from './message.js';
import {deadLettersView} from './dead_letters.js';
import {scheduleView} from './schedule.js';
import {schedulesView} from './schedules.js';
import {serverView} from './server.js';

const routes = {
  queues: {view: queuesView, names: []},
  queue: {view: queueView, names: ['project', 'queue']},
  message: {view: messageView, names: ['project', 'queue', 'id']},
  dead: {view: deadLettersView, names: ['project', 'queue']},
  schedules: {view: schedulesView, names: []},
  schedule: {view: scheduleView, names: ['project', 'queue', 'name']},
  server: {view: serverView, names: []},
};

const SCROLL_WITHIN_MS = 3000;

const main = byId('main');
let open = null;

// ---------------------------------------------------------------- routes

function parseHash() {
  const [path, query = ''] = location.hash.slice(1).split('?');
  const [name, ...parts] = path.split('/').slice(1);
  const route = Object.hasOwn(routes, name) && routes[name];
  if (!route || parts.length !== route.names.length)
    return null;
  try {
    const params = Object.fromEntries(route.names.map((n, i) => [n, decodeURIComponent(parts[i])]));
    return {name, view: route.view, params, query: new URLSearchParams(query)};
  } catch {
    return null;
  }
}

function setQuery(query) {
  const path = location.hash.split('?')[0] || '#/queues';
  const text = String(query);
  history.replaceState(history.state, '', text ? `${path}?${text}` : path);
}

// Back and Forward lead to the rows that were in the window. Responses bring the rows later, so the
// page scrolls whenever it grows, for some seconds or until the user scrolls.
const scrolled = new Map();   // number of an entry of the history -> pixels
let entry = history.state ?? 0;
let restore = {top: 0, until: 0};

function changeEntry() {
  scrolled.set(entry, window.scrollY);
  const known = history.state !== null;
  entry = history.state ?? Math.max(...scrolled.keys()) + 1;
  history.replaceState(entry, '');
  restore = {top: scrolled.get(entry) || 0, until: known ? Date.now() + SCROLL_WITHIN_MS : 0};
}

function restoreScroll() {
  if (restore.top && Date.now() < restore.until)
    window.scrollTo(0, restore.top);
}

history.scrollRestoration = 'manual';
history.replaceState(entry, '');
new ResizeObserver(restoreScroll).observe(main);
for (const event of ['wheel', 'touchmove', 'pointerdown', 'keydown'])
  window.addEventListener(event, () => {
    restore.until = 0;
  }, {passive: true});

function markNav(name) {
  for (const link of document.querySelectorAll('nav a')) {
    const here = link.getAttribute('href') === `#/${name}`;
    here ? link.setAttribute('aria-current', 'page') : link.removeAttribute('aria-current');
  }
}

function go({focus}) {
  const route = parseHash();
  if (!route) {
    location.replace('#/queues');
    return;
  }
  open?.close();
  open = null;
  main.replaceChildren();
  clearToasts();
  window.scrollTo(0, 0);
  markNav(route.name);
  try {
    open = route.view({main, params: route.params, query: route.query, setQuery});
  } catch (error) {
    main.replaceChildren(h('h1', {}, 'Not possible'), h('p', {class: 'error'}, errorText(error)));
  }
  document.title = `${visible(main.querySelector('h1')?.textContent || 'claimd')} - claimd`;
  if (focus)
    main.focus({preventScroll: true});
}

// ---------------------------------------------------------------- caller and login

function showCaller() {
  const acts = caller.actions.some((a) => /:(delete|create|purge|redrive|pause|update|set)/.test(a));
  const name = caller.name && visible(caller.name);
  byId('caller').textContent = !caller.known ? ''
    : acts ? [name, caller.role].filter(Boolean).join(', ') : 'read-only';
  byId('logout').hidden = !hasToken();
}

// Some tokens are for several projects, or not for all of them. They need the name of one.
function askForProject(error, named) {
  const field = h('input', {id: 'project-name', autocomplete: 'off', spellcheck: 'false'});
  const submit = (event) => {
    event.preventDefault();
    location.hash = `#/queues?project=${encodeURIComponent(field.value.trim())}`;
    start();
  };
  showCaller();
  main.replaceChildren(h('h1', {}, 'Which project?'),
    lead('Your token is not for all projects. Enter the name of the project to look at.'),
    h('p', {class: 'error', role: 'alert'}, named ? errorText(error) : ''),
    h('form', {class: 'filters', onsubmit: submit},
      h('p', {}, h('label', {for: 'project-name'}, 'Project'), field), h('button', {}, 'Go on')));
  field.focus();
}

async function start() {
  const route = parseHash();
  const project = route?.params.project || route?.query.get('project');
  try {
    await loadCaller().catch((error) => {
      if (![400, 403].includes(error.status) || !project)
        throw error;
      return loadCaller(project);
    });
  } catch (error) {
    if ([400, 403].includes(error.status)) {
      askForProject(error, project);
    } else if (error.status !== 401) {
      hooks.connection('disconnected, retrying');
      if (!main.querySelector('h1'))
        main.append(h('h1', {}, 'No response'), h('p', {class: 'error', role: 'alert'},
          'The server cannot be reached. The page tries again.'));
      setTimeout(start, 2000);
    }
    return;
  }
  showCaller();
  go({focus: false});
}

function loginAllowed() {
  const host = location.hostname;
  return location.protocol === 'https:' || host === 'localhost' || host === '[::1]' ||
    /^127\.\d+\.\d+\.\d+$/.test(host);
}

function askForToken(error) {
  const dialog = byId('login');
  const problem = byId('login-error');
  if (!loginAllowed()) {
    byId('login-fields').hidden = byId('login-send').hidden = true;
    problem.textContent = 'This server asks for a token. The page does not send one over a ' +
      'connection that others can read. Open it with https: or on the machine itself.';
  } else if (hasToken()) {
    problem.textContent = errorText(error);
  }
  setToken('');
  if (!dialog.open)
    dialog.showModal();
}

function logIn(event) {
  event.preventDefault();
  const field = byId('login-token');
  setToken(field.value.trim(), byId('login-keep').checked);
  field.value = '';
  if (!hasToken())
    return;
  byId('login-error').textContent = '';
  byId('login').close();
  restartAll();
  start();
}

function logOut() {
  setToken('');
  location.reload();
}

// ---------------------------------------------------------------- theme

function storedTheme() {
  try {
    return localStorage.getItem('claimd-theme') || 'auto';
  } catch {
    return 'auto';
  }
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  byId('theme').textContent = `Theme: ${theme}`;
  themed.dispatchEvent(new Event('change'));
  try {
    localStorage.setItem('claimd-theme', theme);
  } catch {
    // Without storage, the choice lasts as long as the page.
  }
}

// ---------------------------------------------------------------- keys

function onKey(event) {
  const typing = event.target.closest('input, textarea, select, dialog');
  if (typing || event.ctrlKey || event.metaKey || event.altKey)
    return;
  const filter = main.querySelector('[data-filter]');
  if (event.key === '/' && filter)
    filter.focus();
  else if (event.key === '?')
    byId('keys').showModal();
  else
    return;
  event.preventDefault();
}

hooks.unauthorized = askForToken;
hooks.connection = (state) => {
  const badge = byId('connection');
  if (badge.textContent !== state) {
    badge.textContent = state;
    badge.dataset.state = state.split(/\W/)[0];
  }
};
byId('login').addEventListener('cancel', (event) => event.preventDefault());
byId('login').querySelector('form').addEventListener('submit', logIn);
byId('logout').addEventListener('click', logOut);
byId('help').addEventListener('click', () => byId('keys').showModal());
byId('theme').addEventListener('click', () => {
  // The first click changes what one sees.
  const order = matchMedia('(prefers-color-scheme: dark)').matches
    ? ['auto', 'light', 'dark'] : ['auto', 'dark', 'light'];
  setTheme(order[(order.indexOf(storedThemeNow()) + 1) % order.length]);
});
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () =>
  themed.dispatchEvent(new Event('change')));
window.addEventListener('hashchange', () => {
  for (const dialog of document.querySelectorAll('dialog[open]'))
    dialog.close(); // it is about what was shown before
  changeEntry();
  if (caller.known)
    go({focus: true});
});
document.addEventListener('keydown', onKey);

function storedThemeNow() {
  return document.documentElement.dataset.theme || 'auto';
}

setTheme(storedTheme());
if (loginAllowed())
  restoreToken();
start();
