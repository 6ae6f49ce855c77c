// The server: its parts in numbers, and the alerts that fire.
import {caller, Live, may, usualProject, withQuery} from './api.js';
import {errorText, facts, h, lead, say, text, update} from './dom.js';
import {age, bytes, clock, count, duration, NONE, plural, shortSeconds} from './format.js';
import {claimTooOld, queueHref, readyTooOld} from './queues.js';

const EVERY_MS = 5000;
const QUEUES_EVERY_MS = 60000;
const WINDOW_MS = 15 * 60 * 1000;
const KEEP_EACH_MS = 60 * 1000;

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
const posts = (l) => l.method === 'POST' && l.route.endsWith('/messages') &&
  /^(429|503)$/.test(l.code);
const fifth = (l) => /^5/.test(l.code) && l.route !== '/readyz';
const tries = 'claimd_notification_tries_total';

const waiters = (m) => m.sum('claimd_http_requests_parked', is('reason', 'message'));

function share(m, part, whole, most) {
  return part > 0 && part > most * whole && m.before !== null;
}

// Bodies in memory. The metrics of unloaded ones exist only with backlog_memory.
function loadedBytes(m) {
  return m.sum('claimd_queue_bytes') - m.sum('claimd_queue_unloaded_bytes');
}

function journalRoom(m) {
  const live = loadedBytes(m) + 120 * m.sum('claimd_queue_messages') +
    m.sum('claimd_subscription_backlog_bytes');
  return m.has('claimd_journal_left_bytes') && m.has('claimd_queue_bytes') &&
    m.sum('claimd_journal_left_bytes') < 64 * 2 ** 20 + 1.5 * live;
}

function fallenOut(m) {
  const name = (end) => `claimd_notifications_${end}_total`;
  const out = m.increase(name('fallen_out'));
  return share(m, out, out + m.increase(name('delivered')) + m.increase(name('given_up')), 0.05);
}

