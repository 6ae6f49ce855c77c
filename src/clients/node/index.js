/*
 * Post jobs to claimd and process them. It needs node 18 or later and no other package.
 *
 *     const queue = new Client("http://127.0.0.1:8888", { project: "demo" }).queue("mail");
 *     await queue.post([{ to: "you@example.org" }], { ttl: 3600 });
 *     await queue.work(async (job) => console.log(job.body));
 */
"use strict";

const { inspect } = require("node:util");

const { Failed, Lost, PATIENCE_S, STOPPING_S, Server, now } = require("./server.js");
const { signalHandler, work } = require("./worker.js");

const ANY = { includes: () => true }; // all statuses
const last = (path) => path.slice(path.lastIndexOf("/") + 1);

function checkWhole(name, value) {
  if (!Number.isInteger(value)) {
    throw new TypeError(`${name} is ${inspect(value)}. It must be a whole number`);
  }
}

/** What read() returns. Parts of a response may be missing, or something else. */
function understood({ status, said }, read) {
  try {
    return read();
  } catch (error) {
    const text = (JSON.stringify(said) || "").slice(0, 200);
    const failed = new Failed(`this is no response of claimd: ${status} ${text}`, { cause: error });
    throw Object.assign(failed, { status });
  }
}

/** A server, seen from one project. */
class Client extends Server {
  _workers = 0;
  _handleSignal = signalHandler(this);

  queue(name) {
    return new Queue(this, name);
  }
}

/** A claimed message. `attempt` counts its deliveries from 1. */
class Job {
  constructor(claim, { id, body, href, details }) {
    this.claim = claim;
    this.id = id;
    this.body = body;
    this.attempt = details.delivery_count;
    checkWhole("delivery_count", this.attempt);
    this.ended = false;
    this._kept = false; // claimed until its lease ends
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
    const said = await this._end("POST", this.claim._finish, document, [404, 409]);
    return (said && said.posted) || [];
  }

  /** Gives the message back. It is ready again after so many seconds, in its old position. */
  async retry(delay = 0, reason = "") {
    if (!Number.isFinite(delay)) {
      throw new TypeError(`delay is ${inspect(delay)}. It must be a finite number`);
    }
    if (typeof reason !== "string") {
      throw new TypeError(`reason is ${inspect(reason)}. It must be a string`);
    }
    const said = Buffer.from(reason.slice(0, 250).replaceAll("\0", " ")).toString();
    const document = { release: [{ id: this.id, delay: Math.floor(delay), reason: said }] };
    await this._end("POST", this.claim._finish, document, [404, 409]);
  }
}

/** Jobs with a lease. A timer renews it after each third of its time, until the jobs end. */
class Claim {
  constructor(client, path, messages, lease, sent) {
    this.client = client;
    this.path = path;
    this._finish = `/claimd${path.slice(3)}/finish`;
    this.lease = lease;
    this.ends = sent + lease; // by our clock, not later than on the server
    this.jobs = messages.map((message) => new Job(this, message));
    this._left = false;
  }

  async _renew() {
    const seconds = Math.max(0, this.ends - now());
    const { status, sent } = await this.client.request("PATCH", this.path, { ttl: this.lease },
      { accept: ANY, seconds });
    if (status === 204) this.ends = sent + this.lease;
    if (status === 404) this.ends = 0; // with another one, the lease ends when our clock says so
    return status === 204;
  }

  _keep() {
    const renew = async () => {
      const isRenewed = await this._renew();
      if ((isRenewed || now() < this.ends) && !this._left) this._keep();
    };
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
    const terms = { accept: ANY, seconds: STOPPING_S };
    if (!this.jobs.some((job) => job._kept)) {
      await this.client.request("DELETE", this.path, null, terms);
      return;
    }
    const others = this.jobs.filter((job) => !job.ended && !job._kept).map(({ id }) => ({ id }));
    if (others.length) await this.client.request("POST", this._finish, { release: others }, terms);
  }
}

class Queue {
  constructor(client, name) {
    if (typeof name !== "string" || name === "") {
      throw new TypeError(`the queue name is ${inspect(name)}. It must be a string, and not empty`);
    }
    this.client = client;
    this.path = `/v2/queues/${encodeURIComponent(name)}`;
  }

  /** Posts messages and returns their ids. If the request is repeated, they are there once. */
  async post(bodies, { ttl, delay } = {}) {
    if (!Array.isArray(bodies)) throw new TypeError("post() takes an array of bodies");
    const messages = bodies.map((body) => ({ body, ttl, delay }));
    const response = await this.client.request("POST", `${this.path}/messages`, { messages });
    return understood(response, () => response.said.resources.map(last));
  }

  /** Claims up to `limit` messages. null if none was ready for about `wait` seconds. */
  async claim({ lease = 60, limit = 1, wait = 20 } = {}) {
    checkWhole("lease", lease);
    checkWhole("limit", limit);
    if (typeof wait !== "number" || Number.isNaN(wait)) {
      throw new TypeError(`wait is ${inspect(wait)}. It must be a number`);
    }
    const path = `${this.path}/claims?limit=${limit}`;
    const { client } = this;
    const response = await client.request("POST", path, { ttl: lease },
      { accept: [409], seconds: wait || PATIENCE_S, poll: wait > 0 });
    const { status, headers, said, sent } = response;
    const wasStopped = client.stopped < Infinity;
    if (status === 204 || status === 409 || (status !== 201 && wasStopped)) return null;
    const began = headers["idempotent-replay"] ? -Infinity : sent; // -Infinity: earlier
    const claim = understood(response, () => new Claim(client,
      `${this.path}/claims/${last(headers.location)}`, said.messages, lease, began));
    claim.number = understood(response, () => BigInt(headers["claim-number"])); // the fencing token
    if (now() > began + lease / 3) await claim._renew();
    claim._keep();
    return claim;
  }

  /**
   * Calls handle(job) for each message and deletes it. If handle throws, the message is ready again
   * after delay(attempt) seconds. If the job is lost, calls undo(job). Returns after client.stop(),
   * which SIGTERM, SIGINT and an AbortSignal call. A second SIGINT, at least one second later, has
   * its usual effect.
   */
  async work(handle, options = {}) {
    await work(this, handle, options);
  }
}

module.exports = { Client, Queue, Claim, Job, Failed, Lost };
