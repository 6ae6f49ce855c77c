// What people can do to queues and messages. Each action asks first and names what goes.
import {schedulePath, send, v2, view, withQuery} from './api.js';
import {byId, confirm, errorText, h, text, toast, workerNode} from './dom.js';
import {count, plural} from './format.js';

const IDS_PER_DELETE = 20;

const strong = (name) => h('strong', {}, text(name));

export function queueName(project, queue) {
  return [strong(queue), ' (project ', text(project), ')'];
}

// ---------------------------------------------------------------- post

function postBody(body, ttl, delay) {
  JSON.parse(body);
  const integer = (name, value) => {
    if (value && !/^\d+$/.test(value))
      throw new Error(`${name} must be a number of seconds`);
    return value ? `,"${name}":${value}` : '';
  };
  // The body goes as it was typed, so that large numbers keep their digits.
  return `{"messages":[{"body":${body}${integer('ttl', ttl)}${integer('delay', delay)}}]}`;
}

export function postMessage(project, queue, done) {
  const dialog = byId('post');
  const form = dialog.querySelector('form');
  const value = (id) => byId(id).value.trim();
  const fail = (message) => {
    byId('post-error').textContent = message;
  };
  form.reset();
  fail('');
  byId('post-queue').replaceChildren('To the queue ', ...queueName(project, queue), '.');
  byId('post-cancel').onclick = () => dialog.close();
  form.onsubmit = async (event) => {
    event.preventDefault();
    let document;
    try {
      document = postBody(value('post-body'), value('post-ttl'), value('post-delay'));
    } catch (error) {
      fail(`Not sent: ${error.message}. A text needs double quotes: "hello".`);
      return;
    }
    byId('post-send').disabled = true;
    try {
      await send('POST', v2(queue, '/messages'), project, document);
      dialog.close();
      await done();
      toast('Posted 1 message.');
    } catch (error) {
      fail(errorText(error));
    } finally {
      byId('post-send').disabled = false;
    }
  };
  dialog.showModal();
  byId('post-body').focus();
}

// ---------------------------------------------------------------- queues

export async function purge(project, queue, row) {
  const total = row.ready + row.delayed + row.claimed;
  const yes = await confirm({title: 'Purge the queue?', ok: `Delete ${plural(total, 'message')}`,
    content: [h('p', {}, `This deletes all ${plural(total, 'message')} of the queue `,
      ...queueName(project, queue), `: ${count(row.ready)} ready, ${count(row.delayed)} delayed and ` +
      `${count(row.claimed)} that workers hold. Their claims end.`), 'You cannot undo this.']});
  if (!yes)
    return '';
  await send('POST', v2(queue, '/purge'), project, {resource_types: ['messages']});
  return `Purged the queue ${queue}.`;
}

export async function pause(project, queue, paused) {
  const resume = paused.claims || paused.posts;
  const box = (label, checked) => h('label', {class: 'check'},
    h('input', {type: 'checkbox', checked}), label);
  const claims = box('Pause claims', true);
  const posts = box('Pause posts', false);
  const what = resume ? 'Workers get its messages again, and producers can post.'
    : 'Workers get no messages of a queue with paused claims, and their requests wait. With ' +
      'paused posts, producers are refused (503) until you resume posts. Messages that workers ' +
      'hold stay theirs.';
  const verb = resume ? 'Resume' : 'Pause';
  const yes = await confirm({title: `${verb} the queue?`, ok: verb, danger: false,
    content: [h('p', {}, `${resume ? 'This resumes' : 'This pauses'} the queue `,
      ...queueName(project, queue), '. ', what), resume ? '' : h('p', {}, claims, posts)]});
  if (!yes)
    return '';
  const checked = (label) => !resume && label.firstElementChild.checked;
  await send('POST', view(queue, '/pause'), project,
    {claims: checked(claims), posts: checked(posts)});
  return resume ? `Resumed the queue ${queue}.` : `Paused the queue ${queue}.`;
}

export async function release(project, queue, claim) {
  const yes = await confirm({title: 'Release the claim?', ok: 'Release',
    content: [h('p', {}, `This ends the claim ${claim.number} of the queue `,
      ...queueName(project, queue), '. ', claim.messages === 1 ? 'Its message becomes'
        : claim.messages ? `Its ${count(claim.messages)} messages become` : 'Its messages become',
      ' ready at once for other workers.'),
    h('p', {}, 'The worker ', h('strong', {}, workerNode(claim) || 'that holds it'),
      ' may go on. If so, the work is done twice.')]});
  if (!yes)
    return '';
  await send('DELETE', v2(queue, `/claims/${encodeURIComponent(claim.id)}`), project);
  return 'Released the claim.';
}

// ---------------------------------------------------------------- messages

export function deleteIds(project, queue, ids, claim) {
  return send('DELETE', withQuery(v2(queue, '/messages'),
    {ids: ids.join(','), claim_ids: claim}), project);
}

export async function deleteOne(project, queue, id, claim) {
  const yes = await confirm({title: 'Delete the message?', ok: 'Delete 1 message',
    content: [h('p', {}, 'This deletes the message ', strong(id), ' of the queue ',
      ...queueName(project, queue), '.', claim ? ' A worker holds it.' : ''),
    'You cannot undo this.']});
  if (!yes)
    return false;
  await deleteIds(project, queue, [id], claim?.id);
  return true;
}

// Calls `step` with pieces of the ids until all are done or `stopped` says so.
export async function inPieces(ids, size, stopped, step) {
  for (let i = 0; i < ids.length && !stopped(); i += size)
    await step(ids.slice(i, i + size));
}

export const deleteMany = (project, queue, ids, stopped, onDone) =>
  inPieces(ids, IDS_PER_DELETE, stopped, async (piece) => {
    await deleteIds(project, queue, piece);
    onDone(piece.length);
  });

// ---------------------------------------------------------------- redrive

export const redrive = (project, queue, body) =>
  send('POST', view(queue, '/redrive'), project, body);

// ---------------------------------------------------------------- schedules

const scheduleName = (project, row) =>
  [strong(row.name), ' of the queue ', ...queueName(project, row.queue)];

export async function pauseSchedule(project, row) {
  const verb = row.paused ? 'Resume' : 'Pause';
  const yes = await confirm({title: `${verb} the schedule?`, ok: verb, danger: false,
    content: [h('p', {}, `This ${verb.toLowerCase()}s the schedule `, ...scheduleName(project, row),
      '. ', row.paused ? 'claimd posts at its next due time, and nothing for those that passed.'
        : 'claimd posts nothing for it until you resume it, and its due times pass.')]});
  if (!yes)
    return '';
  await send('PATCH', schedulePath(row.queue, row.name), project, {paused: !row.paused});
  return `${verb}d the schedule ${row.name}.`;
}

export async function deleteSchedule(project, row) {
  const yes = await confirm({title: 'Delete the schedule?', ok: 'Delete 1 schedule',
    content: [h('p', {}, 'This deletes the schedule ', ...scheduleName(project, row),
      '. Messages that it posted stay.'), 'You cannot undo this.']});
  if (!yes)
    return '';
  await send('DELETE', schedulePath(row.queue, row.name), project);
  return `Deleted the schedule ${row.name}.`;
}
