/*
 * Post jobs to claimd and process them. It needs node 18 or later and no other package.
 *
 *     const queue = new Client("http://127.0.0.1:8888", { project: "demo" }).queue("mail");
 *     await queue.post([{ to: "you@example.org" }], { ttl: 3600 });
 *     await queue.work(async (job) => console.log(job.body));
 */
"use strict";

const { randomUUID } = require("node:crypto");
const { setMaxListeners } = require("node:events");
const http = require("node:http");
const https = require("node:https");
const { text } = require("node:stream/consumers");
const { setTimeout: sleep } = require("node:timers/promises");

const REPEATED = [0, 429, 502, 503, 504]; // statuses that ask for another attempt. 0: no response
const LONGEST_PAUSE_S = 10; // between two attempts. The first pause is 0.1 s, and they double
const PATIENCE_S = 60, STOPPING_S = 5; // how long a request is repeated, and how long after stop()
const LONG_POLL_S = 20, SLACK_S = 10; // how long the server may wait, and may take besides
const ANY = { includes: () => true };
const now = () => performance.now() / 1000;
const last = (path) => path.slice(path.lastIndexOf("/") + 1);

/** claimd refused a request. If there was no response until the deadline, the status is 0. */
class Failed extends Error {
  status = 0;
}

/** The job is not yours any more. Another worker has it or will have it: undo your work. */
class Lost extends Error {}

/** A server, seen from one project. */
class Client {
  constructor(url, { project, token, clientId } = {}) {
    const given = url || process.env.CLAIMD_URL || "http://127.0.0.1:8888";
    if (!/^https?:\/\//.test(given)) {
      throw new TypeError(`the URL is ${given}. It must begin with http:// or https://`);
    }
    this.url = new URL(given);
    this._library = this.url.protocol === "https:" ? https : http;
    this._agent = new this._library.Agent({ keepAlive: true });
    const { CLAIMD_PROJECT, CLAIMD_TOKEN } = process.env;
    const named = { "Client-ID": clientId || randomUUID(), "Content-Type": "application/json",
      "X-Project-ID": project || CLAIMD_PROJECT, "X-Auth-Token": token || CLAIMD_TOKEN };
    this.headers = Object.fromEntries(Object.entries(named).filter(([, value]) => value)
      .map(([name, value]) => [name, Buffer.from(value).toString("latin1")])); // as UTF-8
    this._stopping = new AbortController();
    setMaxListeners(0, this._stopping.signal); // one for each request
    Object.assign(this, { _workers: 0, stopped: Infinity, stop: this.stop.bind(this) });
  }

  queue(name) {
    return new Queue(this, name);
  }

  /** Ends workers and their long polling. */
  stop() {
    this.stopped = Math.min(this.stopped, now());
    this._stopping.abort();
  }

  _send(method, path, body, headers, poll) {
    return new Promise((resolve) => {
      const sent = now(), { signal } = this._stopping;
      const { hostname, port, pathname } = this.url;
      const request = this._library.request({ method, headers, agent: this._agent, port,
        hostname: hostname.replace(/[[\]]/g, ""), path: pathname.replace(/\/+$/, "") + path });
      // Only the sending half, so that a claim that was just made still arrives.
      const halfClose = () => poll && signal.aborted && request.socket && request.socket.end();
      const timer = setTimeout(() => request.destroy(new Error("no response in time")),
        1000 * (SLACK_S + (poll ? LONG_POLL_S : 0)));
      const end = (status, found, said) => {
        clearTimeout(timer);
        signal.removeEventListener("abort", halfClose);
        resolve({ status, headers: found, said, sent });
      };
      signal.addEventListener("abort", halfClose);
      request.on("socket", halfClose);
      request.on("error", (error) => end(0, {}, String(error)));
      request.on("response", async (response) => {
        try {
          const said = await text(response), { statusCode, headers: found } = response;
          const isJson = statusCode < 400 || /json/.test(found["content-type"]);
          end(statusCode, found, isJson ? JSON.parse(said || "null") : said.slice(0, 200));
        } catch (error) {
          end(0, {}, String(error));
        }
      });
      request.end(body);
    });
  }

