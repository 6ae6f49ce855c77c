/*
 * A fixture for node:test: a server with a movable clock, and a project for each test.
 *
 *     test("messages of a dead worker are redelivered", async (t) => {
 *       const server = await claimd(t);
 *       const queue = server.queue("jobs");
 *       await queue.post([{ job: 1 }]);
 *       await queue.claim({ lease: 60 });
 *       assert.deepEqual(await server.advance(60), ["claim_ended"]);
 *       await (await queue.claim({ lease: 60 })).jobs[0].delete();
 *     });
 *
 * The server is that of CLAIMD_URL (`claimd run -- node --test --test-concurrency=1`). Without this
 * variable, each process starts a server, which ends with the process. `node --test` runs each file
 * in a process of its own.
 */
"use strict";

const { spawn } = require("node:child_process");
const { createHash } = require("node:crypto");
const http = require("node:http");
const { basename } = require("node:path");
const { text } = require("node:stream/consumers");

const { find } = require("./bin.js");
const { Client } = require("./index.js");

const LEAKS = {
  claim: ({ claim, messages, queue, client }) =>
    `claim ${claim} of ${messages} messages in queue ${queue}, by client ${client}`,
  unread: (l) => `message ${l.id} in queue ${l.queue}, never read`,
  dead_letter: (l) => `dead letter ${l.id} in queue ${l.queue} from ${l.from}`,
};
let started; // a promise of the URL

/** Starts a server. It ends with the pipe to its standard input, also if this process is killed. */
function start() {
  const words = ["run", "--", "sh", "-c", 'echo "$CLAIMD_URL"; exec cat >/dev/null'];
  const server = spawn(find() || "claimd", words, { detached: true });
  return new Promise((resolve, reject) => {
    let line = "", errors = "";
    const fail = (reason) => reject(new Error(`claimd did not start: ${reason}\n${errors}`));
    server.on("error", (error) => fail(`${error.message}. Is the package claimd installed?`));
    server.on("close", (status) => fail(`status ${status}`));
    server.stderr.on("data", (part) => { errors += part; });
    server.stdout.on("data", (part) => {
      line += part;
      if (!line.endsWith("\n")) return;
      process.env.CLAIMD_URL = line.trim(); // for processes that the tests start
      const { stdin, stdout, stderr } = server;
      for (const handle of [server, stdin, stdout, stderr]) handle.unref(); // let node end
      resolve(line.trim());
    });
  });
}

/** The server, and a project of one test's own. */
class Claimd {
  constructor(url, project) {
    Object.assign(this, { url: url.replace(/\/+$/, ""), project, since: 0, checkLeaks: true });
  }

  /** The Client-ID of a producer or a worker: a UUID of version 5, as in Python. */
  client(name) {
    const space = Buffer.from("6ba7b8119dad11d180b400c04fd430c8", "hex"); // of URLs
    const hash = createHash("sha1").update(space).update(name).digest();
    hash[6] = (hash[6] & 0x0f) | 0x50;
    hash[8] = (hash[8] & 0x3f) | 0x80;
    return hash.toString("hex", 0, 16).replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
  }

  /** A queue of this project, for a client of this name. */
  queue(name, client = "worker") {
    const { url, project } = this;
    return new Client(url, { project, clientId: this.client(client) }).queue(name);
  }

  /** The document of the response. An error fails the test with its description. */
  ask(method, path, document) {
    const headers = { "Client-ID": this.client("the test"), "Content-Type": "application/json",
      "X-Project-ID": Buffer.from(this.project).toString("latin1") };
    return new Promise((resolve, reject) => {
      const request = http.request(this.url + path, { method, headers, agent: false });
      const fail = ({ message, code }) =>
        reject(new Error(`${method} ${this.url}${path}: ${message || code}`));
      request.on("error", fail);
      request.on("response", async (response) => {
        try {
          const said = await text(response);
          if (response.statusCode < 300) resolve(said ? JSON.parse(said) : null);
          else reject(new Error(`${method} ${path}: ${response.statusCode} ${said}`));
        } catch (error) {
          fail(error);
        }
      });
      request.end(Buffer.from(document ? JSON.stringify(document) : ""));
    });
  }

  /**
   * Moves the clock. Returns the names of the events of this test. Leases and messages of this
   * test may expire by it. Those of other tests are leaks then.
   */
  async advance(seconds) {
    const move = { seconds, may_expire: true };
    const { events } = await this.ask("POST", "/claimd/clock/advance", move);
    return events.filter((e) => e.project === this.project).map((e) => e.event);
  }

  /** Fails unless a queue has `messages`, `claimed`, `free`, within `wait` seconds. */
  async expect(queue, counts) {
    const query = new URLSearchParams({ queue, ...counts });
    await this.ask("GET", `/claimd/expect?${query}`);
  }

  /** The history of this test, in order: all, or these events. */
  async history(...events) {
    const only = events.length ? { event: events.join(",") } : {};
    const query = new URLSearchParams({ limit: 1000, since: this.since, ...only });
    return (await this.ask("GET", `/claimd/history?${query}`)).history;
  }

  /** Replaces the rules. Each is an action, and a fault for its next request. */
  async faults(...rules) {
    await this.ask("PUT", "/claimd/faults", { faults: rules.map(([action, fault]) =>
      ({ match: { action, project: this.project }, fault, times: 1 })) });
  }

  /** Claims that have not ended, messages that were never read, unseen dead letters. */
  async leaks() {
    const { leaks } = await this.ask("GET", "/claimd/leaks");
    return leaks.map((leak) => LEAKS[leak.kind](leak));
  }
}

/** A project for this test, no fault rules, and a clock that only the test moves. */
async function claimd(t) {
  started ||= process.env.CLAIMD_URL ? Promise.resolve(process.env.CLAIMD_URL) : start();
  const name = `${basename(process.argv[1] || "")}: ${t.fullName || t.name}`;
  const project = [...name.replace(/[\0-\x1f\x7f]/g, " ")].slice(-64).join("").trim();
  const server = new Claimd(await started, project);
  await server.ask("POST", "/claimd/reset?leaks=forget"); // its own project: it may be the second try
  await server.ask("DELETE", "/claimd/faults");
  await server.ask("PUT", "/claimd/clock", { state: "frozen" });
  server.since = (await server.ask("GET", "/claimd/history?limit=1")).last;
  t.after(async () => {
    if (t.passed === false) {
      for (const entry of await server.history()) t.diagnostic(JSON.stringify(entry));
    }
    if (t.passed === false) return;
    if (!server.checkLeaks) await server.ask("POST", "/claimd/reset?leaks=forget");
    const leaks = await server.leaks();
    if (leaks.length) throw new Error(`leaked: ${leaks.join("\nleaked: ")}`);
  });
  return server;
}

module.exports = { claimd, Claimd };
