// Commands for a shell that the page suggests, with a button that copies them.
import {caller, hasToken} from './api.js';
import {h, toast} from './dom.js';
import {visible} from './format.js';

function quoted(word) {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

// The address of claimd, below the prefix of a proxy if there is one.
function address(path = '') {
  return new URL(`../../${path}`, location.href.split('#')[0]).href.replace(/\/$/, '');
}

// Without access control, requests without a project are for this one.
function needsProject(project) {
  return Boolean(project) && project !== caller.project && (hasToken() || project !== 'default');
}

// null if the name of the project has characters that do not show.
function command(project, words) {
  return project && visible(project) !== project ? null : words.flat().join(' ');
}

export function postCommand(project, queue) {
  return command(project, ["curl -d 'hello'",
    hasToken() ? '-H "X-Auth-Token: $TOKEN"' : [],
    needsProject(project) ? `-H ${quoted(`X-Project-ID: ${project}`)}` : [],
    quoted(address(`claimd/queues/${encodeURIComponent(queue)}/raw`))]);
}

export function workCommand(project, queue) {
  return command(project, ['claimd work', quoted(queue), '--url', quoted(address()),
    project ? ['--project', quoted(project)] : [],
    hasToken() ? '--token-file FILE' : [], '-- ./job']);
}

// Without TLS, a browser has no clipboard, but still copies what is selected.
async function copy(code) {
  try {
    await navigator.clipboard.writeText(code.textContent);
  } catch {
    getSelection().selectAllChildren(code);
    document.execCommand('copy');
  }
  toast('Copied the command.');
}

// What to do next: a sentence and a command.
export function suggestion(sentence, line) {
  const code = h('code', {}, line);
  return h('p', {class: 'command'}, h('span', {}, sentence), line && [code,
    h('button', {type: 'button', onclick: () => copy(code)}, 'Copy')]);
}