  /** Sends a request, and repeats it for so many seconds as long as that may help. */
  async request(method, path, document, { accept = [], seconds = PATIENCE_S, poll = false } = {}) {
    // Not a string: node would encode the headers beside it once more.
    const body = Buffer.from(document ? JSON.stringify(document) : ""), { signal } = this._stopping;
    const headers = { "Idempotency-Key": randomUUID(), ...this.headers };
    headers["Content-Length"] = body.length;
    let until = now() + seconds;
    for (let longest = 0.1; ; longest = Math.min(2 * longest, LONGEST_PAUSE_S)) {
      const wait = poll ? Math.min(LONG_POLL_S, Math.max(1, until - now())) : 0;
      headers.Prefer = `details, wait=${Math.floor(wait)}`;
      const response = await this._send(method, path, body, headers, poll);
      const { status, sent, said } = response, after = response.headers["retry-after"] || "";
      until = Math.min(until, this.stopped + (poll ? 0 : STOPPING_S));
      let pause = Math.random() * longest + (/^\d+$/.test(after) ? Number(after) : 0);
      if (poll && status === 204 && now() > sent + 1) pause = longest = 0.05; // it has waited
      const isRepeated = REPEATED.includes(status) || after || (poll && status === 204);
      if (!isRepeated || now() + pause >= until) {
        const isGood = (status >= 200 && status < 300) || accept.includes(status);
        if (isGood || (poll && signal.aborted)) return response;
        const error = new Failed(`${method} ${path}: ${status} ${JSON.stringify(said)}`);
        throw Object.assign(error, { status });
      }
      if (longest > 1 && status !== 204) {
        console.error("%s %s: %d %j. Trying again", method, path, status, said);
      }
      await sleep(1000 * pause, null, poll ? { signal } : {}).catch(() => {});
    }
  }
}

/** A claimed message. `attempt` counts its deliveries from 1. */
class Job {
  constructor(claim, { id, body, href, details }) {
    Object.assign(this, { claim, id, body, attempt: details.delivery_count, ended: false });
    this._path = href.slice(href.indexOf("/v2/")); // a proxy may add a prefix
  }

  /** True if the lease has ended. */
  get lost() {
    return now() >= this.claim.ends;
  }

  async _end(method, path, document, accept) {
    if (this.lost) throw new Lost(`job ${this.id}: the lease has ended`);
    const { status, said } = await this.claim.client.request(method, path, document, { accept });
    if (accept.includes(status)) {
      this.claim.ends = 0;
      throw new Lost(`job ${this.id}: ${status} ${JSON.stringify(said)}`);
    }
    this.ended = true;
    if (this.claim.jobs.every((job) => job.ended)) this.claim._leave();
    return said;
  }

  /** Ends a job that is done. */
  async delete() {
    await this._end("DELETE", this._path, null, [400, 401, 403]);
  }

  /** Deletes the message and posts others in one step, as docs/api.md 25.1 shows them. */
  async finish({ post = [] } = {}) {
    const document = { delete: [this.id], post };
    return (await this._end("POST", this.claim._finish, document, [404, 409])).posted || [];
  }

  /** Gives the message back. It is ready again after so many seconds, in its old position. */
  async retry(delay = 0, reason = "") {
    const said = Buffer.from(reason.slice(0, 250).replaceAll("\0", " ")).toString();
    const document = { release: [{ id: this.id, delay: Math.floor(delay), reason: said }] };
    await this._end("POST", this.claim._finish, document, [404, 409]);
  }
}

/** Jobs with a lease. A timer renews it after each third of its time, until the jobs end. */
class Claim {
  constructor(client, path, messages, lease, sent) {
    Object.assign(this, { client, path, lease, _finish: `/claimd${path.slice(3)}/finish` });
    this.ends = sent + lease; // by our clock, not later than on the server
    this.jobs = messages.map((message) => new Job(this, message));
  }