// name, critical, condition, what is wrong, what to do. The thresholds are those of
// docs/prometheus/claimd.rules.yml.
const rules = [
  ['ClaimdNotReady', false, (m) => m.sum('claimd_ready') === 0, 'claimd is not ready.',
    'It is in maintenance, drains, or has no store. /readyz says which.'],
  ['ClaimdClaimsExpiring', false, (m) => share(m, m.increase('claimd_messages_given_back_total',
    is('reason', 'expired')), m.increase('claimd_messages_claimed_total'), 0.05),
  'Over 5 % of the claimed messages come back because their claim expired.',
  'Look for workers that crash, and let slow ones renew their claims or ask for a longer TTL.'],
  ['ClaimdLateDeletions', false, (m) => m.increase('claimd_late_deletions_refused_total') > 5,
    'Workers delete messages after their claim expired.',
    'Let workers renew their claims. These jobs may have run twice.'],
  ['ClaimdDeadLetters', false, (m) => m.increase('claimd_dead_letters_moved_total') > 0,
    'Messages were dead-lettered.', 'Open the dead letters of the queue and read the reasons.'],
  ['ClaimdMessagesExpiredUnread', false,
    (m) => m.increase('claimd_queue_messages_expired_unread_total') > 0,
    'Messages expired before a worker claimed them.',
    'Check that workers claim from the right queue. Post with a longer TTL.'],
  ['ClaimdDeadLettersExpired', false,
    (m) => m.increase('claimd_queue_dead_letters_expired_total') > 0,
    'Dead letters expired.', 'Look at dead letters earlier, or raise dead_letter_ttl.'],
  ['ClaimdPostsRefused', true, (m) => m.increase('claimd_http_requests_total', posts) > 0,
    'claimd refuses posts.', 'Check the limits of projects, the memory and the journal below.'],
  ['ClaimdServerErrors', false, (m) => share(m, m.increase('claimd_http_requests_total', fifth),
    m.increase('claimd_http_requests_total'), 0.01), 'Over 1 % of the responses are 5xx.',
  'For 503, see the alerts above. 500 is a bug. Report it with the log.'],
  ['ClaimdConnectionsNearLimit', false, (m) => m.sum('claimd_http_connections') >
    0.8 * m.sum('claimd_http_max_connections'), 'Over 80 % of the possible connections are open.',
  'Lower idle_seconds if most of them wait. Otherwise raise max_connections.'],
  ['ClaimdConnectionsRefused', true, (m) => m.increase('claimd_http_connections_refused_total') > 0,
    'claimd refuses connections.', 'Find the client that opens them, or raise max_connections.'],
  ['ClaimdWaitersNearLimit', false, (m) => waiters(m) > 0.8 * m.sum('claimd_http_max_waiters'),
    'Over 80 % of the long-polling requests are in use.',
    'Raise max_waiters, or let workers claim from several queues at once.'],
  ['ClaimdNotificationsGivenUp', false, (m) => share(m, m.increase(tries,
    is('result', 'refused', 'given_up')), m.increase(tries, (l) => l.result !== 'failed'), 0.05),
  'Over 5 % of the notifications fail permanently.', 'The log names the hosts of the subscribers.'],
  ['ClaimdNotificationsFallenOut', false, fallenOut,
    'Over 5 % of the notifications are dropped before subscribers receive them.',
    'Fix the subscriber that is behind, or delete its subscription.'],
  ['ClaimdNotificationsPutOff', false, (m) => m.increase('claimd_notifications_put_off_total') > 0,
    'Notifications are postponed.', 'Find slow hosts, or raise max_notifier_workers.'],
  ['ClaimdNotificationHostsSlow', false, (m) => m.sum('claimd_notification_slow_hosts') > 0 &&
    m.quantile(0.9, 'claimd_notification_seconds') > 2.5, 'Hosts of subscribers are slow.',
  'Ask the receivers to respond before they work.'],
  ['ClaimdNotificationsKeptOut', false,
    (m) => m.increase('claimd_notifications_kept_out_total') > 0,
    'Subscribers have addresses that claimd may not reach.', 'Check notify_allow and the log.'],
  ['ClaimdMemoryNearBudget', false, (m) => m.sum('claimd_memory_budget_bytes') > 0 &&
    m.sum('claimd_memory_used_bytes') > 0.65 * m.sum('claimd_memory_budget_bytes'),
  'Over 65 % of the memory budget is used.',
  'Work off or purge large queues, or raise max_memory. From 75 % on, claimd refuses posts.'],
  ['ClaimdJournalFailed', true, (m) => m.sum('claimd_journal_failed') === 1,
    'claimd cannot write the journal.', 'Check the disk and the kernel log.'],
  ['ClaimdJournalFull', true, (m) => m.sum('claimd_journal_full') === 1, 'The journal is full.',
    'Free disk space, raise journal_max_bytes, or work off messages.'],
  ['ClaimdJournalRoomSmall', false, journalRoom, 'The journal has little space left.',
    'Free disk space or raise journal_max_bytes. The live data must fit once more.'],
  ['ClaimdJournalSlowSyncs', false, (m) => m.quantile(0.99, 'claimd_journal_sync_seconds') > 0.25,
    'The disk of the journal is slow.', 'Look for other writers or a failing disk.'],
  ['ClaimdJournalSlowReads', false, (m) => m.quantile(0.99, 'claimd_http_load_wait_seconds') > 1,
    'Requests wait long for messages that are only on the disk.',
    'Look for other readers or a failing disk, or raise backlog_memory.'],
  ['ClaimdRedisSlotsWithoutOwner', true, (m) => m.sum('claimd_redis_slots_without_owner') > 0,
    'Slots of Redis have no owner.', 'Restore a node: redis-cli --cluster check lists the slots.'],
  ['ClaimdRedisUnconfirmed', true, (m) => m.increase('claimd_redis_unconfirmed_total') > 0,
    'Replicas of Redis do not confirm changes.', 'Restore the replica, or add another one.'],
  ['ClaimdRedisMapOld', false, (m) => m.sum('claimd_redis_map_age_seconds') > 120 &&
    m.sum('claimd_redis_primaries') > 1, 'claimd cannot read the slot map of Redis.',
  'Check the network and the rights of the Redis user.'],
  ['ClaimdRedisConfirmationsSlow', false,
    (m) => m.quantile(0.99, 'claimd_redis_confirmation_seconds') > 0.5,
    'Replicas of Redis confirm slowly.', 'Check the disk and the network of the replicas.'],
  ['ClaimdRedisDeadLettersLate', false, (m) => m.sum('claimd_redis_outbox_age_seconds') > 60,
    'Dead letters do not arrive.', 'Restore the node of the dead-letter queue.'],
  ['ClaimdDecryptionFailures', true, (m) => m.increase('claimd_decryption_failures_total') > 0,
    'claimd cannot decrypt bodies.', 'The log names the key that encryption_keys lacks.'],
  ['ClaimdReloadFailed', false, (m) => m.sum('claimd_last_reload_successful') === 0,
    'The last reload failed.', 'The log names file and line. The old settings stay in force.'],
  ['ClaimdLogLinesDropped', false, (m) => m.increase('claimd_log_lines_dropped_total') > 0,
    'claimd drops log lines.', 'Sample the access log, or fix the reader of the log.'],
  ['ClaimdExpiryLag', false, (m) => m.sum('claimd_expiry_lag_seconds') > 30,
    'claimd expires messages and claims late.', 'The processor is overloaded. Add cores.'],
];

