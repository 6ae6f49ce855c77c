// The server: its parts in numbers, and the alerts that fire.
import {caller, Live, may, usualProject} from './api.js';
import {errorText, facts, freshness, h, lead, say, text, update} from './dom.js';
import {bytes, clock, count, duration, NONE, plural, shortSeconds} from './format.js';
import {queueHref} from './queues.js';

const EVERY_MS = 5000;
const MEASURING = 'measuring';
const QUEUES_EVERY_MS = 60000;
const WINDOW_MS = 15 * 60 * 1000;
const KEEP_EACH_MS = 60 * 1000;
const QUEUES_SHOWN = 5;   // of an alert
const PENDING_MS = 15 * 60 * 1000;

// ---------------------------------------------------------------- metrics

const asText = (response) => response.text();
const ofQueues = (name) => name.startsWith('claimd_queue_');

const SAMPLE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)/;
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/g;

function labelsOf(source) {
  const unescape = (value) => value.replace(/\\(.)/g, (_, c) => c === 'n' ? '\n' : c);
  return Object.fromEntries([...(source || '').matchAll(LABEL)].map((m) => [m[1], unescape(m[2])]));
}

function parseMetrics(source) {
  const families = new Map();
  for (const line of source.split('\n')) {
    const match = SAMPLE.exec(line);
    if (!match)
      continue;
    if (!families.has(match[1]))
      families.set(match[1], []);
    families.get(match[1]).push({labels: labelsOf(match[2]), value: Number(match[3])});
  }
  return families;
}

// One scrape, and an older one to compare it with.
class Scrape {
  constructor(families, at, before = null) {
    Object.assign(this, {families, at, before});
  }

  has(name) {
    return this.families.has(name);
  }

  labels(name) {
    return this.families.get(name)?.[0]?.labels || {};
  }

  // The sum of all samples of a family that match. null: there is none.
  sum(name, match = () => true) {
    const samples = (this.families.get(name) || []).filter((s) => match(s.labels));
    return samples.length ? samples.reduce((sum, s) => sum + s.value, 0) : null;
  }

  // By how much a counter grew since the older scrape.
  increase(name, match) {
    // The metrics of queues come seldom, and the older scrape may be from before them.
    const known = this.before && (this.before.has(name) || !ofQueues(name));
    return known ? (this.sum(name, match) || 0) - (this.before.sum(name, match) || 0) : 0;
  }

  rate(name, match) {
    return this.before ? this.increase(name, match) / ((this.at - this.before.at) / 1000) : 0;
  }

  // A quantile of what a histogram saw since the older scrape, or since the start.
  quantile(q, family) {
    const name = `${family}_bucket`;
    const bounds = [...new Set((this.families.get(name) || []).map((s) => s.labels.le))];
    const grown = bounds.map((le) => ({le: le === '+Inf' ? Infinity : Number(le),
      n: this.increase(name, (l) => l.le === le)})).sort((a, b) => a.le - b.le);
    const wanted = q * (grown.at(-1)?.n || 0);
    const i = grown.findIndex((b) => b.n >= wanted);
    if (!wanted || i < 0)
      return null;
    const [low, below] = i ? [grown[i - 1].le, grown[i - 1].n] : [0, 0];
    if (grown[i].le === Infinity)
      return low;
    return low + (grown[i].le - low) * (wanted - below) / Math.max(grown[i].n - below, 1e-9);
  }
}

// Keeps a scrape for each of the last 15 minutes. A restart of the server begins anew.
class Scrapes {
  #kept = [];