  async _renew() {
    const seconds = Math.max(0, this.ends - now()), { path, lease } = this;
    const { status, sent } = await this.client.request("PATCH", path, { ttl: lease },
      { accept: ANY, seconds });
    if (status === 204) this.ends = sent + lease;
    if (status === 404) this.ends = 0; // with another one, the lease ends when our clock says so
    return status === 204;
  }

  _keep() {
    const renew = async () => (await this._renew()) && !this._left && this._keep();
    this._timer = setTimeout(renew, (1000 * this.lease) / 3).unref();
  }

  _leave() {
    this._left = true;
    clearTimeout(this._timer);
  }

  /** Gives back the jobs that have not ended. Without a response, the lease ends anyway. */
  async release() {
    if (this._left) return;
    this._leave();
    await this.client.request("DELETE", this.path, null, { accept: ANY, seconds: STOPPING_S });
  }
}

class Queue {
  constructor(client, name) {
    Object.assign(this, { client, path: `/v2/queues/${encodeURIComponent(name)}` });
  }

  /** Posts messages and returns their ids. If the request is repeated, they are there once. */
  async post(bodies, { ttl, delay } = {}) {
    if (!Array.isArray(bodies)) throw new TypeError("post() takes an array of bodies");
    const messages = bodies.map((body) => ({ body, ttl, delay }));
    const { said } = await this.client.request("POST", `${this.path}/messages`, { messages });
    return said.resources.map(last);
  }

  /** Claims up to `limit` messages. null if none was ready for `wait` seconds. */
  async claim({ lease = 60, limit = 1, wait = 20 } = {}) {
    const path = `${this.path}/claims?limit=${limit}`;
    const { status, headers, said, sent } = await this.client.request("POST", path, { ttl: lease },
      { accept: [409], seconds: wait || PATIENCE_S, poll: wait > 0 });
    if (status !== 201) return null;
    const began = headers["idempotent-replay"] ? -Infinity : sent; // -Infinity: earlier
    const claim = new Claim(this.client, `${this.path}/claims/${last(headers.location)}`,
      said.messages, lease, began);
    claim.number = BigInt(headers["claim-number"]); // the fencing token
    if (now() > began + lease / 3) await claim._renew();
    claim._keep();
    return claim;
  }

  /**
   * Calls handle(job) for each message and deletes it. If handle throws, the message is ready again
   * after delay(attempt) seconds. If the job is lost, calls undo(job). Returns after client.stop(),
   * which SIGTERM, SIGINT and an AbortSignal call.
   */
  async work(handle, { undo = () => {}, lease = 60, limit = 1, signal,
    delay = (attempt) => Math.min(2 ** attempt, 900) } = {}) {
    const { client } = this, { stop } = client;
    if (client._workers++ === 0) ["SIGTERM", "SIGINT"].forEach((name) => process.on(name, stop));
    if (signal && signal.aborted) stop();
    if (signal) signal.addEventListener("abort", stop);
    try {
      while (client.stopped === Infinity) {
        const claim = await this.claim({ lease, limit, wait: Infinity });
        for (const job of claim ? claim.jobs : []) {
          if (client.stopped === Infinity && !job.lost) await processJob(job, handle, undo, delay);
        }
        if (claim) await claim.release();
      }
    } finally {
      if (signal) signal.removeEventListener("abort", stop);
      if (--client._workers === 0) ["SIGTERM", "SIGINT"].forEach((name) => process.off(name, stop));
    }
  }
}

async function processJob(job, handle, undo, delay) {
  let failed = await attempt(job, handle);
  if (!failed && !job.ended) failed = await attempt(job, () => job.delete());
  else if (failed && !(failed.error instanceof Lost) && !job.ended) {
    await attempt(job, () => job.retry(delay(job.attempt), String(failed.error)));
  }
  if (failed && failed.error instanceof Lost) await attempt(job, undo);
}

/** Returns { error } if it threw. A job may throw anything, and nothing ends the worker. */
async function attempt(job, act) {
  try {
    await act(job);
  } catch (error) {
    console.error("job %s:", job.id, error);
    return { error };
  }
}

module.exports = { Client, Queue, Claim, Job, Failed, Lost };