function notice(name, critical, what, todo) {
  return h('li', {class: critical ? 'notice bad critical' : 'notice bad', 'data-alert': name},
    h('strong', {}, what), ' ', todo, ' ', h('span', {class: 'note'}, name));
}

function oldQueues(rows, member, isTooOld, name, what, todo) {
  const old = rows.filter(isTooOld);
  const links = old.slice(0, 5).flatMap((row, i) => [i ? ', ' : ' ',
    h('a', {href: queueHref(row.project, row.name)}, text(row.name)), ` (${age(row[member])})`]);
  return old.length === 0 ? [] : [notice(name, false, what,
    [todo, ...links, old.length > 5 ? ' and more.' : '.'])];
}

// The rules about single queues, from the rows of the survey.
function queueAlerts(rows) {
  return [...oldQueues(rows, 'oldest_ready_age', readyTooOld, 'ClaimdOldestMessageTooOld',
    'A message waits over 30 minutes for a worker.', 'Check that workers claim from the queue:'),
  ...oldQueues(rows, 'oldest_claim_age', claimTooOld, 'ClaimdOldestClaimTooOld',
    'A worker holds a claim for over an hour.', 'If it hangs, stop it or release its claim:')];
}

// ---------------------------------------------------------------- sections

function bar(value, most, label) {
  return h('progress', {value, max: most || 1, 'aria-label': label});
}

function serverFacts(m) {
  const start = m.sum('process_start_time_seconds');
  const busy = m.rate('process_cpu_seconds_total');
  return facts([['Version', text(m.labels('claimd_build_info').version || NONE)],
    ['State', m.sum('claimd_ready') ? 'ready' : 'not ready'],
    ['Up', `${duration(Date.now() / 1000 - start)}, since ${clock(start * 1000)}`],
    ['Queues', count(m.sum('claimd_queues'))],
    ['Threads', count(m.sum('claimd_workers'))],
    ['Processor', m.before ? `${(busy * 100).toFixed(busy < 0.1 ? 1 : 0)} % of a core` : NONE],
    ['Requests', m.before ? `${m.rate('claimd_http_requests_total').toFixed(1)} per second` : NONE],
    ['Authentication', caller.auth ? 'on' : 'off']]);
}