  add(families) {
    const now = Date.now();
    const start = (f) => f.get('process_start_time_seconds')?.[0]?.value;
    if (this.#kept.length && start(this.#kept[0].families) !== start(families))
      this.#kept = [];
    this.#kept = this.#kept.filter((s) => now - s.at <= WINDOW_MS);
    const scrape = new Scrape(families, now, this.#kept[0] || null);
    if (!this.#kept.length || now - this.#kept.at(-1).at >= KEEP_EACH_MS)
      this.#kept.push(new Scrape(families, now));
    return scrape;
  }
}

// ---------------------------------------------------------------- alerts

const is = (label, ...values) => (labels) => values.includes(labels[label]);
const waiters = (m) => m.sum('claimd_http_requests_parked', is('reason', 'message'));

// Bodies in memory. The metrics of unloaded ones exist only with backlog_memory.
function loadedBytes(m) {
  return m.sum('claimd_queue_bytes') - m.sum('claimd_queue_unloaded_bytes');
}

function valueText({value, unit}) {
  if (unit === 'seconds')
    return value < 10 ? shortSeconds(value) : duration(value);
  return unit === 'bytes' ? bytes(value) : plural(Math.round(value), unit.slice(0, -1));
}

// The queues of alerts with one name. Those that /metrics does not show have no name.
function queuesOf(alerts) {
  const shown = alerts.filter((a) => a.project !== null || a.unit);
  const parts = shown.slice(0, QUEUES_SHOWN).flatMap((a, i) => [i ? ', ' : ' ',
    a.queue !== null ? h('a', {href: queueHref(a.project, a.queue)}, text(a.queue))
      : a.topic ? ['topic ', text(a.topic)] : null,
    a.unit ? a.project === null ? valueText(a) : ` (${valueText(a)})` : null]);
  const further = shown.length - QUEUES_SHOWN;
  return parts.length ? [...parts, further > 0 ? ` and ${count(further)} more.` : '.'] : [];
}

function alertNotice(alerts) {
  const [first] = alerts;
  const pending = first.state === 'pending';
  const at = clock(Date.parse(pending ? first.fires_at : first.since));
  const cls = pending ? 'notice pending' : first.severity === 'critical' ? 'notice bad critical'
    : 'notice bad';
  return h('li', {class: cls, 'data-alert': first.name, 'data-state': first.state},
    h('strong', {}, `${first.summary}.`), queuesOf(alerts), ' ', first.action, ' ',
    h('span', {class: 'note'}, `${first.name}, ${pending ? `fires at ${at} if it goes on` : `since ${at}`}`));
}

// One notice for each name and state. What fires comes first, and of that the critical. Alerts that
// would fire much later are not shown yet.
function alertNotices(alerts, asOf) {
  const groups = new Map();
  for (const alert of alerts) {
    if (Date.parse(alert.fires_at) - Date.parse(asOf) > PENDING_MS)
      continue;
    const key = `${alert.state === 'firing' ? 0 : 2} ${alert.severity === 'critical' ? 0 : 1} ` +
      `${alert.fires_at} ${alert.name}`;
    const name = `${alert.name} ${alert.state}`;
    groups.set(name, {key, ...groups.get(name), alerts: [...groups.get(name)?.alerts || [], alert]});
  }
  return [...groups.values()].sort((a, b) => a.key < b.key ? -1 : 1).map((g) => alertNotice(g.alerts));
}

// ---------------------------------------------------------------- sections

function bar(value, most, label) {
  return h('progress', {value, max: most || 1, 'aria-label': label});
}

// Two scrapes tell how fast a counter grows.
function perSecond(m, name) {
  const rate = m.rate(name);
  return !m.before ? MEASURING
    : `${rate < 100 ? rate.toFixed(1) : count(rate)} per second`;
}

function serverFacts(m) {
  const start = m.sum('process_start_time_seconds');
  const busy = m.rate('process_cpu_seconds_total');
  return facts([['Version', text(m.labels('claimd_build_info').version || NONE)],
    ['State', m.sum('claimd_ready') ? 'ready' : 'not ready'],
    ['Up', `${duration(Date.now() / 1000 - start)}, since ${clock(start * 1000)}`],
    ['Queues', count(m.sum('claimd_queues'))],
    ['Threads', count(m.sum('claimd_workers'))],
    ['Processor', m.before ? `${(busy * 100).toFixed(busy < 0.1 ? 1 : 0)} % of a core` : MEASURING],
    ['Requests', perSecond(m, 'claimd_http_requests_total')],
    ['Authentication', caller.auth ? 'on' : 'off']]);
}

function memory(m) {
  const used = m.sum('claimd_memory_used_bytes');
  const budget = m.sum('claimd_memory_budget_bytes');
  return [budget ? bar(used, budget, 'Memory used of the budget') : '', facts([
    ['Used', budget ? `${bytes(used)} of ${bytes(budget)} (${used < budget / 100 ? 'under 1'
      : Math.round(100 * used / budget)} %)`
      : `${bytes(used)}, without a budget (max_memory)`],
    budget ? ['Posts', `are refused from ${bytes(budget * 0.75)} on`] : null,
    ['Resident', bytes(m.sum('process_resident_memory_bytes'))],
    ['Bodies of messages', m.has('claimd_queue_bytes') ? bytes(loadedBytes(m)) : MEASURING],
    ['To be freed', plural(m.sum('claimd_garbage_messages'), 'message')]])];
}

// Messages that are only on the disk.
function unloaded(m) {
  const p = (name) => shortSeconds(m.quantile(0.99, name) ?? NaN);
  const read = p('claimd_journal_load_seconds');
  const waited = p('claimd_http_load_wait_seconds');
  return [['Body files', `${bytes(m.sum('claimd_journal_body_bytes'))} in ` +
    plural(m.sum('claimd_journal_body_files'), 'file')],
  ['Only on the disk', `${plural(m.sum('claimd_messages_unloaded'), 'message')} with ` +
    bytes(m.sum('claimd_unloaded_bytes'))],
  ['Reads', `${count(m.sum('claimd_journal_runs_loaded_total'))} since the start` +
    (read === NONE ? '' : `, 99 % within ${read}`)],
  waited === NONE ? null : ['Requests waited', `99 % at most ${waited}`]];
}

function journal(m) {
  if (!m.has('claimd_journal_bytes'))
    return null;
  const p = (q) => shortSeconds(m.quantile(q, 'claimd_journal_sync_seconds') ?? NaN);
  const checkpoint = m.sum('claimd_journal_last_checkpoint_timestamp_seconds');
  return facts([['Size', `${bytes(m.sum('claimd_journal_bytes'))} in ` +
    plural(m.sum('claimd_journal_segments'), 'segment')],
  ['Space left', bytes(m.sum('claimd_journal_left_bytes'))],
  ['Checkpoints', `${count(m.sum('claimd_journal_sweeps_total'))} since the start` +
    (checkpoint ? `, the last at ${clock(checkpoint * 1000)}` : '')],
  ['Sync', !m.before ? MEASURING : p(0.5) === NONE ? 'none lately'
    : `half within ${p(0.5)}, 99 % within ${p(0.99)}`],
  ['Commits', perSecond(m, 'claimd_journal_commits_total')],
  ['Not durable yet', plural(m.sum('claimd_journal_undurable_records'), 'record')],
  ...(m.sum('claimd_journal_body_files') ? unloaded(m) : [])]);
}

function redis(m) {
  if (!m.has('claimd_redis_primaries'))
    return null;
  const p = (name) => {
    const seconds = m.quantile(0.99, name);
    return !m.before ? MEASURING : seconds === null ? 'none lately' : `99 % within ${shortSeconds(seconds)}`;
  };
  return facts([['Primaries', count(m.sum('claimd_redis_primaries'))],
    ['Replicas', `at least ${count(m.sum('claimd_redis_replicas_least'))} of each primary`],
    ['Slots without owner', count(m.sum('claimd_redis_slots_without_owner'))],
    ['Age of the slot map', duration(m.sum('claimd_redis_map_age_seconds'))],
    ['Oldest transfer', duration(m.sum('claimd_redis_outbox_age_seconds'))],
    ['Response', p('claimd_redis_answer_seconds')],
    ['Confirmation', p('claimd_redis_confirmation_seconds')],
    ['Not confirmed', `${count(m.sum('claimd_redis_unconfirmed_total'))} since the start`]]);
}

function connections(m) {
  const open = m.sum('claimd_http_connections');
  const most = m.sum('claimd_http_max_connections');
  const phase = (name) => count(m.sum('claimd_http_connections', is('phase', name)));
  return [bar(open, most, 'Connections of the maximum'), facts([
    ['Open', `${count(open)} of ${count(most)}`],
    ['Idle', phase('waiting')], ['Receiving', phase('receiving')], ['Sending', phase('answering')],
    ['Waiting', phase('parked')],
    ['Long polling', `${count(waiters(m))} of ${count(m.sum('claimd_http_max_waiters'))}`],
    ['Refused', `${count(m.sum('claimd_http_connections_refused_total'))} since the start`]])];
}

function subscriptions(m) {
  const total = (end) => count(m.sum(`claimd_notifications_${end}`));
  if (!m.sum('claimd_subscriptions') && !m.sum('claimd_notifications_delivered_total'))
    return null;
  return facts([['Subscriptions', count(m.sum('claimd_subscriptions'))],
    ['Backlog', bytes(m.sum('claimd_subscription_backlog_bytes'))],
    ['Delivered', total('delivered_total')], ['Failed, retried', total('failed_total')],
    ['Failed for good', total('given_up_total')], ['Dropped', total('fallen_out_total')],
    ['In progress', total('in_flight')],
    ['Slow hosts', count(m.sum('claimd_notification_slow_hosts'))]]);
}

const sections = [['server-facts', 'Server', serverFacts], ['server-memory', 'Memory', memory],
  ['server-journal', 'Journal', journal], ['server-redis', 'Redis', redis],
  ['server-connections', 'Connections', connections],
  ['server-subscriptions', 'Subscriptions', subscriptions]];

// ---------------------------------------------------------------- the view

export function serverView({main}) {
  const scrapes = new Scrapes();
  const problem = h('p', {class: 'error', role: 'alert'});
  const alerts = h('ul', {class: 'plain'});
  const none = h('p', {class: 'note'}, 'Loading');
  const fresh = freshness(main);
  const cards = sections.map(([id, title, render]) => {
    const body = h('div');
    const card = h('section', {id, class: 'panel', hidden: true, 'aria-labelledby': `${id}-title`},
      h('h2', {id: `${id}-title`}, title), body);
    return {card, show(scrape) {
      const nodes = render(scrape);
      card.hidden = nodes === null;   // the server has no such part
      update(body, ...[nodes].flat());
    }};
  });
  let perQueue = new Map();

  function showAlerts(data) {
    fresh.fresh();
    say(problem, '');
    update(alerts, ...alertNotices(data.alerts, data.as_of));
    const fires = data.alerts.some((a) => a.state === 'firing');
    none.className = fires || !data.since ? 'note' : 'notice';
    say(none, !data.since ? 'claimd has just started. It evaluates the rules each minute.'
      : `${fires ? '' : 'No alert fires. '}Evaluated at ${clock(Date.parse(data.as_of))}. ` +
        `claimd has watched since ${clock(Date.parse(data.since))}.` +
        (data.complete ? '' : ' There are more alerts about queues than these.'));
  }

  function showMetrics(source) {
    const scrape = scrapes.add(new Map([...perQueue, ...parseMetrics(source)]));
    cards.forEach((card) => card.show(scrape));
  }

  function fail(error) {
    const old = fresh.failed(error);
    if (alerts.childElementCount === 0 && !old)
      say(none, '');
    say(problem, old ? '' : errorText(error));
  }

  main.append(h('h1', {}, 'Server'),
    lead('This server, and the alerts that fire by the rules for Prometheus. claimd evaluates them ' +
      'itself, on its last hour.'), problem, fresh.note,
    h('section', {id: 'server-alerts', 'aria-labelledby': 'alerts-title'},
      h('h2', {id: 'alerts-title'}, 'Alerts'), alerts, none),
    h('div', {class: 'columns'}, cards.map(({card}) => card)));
  const lives = [new Live('../alerts', {project: usualProject(), every: EVERY_MS, onData: showAlerts,
    onError: fail})];
  if (may('metrics:get')) {
    lives.push(new Live('../../metrics', {every: QUEUES_EVERY_MS, read: asText, onData(source) {
      perQueue = new Map([...parseMetrics(source)].filter(([name]) => ofQueues(name)));
    }}), new Live('../../metrics?per_queue=false', {every: EVERY_MS, read: asText, onData: showMetrics,
      onError(error) {
        if (error.status === 403)
          cards.forEach(({card}) => {
            card.hidden = true;
          });
      }}));
  } else {
    main.append(h('p', {class: 'note'}, 'You may not see the numbers of the server (metrics:get, for ' +
      'all projects).'));
  }
  for (const live of lives)
    live.start();
  return {close: () => [...lives, fresh].forEach((part) => part.close())};
}