function memory(m) {
  const used = m.sum('claimd_memory_used_bytes');
  const budget = m.sum('claimd_memory_budget_bytes');
  return [budget ? bar(used, budget, 'Memory used of the budget') : '', facts([
    ['Used', budget ? `${bytes(used)} of ${bytes(budget)} (${Math.round(100 * used / budget)} %)`
      : `${bytes(used)}, without a budget (max_memory)`],
    budget ? ['Posts', `are refused from ${bytes(budget * 0.75)} on`] : null,
    ['Resident', bytes(m.sum('process_resident_memory_bytes'))],
    ['Bodies of messages', m.has('claimd_queue_bytes') ? bytes(loadedBytes(m)) : NONE],
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
    return h('p', {class: 'note'}, 'There is no journal on this server (option journal).');
  const p = (q) => shortSeconds(m.quantile(q, 'claimd_journal_sync_seconds') ?? NaN);
  const checkpoint = m.sum('claimd_journal_last_checkpoint_timestamp_seconds');
  return facts([['Size', `${bytes(m.sum('claimd_journal_bytes'))} in ` +
    plural(m.sum('claimd_journal_segments'), 'segment')],
  ['Space left', bytes(m.sum('claimd_journal_left_bytes'))],
  ['Checkpoints', `${count(m.sum('claimd_journal_sweeps_total'))} since the start` +
    (checkpoint ? `, the last at ${clock(checkpoint * 1000)}` : '')],
  ['Sync', p(0.5) === NONE ? NONE : `half within ${p(0.5)}, 99 % within ${p(0.99)}`],
  ['Commits', m.before ? `${m.rate('claimd_journal_commits_total').toFixed(1)} per second` : NONE],
  ['Not durable yet', plural(m.sum('claimd_journal_undurable_records'), 'record')],
  ...(m.sum('claimd_journal_body_files') ? unloaded(m) : [])]);
}

function redis(m) {
  if (!m.has('claimd_redis_primaries'))
    return h('p', {class: 'note'}, 'This server keeps its messages in memory, not in Redis.');
  const p = (name) => shortSeconds(m.quantile(0.99, name) ?? NaN);
  return facts([['Primaries', count(m.sum('claimd_redis_primaries'))],
    ['Replicas', `at least ${count(m.sum('claimd_redis_replicas_least'))} of each primary`],
    ['Slots without owner', count(m.sum('claimd_redis_slots_without_owner'))],
    ['Age of the slot map', duration(m.sum('claimd_redis_map_age_seconds'))],
    ['Oldest transfer', duration(m.sum('claimd_redis_outbox_age_seconds'))],
    ['Response', `99 % within ${p('claimd_redis_answer_seconds')}`],
    ['Confirmation', `99 % within ${p('claimd_redis_confirmation_seconds')}`],
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
  const none = h('p', {hidden: true});
  const bodies = sections.map(() => h('div', {}, h('p', {class: 'note'}, 'Loading')));
  let queues = [];
  let server = [];
  let perQueue = new Map();
  // Most rules look at what grew between two scrapes.
  let compared = false;
  const since = clock(Date.now());

  function showAlerts() {
    update(alerts, ...server, ...queues);
    none.hidden = alerts.childElementCount > 0;
    none.className = compared ? 'notice' : 'note';
    say(none, compared ? `No alert fires. This view began to watch at ${since}.`
      : `Watching: no alert so far, since ${since}.`);
  }

  function show(source) {
    const scrape = scrapes.add(new Map([...perQueue, ...parseMetrics(source)]));
    compared = Boolean(scrape.before);
    say(problem, '');
    sections.forEach(([, , render], i) => update(bodies[i], ...[render(scrape)].flat()));
    server = rules.filter((rule) => rule[2](scrape)).map(([name, critical, , what, todo]) =>
      notice(name, critical, what, todo));
    showAlerts();
  }

  main.append(h('h1', {}, 'Server'),
    lead('This server, and the alerts that fire. They have the thresholds of the rules for ' +
      'Prometheus, but look only at the time since you opened this view, at most 15 minutes.'),
    problem, h('section', {id: 'server-alerts', 'aria-labelledby': 'alerts-title'},
      h('h2', {id: 'alerts-title'}, 'Alerts'), alerts, none));
  const box = h('div', {class: 'columns'}, sections.map(([id, title], i) =>
    h('section', {id, class: 'panel', 'aria-labelledby': `${id}-title`},
      h('h2', {id: `${id}-title`}, title), bodies[i])));
  main.append(box);
  const project = usualProject();
  const oldest = withQuery('../queues', {sort: 'oldest_ready', offset: 0, limit: 50});
  const survey = new Live(oldest, {project, every: EVERY_MS, onData: (data) => {
    queues = queueAlerts(data.queues);
    showAlerts();
  }}).start();
  const live = new Live('../../metrics?per_queue=false', {every: EVERY_MS, onData: show,
    read: asText, onError: (error) => {
      say(problem, errorText(error));
      box.hidden = error.status === 403;
    }});
  const full = new Live('../../metrics', {every: QUEUES_EVERY_MS, read: asText, onData(source) {
    perQueue = new Map([...parseMetrics(source)].filter(([name]) => ofQueues(name)));
  }});
  if (may('metrics:get')) {
    full.start();
    live.start();
  } else {
    say(problem, 'You may not see the numbers of the server (metrics:get, for all ' +
      'projects). Alerts about queues are still shown.');
    box.hidden = true;
  }
  return {close: () => [survey, live, full].forEach((x) => x.close())};
}
