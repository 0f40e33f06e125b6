// @ts-check
/**
 * JavaScript client of an aggregator service: one file without dependencies, for Node.js >= 18, Deno, Bun and
 * browsers. Types and descriptions of the answers: aggregator-client.d.mts, from the OpenAPI document.
 *
 *     import { Client } from "./aggregator-client.mjs";
 *     const client = new Client("http://127.0.0.1:8080");
 *     await client.reservation(article, async (decision) => {
 *       if (decision.keep) await database.insert(article); // when it throws, the reservation is undone
 *     });
 *     await client.close();
 *
 * It behaves like the Python client. At most `concurrency` requests are in flight; further calls wait. The
 * deadline starts when a request is sent; within it, requests are repeated after broken connections and the
 * statuses 408, 429, 502, 503 and 504, since all of them are idempotent. A busy service that sends
 * Retry-After extends the deadline, to 10 s at most. Without a verdict the client fails open (verdict
 * "unknown") or closed (rejects with Unavailable). Articles without a verdict are counted, logged at most once
 * a minute, and logged as an error by `close` if they exceed 1 %. Dates of publication are read by the rules of
 * aggregator_client/dates.py; an article whose date cannot be read for certain is sent without it.
 */

/** @typedef {import("./aggregator-client.mjs").Decision} Decision */
/** @typedef {import("./aggregator-client.mjs").Article} Article */
/** @typedef {import("./aggregator-client.mjs").Problem} Problem */
/** @typedef {import("./aggregator-client.mjs").RelatedIn} RelatedIn */
/** @typedef {import("./aggregator-client.mjs").RelatedQuery} RelatedQuery */
/** @typedef {{status: number, text: string, retryAfterMs: number}} Answer */

const BUSY_BUDGET_MS = 10_000;
const ATTEMPT_MS = 10_000; // a single request that hangs is repeated within a longer deadline
const INITIAL_BACKOFF_MS = 20;
const MAX_BACKOFF_MS = 2_000;
const BATCH_LINES = 256;
const RELATED_IDS = 20;
const WARNING_INTERVAL_MS = 60_000;
const ERROR_SHARE = 0.01;
const RETRYABLE_STATUSES = new Set([408, 429, 502, 503, 504]);
const CLIENT_OPTIONS = {
  key: "string", deadlineMs: "number", batchDeadlineMs: "number", onFailure: "string", concurrency: "number",
  backfill: "boolean", timezone: "string", log: "object",
};
const UNREACHED_KINDS = new Set(["connection_refused", "name_resolution", "tls"]); // nothing was sent
const TAKEN_DOWN = "taken_down";
const FORGOTTEN = "The store of the service had forgotten what it held; see its /readyz";
const CLOSED = "The client is closed; create a new one.";
const NOT_AN_AGGREGATOR = "The server that answered is not an aggregator service; check the URL.";

/** No usable answer within the deadline; sending the article again is safe. `kind`: why, in one word. */
export class Unavailable extends Error {
  /** @param {string} message @param {string} [kind] */
  constructor(message, kind = "unavailable") {
    super(message);
    this.name = "Unavailable";
    this.kind = kind;
  }
}

/** The service rejected a request; `problem` has its reason, null if the client itself rejected it. */
export class Rejected extends Error {
  /** @param {string} message @param {number} status @param {Problem | null} problem */
  constructor(message, status, problem) {
    super(message);
    this.name = "Rejected";
    this.status = status;
    this.problem = problem;
  }
}

/** Counts of articles by outcome, and the log lines about those without a verdict. */
class Outcomes {
  /** @param {{warn(line: string): void, error(line: string): void}} log @param {boolean} logsUnchecked */
  constructor(log, logsUnchecked) {
    this.log = log;
    this.logsUnchecked = logsUnchecked; // failing closed, the caller gets an error for each
    /** @type {Record<string, number>} */
    this.counts = {};
    this.nextWarningMs = -Infinity;
    /** @type {Record<string, string>} */
    this.lastProblems = {};
    this.unreadExample = "";
    this.closed = false;
  }

  /** @param {Decision} decision */
  add(decision) {
    const takenDown = decision.kind === TAKEN_DOWN;
    const forgotten = decision.answer?.unchecked ? FORGOTTEN : "";
    if (!forgotten && (decision.answer || takenDown)) {
      const problems = (decision.answer?.problems ?? []).map((name) => `problem/${name}`);
      const kept = decision.verdict === "duplicate" && decision.keep ? ["duplicate/kept"] : [];
      return this.increment("checked", decision.kind || decision.verdict, ...kept, ...problems);
    }
    const name = decision.verdict === "refused" ? "rejected" : "unchecked";
    if (name === "rejected") this.increment(name);
    else this.increment(name, `unchecked/${forgotten ? "forgotten" : decision.kind}`);
    this.lastProblems[name] = (forgotten || decision.problem).replace(/\.$/, "");
    if (this.summary() && performance.now() >= this.nextWarningMs) {
      this.nextWarningMs = performance.now() + WARNING_INTERVAL_MS;
      this.log.warn(this.summary());
    }
  }

  /** @param {any} article */
  addUnreadDate(article) {
    const name = ["url", "source", "id", "title"].find((name) => article[name]);
    this.unreadExample = `'${article.published_at}'${name ? ` of ${article[name]}` : ""}`;
    this.increment("unread_date");
  }

  close() {
    if (this.closed) return;
    this.closed = true;
    if (this.counts.unread_date) {
      this.log.warn(
        `${this.counts.unread_date} articles had a date that could not be read, e.g. ${this.unreadExample}; ` +
          "they were sent without one " +
          "(use RFC 3339 such as 2026-11-20T08:00:00Z; a local time needs a declared time zone)",
      );
    }
    if (!this.summary()) return;
    const undecided = (this.counts.unchecked ?? 0) + (this.counts.rejected ?? 0);
    const line = `at the end: ${this.summary()}`;
    if (undecided > ERROR_SHARE * this.total()) this.log.error(line);
    else this.log.warn(line);
  }

  summary() {
    const reasons = Object.entries(this.counts)
      .filter(([name]) => name.startsWith("unchecked/"))
      .sort((a, b) => b[1] - a[1])
      .map(([name, count]) => `${name.slice("unchecked/".length).replaceAll("_", " ")} ${count}`);
    const effects = [
      ["unchecked", this.logsUnchecked ? `passed unchecked: ${reasons.join(", ")} (last error: ` : ""],
      ["rejected", "rejected by the service (last problem: "],
    ];
    return effects
      .filter(([name, effect]) => effect && this.counts[name])
      .map(([name, effect]) => `${this.counts[name]} of ${this.total()} articles ${effect}${this.lastProblems[name]})`)
      .join("; ");
  }

  total() {
    return (this.counts.checked ?? 0) + (this.counts.unchecked ?? 0) + (this.counts.rejected ?? 0);
  }

  /** @param {string[]} names */
  increment(...names) {
    for (const name of names) this.counts[name] = (this.counts[name] ?? 0) + 1;
  }
}

/** Connections to one service; see the head of this file. */
export class Client {
  /** @param {string} [url] @param {import("./aggregator-client.mjs").ClientOptions} [options] */
  constructor(url = "http://127.0.0.1:8080", options = {}) {
    checkOptions({ url }, { url: "string" });
    checkOptions(options, CLIENT_OPTIONS);
    const onFailure = options.onFailure ?? "open";
    if (!isHttpUrl(url)) throw new TypeError(`'${url}' is not an http:// or https:// URL.`);
    if (onFailure !== "open" && onFailure !== "closed") {
      throw new TypeError(`onFailure: expected 'open' or 'closed', found '${onFailure}'.`);
    }
    const key = (options.key ?? "").trim(); // a key that was read from a file ends with a newline
    if (!/^[ -~]*$/.test(key)) throw new TypeError("key: it has a character that no key has.");
    this._url = url.replace(/\/+$/, "");
    /** @type {Record<string, string>} */
    this._headers = key ? { Authorization: `Bearer ${key}` } : {};
    this._deadlineMs = options.deadlineMs ?? 2_000;
    this._batchDeadlineMs = options.batchDeadlineMs ?? 60_000;
    for (const [name, limitMs] of [["deadlineMs", this._deadlineMs], ["batchDeadlineMs", this._batchDeadlineMs]]) {
      if (!(limitMs > 0)) throw new TypeError(`${name}: expected a number above 0, found ${limitMs}.`);
    }
    this._failsOpen = onFailure === "open";
    this._query = options.backfill ? "?backfill=true" : "";
    this._zone = options.timezone ? zoneOf(options.timezone) : null;
    this._log = options.log ?? console;
    if (typeof this._log.warn !== "function" || typeof this._log.error !== "function") {
      throw new TypeError("log: expected an object with the functions warn and error.");
    }
    // Failing closed, the caller gets an exception for each article, so there is nothing to log.
    this._outcomes = new Outcomes(this._log, this._failsOpen);
    this._freeSlots = options.concurrency ?? 8;
    if (!Number.isInteger(this._freeSlots) || this._freeSlots < 1) {
      throw new TypeError(`concurrency: expected an integer of 1 or more, found ${this._freeSlots}.`);
    }
    /** @type {Array<() => void>} */
    this._waiting = [];
    this._isClosed = false;
  }

  get counts() {
    return { ...this._outcomes.counts };
  }

  async close() {
    this._isClosed = true;
    this._outcomes.close();
  }

  // -- before an insert

  /** @param {Article} article */
  submit(article) {
    return this._decide(article, `/v1/articles${this._query}`);
  }

  /** @param {Article} article */
  check(article) {
    return this._decide(article, "/v1/articles?dry_run=true");
  }

  /** @param {Iterable<Article>} articles @param {{dryRun?: boolean}} [options] */
  async submitMany(articles, options = {}) {
    checkOptions(options, { dryRun: "boolean" });
    if (typeof articles === "string" || typeof articles?.[Symbol.iterator] !== "function") {
      throw new TypeError(`articles: expected an array, found one ${typeof articles}.`);
    }
    const all = [...articles];
    /** @type {Decision[]} */
    const decisions = [];
    /** @type {any} */
    let failure = null;
    for (let start = 0; start < all.length; start += BATCH_LINES) {
      const rows = all.slice(start, start + BATCH_LINES).map((article) => this._lineOf(article));
      const lines = /** @type {string[]} */ (rows.filter((row) => typeof row === "string"));
      const results = await this._submitLines(lines, options.dryRun ? "?dry_run=true" : this._query);
      for (const row of rows) {
        try {
          decisions.push(this._settle(typeof row === "string" ? /** @type {Decision | Error} */ (results.shift()) : row));
        } catch (error) {
          const { message, kind = "access_denied" } = /** @type {Unavailable} */ (error);
          decisions.push(undecided("unknown", message, kind));
          failure ??= error;
        }
      }
      if (!failure) continue;
      const { message, kind = "access_denied" } = failure;
      for (let unsent = decisions.length; unsent < all.length; unsent += 1) {
        this._outcomes.add(undecided("unknown", message, kind));
      }
      throw Object.assign(failure, { decisions });
    }
    return decisions;
  }

  /** @param {Decision} decision */
  async undo(decision) {
    return decision.stored && decision.id !== null ? this._delete(decision.id, "?undo=true") : false;
  }

  /**
   * @template T
   * @param {Article} article @param {(decision: Decision) => T | Promise<T>} body
   */
  async reservation(article, body) {
    const decision = await this.submit(article);
    try {
      return await body(decision);
    } catch (error) {
      await this.release(decision);
      throw error;
    }
  }

  /**
   * `undo` that does not reject: a failure is logged and counted as "undo_failed".
   *
   * @param {Decision} decision
   */
  async release(decision) {
    try {
      return await this.undo(decision);
    } catch (error) {
      this._outcomes.increment("undo_failed");
      const remedy = "Later copies of it are duplicates: undo the decision again, or insert the article.";
      const problem = /** @type {Error} */ (error).message;
      this._log.error(`the reservation of ${decision.id} could not be removed: ${problem} ${remedy}`);
      return false;
    }
  }

  // -- reading

  /** @param {string} id */
  get(id) {
    return this._json("GET", `/v1/articles/${encodeURIComponent(id)}`);
  }

  /** @param {string} id @param {{undo?: boolean, takeDown?: boolean}} [options] */
  async delete(id, options = {}) {
    checkOptions(options, { undo: "boolean", takeDown: "boolean" });
    const { undo, takeDown } = options;
    const given = { ...(undo ? { undo } : {}), ...(takeDown === undefined ? {} : { take_down: takeDown }) };
    return this._delete(id, queryOf(given));
  }

  /** @param {string} id @param {string} query */
  async _delete(id, query) {
    try {
      await this._request("DELETE", `/v1/articles/${encodeURIComponent(id)}${query}`);
      return true;
    } catch (error) {
      if (error instanceof Rejected && (error.status === 404 || error.status === 410)) return false;
      throw error;
    }
  }

  /** @param {string} id */
  copies(id) {
    return this._json("GET", `/v1/articles/${encodeURIComponent(id)}/copies`);
  }

  /** @param {string} id @param {RelatedQuery} parameters */
  async related(id = "", parameters = {}) {
    const path = id ? `/v1/articles/${encodeURIComponent(id)}/related` : "/v1/related";
    return (await this._json("GET", path + queryOf(parameters))).related;
  }

  /** @param {Article} article @param {RelatedQuery} parameters */
  async relatedTo(article, parameters = {}) {
    const given = isObject(article) ? dated(article, null).article : article;
    return (await this._json("POST", "/v1/related" + queryOf(parameters), given)).related;
  }

  /** @param {RelatedIn["ids"]} ids @param {RelatedQuery} parameters */
  relatedToIds(ids, parameters = {}) {
    return this._json("POST", "/v1/related", { ids, ...parameters });
  }

  /** @param {string[]} ids @param {RelatedQuery} parameters */
  async relatedToEach(ids, parameters = {}) {
    if (!Array.isArray(ids)) throw new TypeError(`ids: expected an array, found one ${typeof ids}.`);
    const distinct = [...new Set(ids)];
    /** @type {import("./aggregator-client.mjs").RelatedBatchOut} */
    const found = { lists: [], not_found: [] };
    for (let start = 0; start === 0 || start < distinct.length; start += RELATED_IDS) {
      const body = { ids: distinct.slice(start, start + RELATED_IDS), ...parameters };
      const part = await this._json("POST", "/v1/related/batch", body);
      found.lists.push(...part.lists);
      found.not_found.push(...part.not_found);
    }
    return found;
  }

  /** @param {string} query */
  search(query, limit = 20) {
    return this._json("GET", `/v1/search?${new URLSearchParams({ q: query, limit: String(limit) })}`);
  }

  /** @param {string} a @param {string} b @param {string} [policy] */
  explain(a, b, policy) {
    return this._json("POST", "/v1/explain", policy ? { a, b, policy } : { a, b });
  }

  /** @param {string} [query] */
  events(query = "") {
    return this._json("GET", "/v1/events" + (query && `?${query}`));
  }

  /** @param {string} id */
  event(id) {
    return this._json("GET", `/v1/events/${encodeURIComponent(id)}`);
  }

  async ready() {
    let problem = NOT_AN_AGGREGATOR;
    try {
      try {
        await this._request("GET", "/readyz");
      } catch (error) { // a proxy may hide it with 404 or 403
        const isHidden = error instanceof Rejected || (error instanceof Unavailable && error.kind === "not_an_aggregator");
        if (!isHidden) throw error;
      }
      // An empty batch: needs the key and permission of a crawler, and has no effect.
      const answer = await this._request("POST", "/v1/articles/batch?dry_run=true", "", true);
      if (answer.text === "") return true;
    } catch (error) {
      if (!(error instanceof Unavailable || error instanceof Rejected)) throw error;
      problem = error.message;
    }
    this._log.error(`The service is not ready: ${problem}`);
    return false;
  }

  // -- internals

  /** @param {Article} article @param {string} path @returns {Promise<Decision>} */
  async _decide(article, path) {
    /** @type {Decision | Error} */
    let result;
    const line = this._lineOf(article);
    if (typeof line !== "string") return this._settle(line);
    try {
      const answer = await this._request("POST", path, line);
      result = decisionOf(parse(answer.text));
    } catch (error) {
      const isKey = error instanceof Rejected && [401, 403].includes(error.status) && !error.problem?.field;
      if (error instanceof Rejected && !isKey) {
        return this._settle(rejection(error.message, error.problem));
      }
      result = /** @type {Error} */ (error);
    }
    return this._settle(result);
  }

  /**
   * The article as JSON; one that has none, such as undefined, is refused alone, not with its batch.
   *
   * @param {unknown} article @returns {string | Decision}
   */
  _lineOf(article) {
    try {
      const found = isObject(article) ? dated(article, this._zone) : null;
      const line = found ? JSON.stringify(found.article) : undefined;
      if (!found || line === undefined) {
        return rejection(`An article is an object; found ${article === null ? "null" : typeof article}.`, null);
      }
      if (found.isUnread) this._outcomes.addUnreadDate(article);
      return line;
    } catch (error) {
      const [reason] = /** @type {Error} */ (error).message.split("\n");
      return rejection(`The article cannot be written as JSON: ${reason}.`, null);
    }
  }

  /** @param {Decision | Error} result @returns {Decision} */
  _settle(result) {
    if (!(result instanceof Error)) {
      this._outcomes.add(result);
      return result;
    }
    if (!(result instanceof Unavailable || result instanceof Rejected)) throw result;
    const kind = result instanceof Unavailable ? result.kind : "access_denied";
    const decision = undecided("unknown", result.message, kind);
    this._outcomes.add(decision);
    if (!this._failsOpen) throw result;
    return decision;
  }

  /**
   * One result per line; lines without a verdict are sent again until the deadline of the batch.
   *
   * @param {string[]} lines @param {string} query @returns {Promise<Array<Decision | Error>>}
   */
  async _submitLines(lines, query) {
    /** @type {Array<Decision | Error>} */
    const results = lines.map(() => new Unavailable("The article was not sent."));
    const end = performance.now() + this._batchDeadlineMs;
    for (let pauseMs = INITIAL_BACKOFF_MS; ; pauseMs = Math.min(2 * pauseMs, MAX_BACKOFF_MS)) {
      const open = lines.map((_, index) => index).filter((index) => results[index] instanceof Unavailable);
      const batch = open.map((index) => lines[index]);
      const started = end - this._batchDeadlineMs;
      const answers = await this._postLines(batch, query, end - performance.now(), performance.now() - started);
      open.forEach((index, position) => (results[index] = answers[position]));
      const failed = results.find((result) => result instanceof Unavailable);
      const kind = failed && /** @type {Unavailable} */ (failed).kind;
      if (!kind || kind === "not_an_aggregator" || UNREACHED_KINDS.has(kind)) return results;
      if (performance.now() + pauseMs >= end) return results;
      await sleep(pauseMs);
    }
  }

  /**
   * One attempt; a batch that is too large is halved.
   *
   * @param {string[]} lines @param {string} query @param {number} leftMs @param {number} repeatsMs
   * @returns {Promise<Array<Decision | Error>>}
   */
  async _postLines(lines, query, leftMs, repeatsMs) {
    if (lines.length === 0) return [];
    try {
      const body = lines.join("\n") + "\n";
      const answer = await this._request("POST", `/v1/articles/batch${query}`, body, true, leftMs, repeatsMs);
      const rows = answer.text.split("\n").filter((row) => row !== "");
      const last = rows[rows.length - 1] ?? "";
      const tooMany = last.includes("max_batch_lines") && last.includes('"too_large"');
      if (tooMany) throw new Rejected("The batch has more lines than the service accepts.", 413, null);
      if (rows.length === lines.length) return rows.map(lineDecisionOf);
      const detail = `The service answered ${rows.length} of ${lines.length} lines.`;
      throw new Unavailable(detail, "connection_lost");
    } catch (caught) {
      const error = /** @type {Error} */ (caught);
      if (error instanceof Unavailable) return lines.map(() => error);
      if (!(error instanceof Rejected)) throw error;
      if (error.status === 401 || error.status === 403) return lines.map(() => error);
      if (error.status !== 413 || lines.length === 1) {
        return lines.map(() => undecided("refused", error.message, "refused"));
      }
      const half = lines.length >> 1;
      const first = await this._postLines(lines.slice(0, half), query, leftMs, repeatsMs);
      return [...first, ...(await this._postLines(lines.slice(half), query, leftMs, repeatsMs))];
    }
  }

  /** @param {string} method @param {string} path @param {unknown} [body] @returns {Promise<any>} */
  async _json(method, path, body) {
    const text = body === undefined ? undefined : JSON.stringify(body);
    return parse((await this._request(method, path, text)).text);
  }

  /**
   * The first answer below 300. Rejects with Unavailable, or with Rejected for other answers.
   *
   * @param {string} method @param {string} path @param {string} [body] @param {boolean} [ndjson]
   * @param {number} [deadlineMs] @param {number} [repeatsMs] how long ago an earlier call sent the same
   * @returns {Promise<Answer>}
   */
  async _request(method, path, body, ndjson = false, deadlineMs = this._deadlineMs, repeatsMs = 0) {
    if (this._freeSlots > 0) this._freeSlots -= 1;
    else await new Promise((resolve) => this._waiting.push(() => resolve(undefined)));
    try {
      return await this._requestUntil(method, path, body, ndjson, deadlineMs, repeatsMs);
    } finally {
      const next = this._waiting.shift();
      if (next) next();
      else this._freeSlots += 1;
    }
  }

  /**
   * @param {string} method @param {string} path @param {string | undefined} body @param {boolean} ndjson
   * @param {number} deadlineMs @param {number} repeatsMs @returns {Promise<Answer>}
   */
  async _requestUntil(method, path, body, ndjson, deadlineMs, repeatsMs) {
    const started = performance.now();
    let [end, reached] = [started + deadlineMs, started];
    /** @type {Unavailable | undefined} */
    let failure;
    for (let pauseMs = INITIAL_BACKOFF_MS; ; pauseMs = Math.min(2 * pauseMs, MAX_BACKOFF_MS)) {
      if (this._isClosed) throw new Error(CLOSED);
      const leftMs = Math.max(1, end - performance.now());
      let retryAfterMs = 0;
      try {
        const attemptMs = ndjson ? leftMs : Math.min(leftMs, ATTEMPT_MS);
        const sinceMs = Math.trunc(repeatsMs + performance.now() - started);
        const answer = await this._send(method, path, body, ndjson, attemptMs, sinceMs);
        if (!RETRYABLE_STATUSES.has(answer.status)) return accepted(answer);
        failure = failureOf(answer, this._url);
        retryAfterMs = answer.retryAfterMs;
      } catch (error) {
        if (error instanceof Rejected || error instanceof Unavailable) throw error;
        const lost = connectionFailure(/** @type {Error} */ (error), this._url, deadlineMs);
        // The last attempt may be cut short: an earlier reason says more than its time-out.
        if (!failure || lost.kind !== "timeout") failure = lost;
      }
      const waitMs = Math.max(pauseMs, retryAfterMs);
      if (retryAfterMs && (failure.kind === "overloaded" || failure.kind === "rate_limited")) {
        end = Math.max(end, Math.min(started + BUSY_BUDGET_MS, performance.now() + waitMs + deadlineMs));
      }
      if (UNREACHED_KINDS.has(failure.kind)) end = Math.min(end, reached + this._deadlineMs);
      else reached = performance.now();
      if (performance.now() + waitMs >= end) throw failure;
      await sleep(waitMs);
    }
  }

  /**
   * @param {string} method @param {string} path @param {string | undefined} body @param {boolean} ndjson
   * @param {number} attemptMs @param {number} repeatsMs @returns {Promise<Answer>}
   */
  async _send(method, path, body, ndjson, attemptMs, repeatsMs) {
    /** @type {Record<string, string>} */
    const headers = { ...this._headers };
    if (body !== undefined) headers["Content-Type"] = ndjson ? "application/x-ndjson" : "application/json";
    // What the request that this one repeats stored counts as stored by this one: it can be undone.
    if (body !== undefined && repeatsMs > 0) headers["X-Repeats-Ms"] = String(repeatsMs);
    const signal = /** @type {any} */ (AbortSignal).timeout(Math.ceil(attemptMs)); // newer than some typings
    const response = await fetch(this._url + path, { method, headers, body, signal });
    const after = response.headers.get("Retry-After") ?? "";
    const retryAfterMs = /^\d+$/.test(after) ? 1000 * Number(after) : 0;
    return { status: response.status, text: await response.text(), retryAfterMs };
  }
}

/** @param {string} url */
function isHttpUrl(url) {
  try {
    return /^https?:\/\/[^/?#]/i.test(url) && new URL(url).port !== "0"; // throws for a port above 65535
  } catch {
    return false;
  }
}

/**
 * Throws TypeError for an option that does not exist, which would silently have no effect, or of another type.
 *
 * @param {Record<string, any>} options null and undefined: not given @param {Record<string, string>} types
 */
function checkOptions(options, types) {
  const names = Object.keys(types);
  if (options === null || typeof options !== "object") {
    throw new TypeError(`options: expected an object with ${names.join(", ")}, found ${options === null ? "null" : typeof options}.`);
  }
  const wrong = names.find((name) => ![types[name], "undefined"].includes(typeof (options[name] ?? undefined)));
  // The value is not shown, as it may be the key.
  if (wrong) throw new TypeError(`${wrong}: expected ${types[wrong]}, found ${typeof options[wrong]}.`);
  const unknown = Object.keys(options).find((name) => !names.includes(name));
  if (unknown === undefined) return;
  const best = names.map((name) => ({ name, likeness: likeness(unknown, name) })).sort((a, b) => b.likeness - a.likeness)[0];
  const hint = best.likeness >= 0.5 ? `did you mean ${best.name}?` : `allowed: ${names.join(", ")}.`;
  throw new TypeError(`${unknown}: there is no such option; ${hint}`);
}

/**
 * Dice coefficient of the pairs of letters of two names, 0 to 1.
 *
 * @param {string[]} names
 */
function likeness(...names) {
  const [a, b] = names.map((name) => name.toLowerCase().replaceAll("_", ""));
  const pairs = (/** @type {string} */ name) => new Set([...name].map((_, at) => name.slice(at, at + 2)));
  const common = [...pairs(a)].filter((pair) => pairs(b).has(pair)).length;
  return (2 * common) / (pairs(a).size + pairs(b).size);
}

/** @param {Record<string, any>} parameters */
function queryOf(parameters) {
  const pairs = Object.entries(parameters).flatMap(([name, value]) => [value].flat().map((one) => [name, one]));
  return pairs.length ? "?" + new URLSearchParams(pairs) : "";
}

/** @param {number} ms */
function sleep(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** @param {string} text @returns {any} */
function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    throw new Unavailable(NOT_AN_AGGREGATOR, "not_an_aggregator");
  }
}

/** @param {string} text @returns {Problem | null} */
function problemOf(text) {
  try {
    const problem = JSON.parse(text);
    return typeof problem?.code === "string" && typeof problem.detail === "string" ? problem : null;
  } catch {
    return null;
  }
}

/** @param {Answer} answer @returns {Answer} */
function accepted(answer) {
  if (answer.status < 300) return answer;
  const problem = problemOf(answer.text);
  const detail = problem ? sentencesOf(problem) : `The service answered with status ${answer.status}.`;
  if (answer.status >= 500 && answer.status !== 501) throw new Unavailable(detail, "server_error");
  if (![401, 403, 413].includes(answer.status)) {
    const foreign = !problem || problem.code === "no_route" || problem.code === "method_not_allowed";
    const wrongUrl = problem && `${detail} Check the URL, which ends before /v1.`;
    if (foreign) throw new Unavailable(wrongUrl || NOT_AN_AGGREGATOR, "not_an_aggregator");
  }
  // The sentence of the service names the header that this client sends.
  const needsKey = problem?.code === "unauthenticated";
  const missing = "The service requires a valid API key: pass one as the option `key`.";
  throw new Rejected(needsKey ? missing : detail, answer.status, problem);
}

/** All errors of the input; `detail` is the first one, and refers to a list that callers lack.
 * @param {Problem} problem @returns {string} */
function sentencesOf(problem) {
  return (problem.errors ?? [problem]).map((error) => error.detail).join(" ");
}

/** @param {{status: number, code: string}} problem */
function kindOf(problem) {
  if (problem.status === 429) return "rate_limited";
  if (problem.code === "overloaded") return "overloaded";
  return problem.status === 500 ? "server_error" : "unavailable";
}

/** @param {Answer} answer @param {string} url */
function failureOf(answer, url) {
  const problem = problemOf(answer.text);
  if (!problem) return new Unavailable(`${url} answered with status ${answer.status}.`);
  return new Unavailable(problem.detail, kindOf(problem));
}

/** @param {Error} error @param {string} url @param {number} deadlineMs */
function connectionFailure(error, url, deadlineMs) {
  if (error.name === "TimeoutError" || error.name === "AbortError") {
    return new Unavailable(`${url} gave no answer within ${deadlineMs / 1000} s.`, "timeout");
  }
  const cause = /** @type {{code?: string, message?: string}} */ (error.cause ?? error);
  const code = cause.code ?? "";
  const kind =
    code === "ECONNREFUSED" ? "connection_refused"
    : code === "ENOTFOUND" || code === "EAI_AGAIN" ? "name_resolution"
    : /CERT|TLS|SSL|SIGNATURE/.test(code) ? "tls"
    : /^(ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT)$/.test(code) ? "connection_failed"
    : "connection_lost";
  return new Unavailable(`${url}: ${code || cause.message || error.message}.`, kind);
}

/** @param {any} answer @returns {Decision} */
function decisionOf(answer) {
  if (typeof answer?.keep !== "boolean") throw new Unavailable(NOT_AN_AGGREGATOR, "not_an_aggregator");
  const canonicalId = answer.duplicate_of?.canonical_id ?? null;
  const { verdict, keep, id, created: stored } = answer;
  return { verdict, answer, stored, problem: "", kind: "", keep, id, canonicalId };
}

/** @param {"unknown" | "refused"} verdict @param {string} problem @param {string} kind @returns {Decision} */
function undecided(verdict, problem, kind) {
  const keep = kind !== TAKEN_DOWN;
  return { verdict, answer: null, stored: false, problem, kind, keep, id: null, canonicalId: null };
}

/** Of an article that was not accepted; its policy is no part of it.
 * @param {string} message @param {Problem | null} problem @returns {Decision} */
function rejection(message, problem) {
  if (problem?.field === "policy") return undecided("unknown", message, "policy");
  return undecided("refused", message, problem?.code === TAKEN_DOWN ? TAKEN_DOWN : "refused");
}

/** @param {string} line @returns {Decision | Error} */
function lineDecisionOf(line) {
  try {
    const row = parse(line);
    if (!row.error) return decisionOf(row);
    const retryable = row.error.status === 408 || row.error.status === 429 || row.error.status >= 500;
    if (retryable) return new Unavailable(row.error.detail, kindOf(row.error));
    return rejection(sentencesOf(row.error), row.error);
  } catch (error) {
    return /** @type {Error} */ (error);
  }
}

/** @param {unknown} value @returns {value is Record<string, any>} */
function isObject(value) {
  return typeof value === "object" && value !== null;
}

// -- dates of publication, by the rules of aggregator_client/dates.py

const [MIN_YEAR, MAX_YEAR] = [1700, 2199]; // dates outside are typing errors or scraping errors
const MAX_DATE_CHARS = 100;
const [HOUR_MS, DAY_MS] = [3_600_000, 86_400_000];
/** Names of zones with one meaning, by hours east of UTC.
 * @type {Record<string, number>} */
const ZONES = {
  Z: 0, UT: 0, UTC: 0, GMT: 0, WET: 0, BST: 1, CET: 1, MET: 1, MEZ: 1, WAT: 1, WEST: 1, CAT: 2, CEST: 2, EET: 2,
  MEST: 2, MESZ: 2, SAST: 2, EAT: 3, EEST: 3, IDT: 3, MSK: 3, TRT: 3, IRST: 3.5, PKT: 5, NPT: 5.75, ICT: 7, WIB: 7,
  AWST: 8, HKT: 8, MYT: 8, PHT: 8, SGT: 8, WITA: 8, JST: 9, KST: 9, ACST: 9.5, AEST: 10, ACDT: 10.5, AEDT: 11,
  NZST: 12, NZDT: 13, ART: -3, BRT: -3, EDT: -4, CDT: -5, COT: -5, EST: -5, PET: -5, MDT: -6, MST: -7, PDT: -7,
  AKDT: -8, PST: -8, AKST: -9, HST: -10,
};
/** Names of several meanings: the declared zones, and their hours, in which they are read.
 * @type {Record<string, Array<[string, number]>>} */
const LOCAL_ZONES = {
  ADT: [["America/", -3], ["Atlantic/", -3]], AST: [["America/", -4], ["Atlantic/", -4]], CHST: [["Pacific/", 10]],
  CST: [["Asia/", 8], ["America/", -6]], HDT: [["America/", -9]], NDT: [["America/", -2.5]], NST: [["America/", -3.5]],
  IST: [["Asia/", 5.5], ["Asia/Jerusalem", 2], ["Europe/Dublin", 1]], SST: [["Pacific/", -11]], WIT: [["Asia/", 9]],
};
const MONTHS = [
  "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
  "december",
];
const MONTH = "(?<month>[a-z]{3,9})\\.?";
const TIME =
  "(?<hour>\\d{1,2}):(?<minute>\\d\\d)(?::(?<second>\\d\\d)(?:[.,](?<fraction>\\d{1,9}))?)?" +
  "(?:\\s*(?<half>[ap])\\.?\\s?m\\b\\.?)?";
const ZONE =
  "(?<zone>[a-z]{1,4}|(?:(?:UTC|GMT|UT)\\s?)?[+-]\\d[\\d:]*(?:\\s?\\(.*\\)|\\s?\\[.*\\]|\\s[a-z]{1,5})?)";
const AFTER_DATE = `(?:(?:\\s*,\\s*|\\s+at\\s+|\\s+|T)${TIME}(?:\\s*${ZONE})?)?`;
const DATE_FORMS = [
  `(?<iso>\\d{4}-?\\d\\d-?\\d\\d|\\d{4}-?W\\d\\d-?\\d)${AFTER_DATE}`,
  `(?<year>\\d{4})(?<mark>[-/.])(?<month>\\d{1,2})\\k<mark>(?<day>\\d{1,2})${AFTER_DATE}`,
  "(?<iso>\\d{8})T(?<hour>\\d\\d)(?<minute>\\d\\d)(?<second>\\d\\d)?(?<zone>Z|[+-]\\d{2}:?\\d{2})?",
  `(?<day>\\d{1,2})(?<mark>[\\s-])${MONTH}\\k<mark>(?<year>\\d{4}|\\d\\d)${AFTER_DATE}`,
  `${MONTH}\\s+(?<day>\\d{1,2})(?:\\s*,\\s*|\\s+)(?<year>\\d{4})${AFTER_DATE}`,
  `${MONTH}\\s+(?<day>\\d{1,2})\\s+${TIME}(?:\\s+(?<zone>[a-z]{1,4}|[+-]\\d{4}))?\\s+(?<year>\\d{4})`,
].map((form) => new RegExp(`^(?:${form})$`, "i"));
const LEADING_WEEKDAY = /\p{L}{2,}(?:\.?,\s*|\.?\s+)(?=[\p{L}\p{N}_])/u; // in any language
const OFFSET =
  /^(?:UTC|GMT|UT)?\s?(?<sign>[+-])(?:(?<h>\d\d):?(?<m>[0-5]\d)|(?<hours>\d{1,2}))(?:\s?[([].*|\s(?<name>[a-z]+))?$/i;
const EPOCH = /^-?\d{9,13}(?:\.\d{1,9})?$/;

/** @typedef {{name: string, offsetAt: (ms: number) => number}} Zone */

/** A time zone of the IANA database. Throws TypeError.
 * @param {string} name @returns {Zone} */
function zoneOf(name) {
  const fields = /** @type {const} */ (["year", "month", "day", "hour", "minute", "second"]);
  const options = Object.fromEntries(fields.map((field) => [field, "numeric"]));
  /** @type {Intl.DateTimeFormat} */
  let format;
  try {
    format = new Intl.DateTimeFormat("en-US", { ...options, timeZone: name, hourCycle: "h23" });
  } catch {
    throw new TypeError(`timezone: expected a time zone such as Europe/Berlin, found '${name}'.`);
  }
  const offsetAt = (/** @type {number} */ ms) => { // milliseconds from UTC
    const parts = Object.fromEntries(format.formatToParts(ms).map(({ type, value }) => [type, Number(value)]));
    const [year, month, day, hour, minute, second] = fields.map((field) => parts[field]);
    return Date.UTC(year, month - 1, day, hour, minute, second) - 1000 * Math.floor(ms / 1000);
  };
  return { name: format.resolvedOptions().timeZone, offsetAt };
}

/**
 * The article with `published_at` in RFC 3339, or without; and whether it had one that was not read.
 *
 * @param {Record<string, any>} article @param {Zone | null} zone
 */
function dated(article, zone) {
  if (!("published_at" in article)) return { article, isUnread: false };
  const { published_at: value, ...rest } = article;
  if ((value ?? "") === "" || (typeof value === "string" && !value.trim())) return { article: rest, isUnread: false };
  const ms = readDate(value, zone);
  const year = ms === null ? NaN : new Date(ms).getUTCFullYear();
  if (!(year >= MIN_YEAR && year <= MAX_YEAR)) return { article: rest, isUnread: true };
  return { article: { ...rest, published_at: new Date(/** @type {number} */ (ms)).toISOString() }, isUnread: false };
}

/**
 * Milliseconds since 1970; null or NaN for what cannot be read for certain.
 *
 * @param {any} value @param {Zone | null} zone @returns {number | null}
 */
function readDate(value, zone) {
  if (value instanceof Date) return value.getTime();
  if (Array.isArray(value)) return value.length === 1 ? readDate(value[0], zone) : null;
  if (typeof value === "number") return fromEpoch(value);
  const given = typeof value?.toJSON === "function" ? value.toJSON() : value; // of date libraries
  if (typeof given !== "string" || given.length > MAX_DATE_CHARS) return null;
  const spelled = given.normalize("NFKC").replaceAll("\u2212", "-").replace(/[\u200e\u200f\u061c\ufeff]/g, "");
  const text = spelled.trim().split(/\s+/).join(" ");
  return EPOCH.test(text) ? fromEpoch(Number(text)) : readDateText(text, zone);
}

/** Seconds or milliseconds; other numbers may be years, 20261127, 202611271639, or 0 for none.
 * @param {number} number */
function fromEpoch(number) {
  const size = Math.abs(number);
  const isMs = size >= 1e11 && size < 1e13 && !(number >= 1.9e11 && number < 2.2e11);
  const ms = isMs ? number : 1000 * number;
  return Math.abs(ms) >= 1e11 && Math.abs(ms) < 1e13 ? ms : null;
}

/** @param {string} text @param {Zone | null} zone @returns {number | null} */
function readDateText(text, zone) {
  const texts = [text, text.replace(LEADING_WEEKDAY, "")];
  const parts = DATE_FORMS.flatMap((form) => texts.map((each) => form.exec(each)?.groups)).find(Boolean);
  const day = parts && (parts.iso ? isoDay(parts.iso) : calendarDay(parts));
  if (!parts || !day) return null;
  if (parts.hour === undefined) return day;
  const [minute, second] = [Number(parts.minute), Number(parts.second ?? 0)];
  let hour = Number(parts.hour);
  if (parts.half) {
    if (hour < 1 || hour > 12) return null;
    hour = (hour % 12) + (/p/i.test(parts.half) ? 12 : 0);
  }
  if (hour > 24 || (hour === 24 && (minute || second)) || minute > 59 || second > 60) return null;
  const ms = Number((parts.fraction ?? "").padEnd(3, "0").slice(0, 3));
  const local = day + HOUR_MS * hour + 60_000 * minute + 1000 * Math.min(second, 59) + ms;
  const offset = offsetOf(local, (parts.zone ?? "").toUpperCase(), zone);
  if (offset === null) return null;
  return local % DAY_MS === 0 ? local : local - offset; // midnight at any offset is a date without a time
}

/** Midnight UTC of a date of ISO 8601, or null.
 * @param {string} text */
function isoDay(text) {
  const week = /^(\d{4})(-?)W(\d\d)\2(\d)$/.exec(text);
  const day = /^(\d{4})(-?)(\d\d)\2(\d\d)$/.exec(text);
  if (day) return utcDay(Number(day[1]), Number(day[3]), Number(day[4]));
  if (!week) return null;
  const [year, number, weekday] = [week[1], week[3], week[4]].map(Number);
  const fourth = Date.UTC(year, 0, 4); // is in week 1
  const monday = fourth - DAY_MS * ((new Date(fourth).getUTCDay() + 6) % 7) + 7 * DAY_MS * (number - 1);
  const isOfYear = new Date(monday + 3 * DAY_MS).getUTCFullYear() === year;
  return isOfYear && weekday >= 1 && weekday <= 7 ? monday + DAY_MS * (weekday - 1) : null;
}

/** RFC 5322: years of two digits are 1950 to 2049.
 * @param {Record<string, string>} parts */
function calendarDay(parts) {
  const name = parts.month.toLowerCase();
  const isName = (/** @type {string} */ full) => name === full || name === full.slice(0, 3);
  const named = name === "sept" ? 9 : MONTHS.findIndex(isName) + 1;
  const year = Number(parts.year) + (parts.year.length > 2 ? 0 : Number(parts.year) < 50 ? 2000 : 1900);
  return utcDay(year, /^\d/.test(name) ? Number(name) : named, Number(parts.day));
}

/** Null unless there is such a day.
 * @param {number} year @param {number} month @param {number} day */
function utcDay(year, month, day) {
  const ms = Date.UTC(year, month - 1, day);
  const date = new Date(ms);
  return date.getUTCFullYear() === year && date.getUTCMonth() === month - 1 && date.getUTCDate() === day ? ms : null;
}

/**
 * Milliseconds east of UTC of a local time with the zone that is written behind it; null if that is not certain.
 *
 * @param {number} local @param {string} written @param {Zone | null} zone
 */
function offsetOf(local, written, zone) {
  let hours = ZONES[written];
  const offset = OFFSET.exec(written)?.groups;
  if (offset) {
    hours = Number(`${offset.sign}1`) * (Number(offset.h ?? offset.hours) + Number(offset.m ?? 0) / 60);
    if (Math.abs(hours) > 14 || (ZONES[offset.name] ?? hours) !== hours) return null;
  }
  if (hours !== undefined) return HOUR_MS * hours;
  if (!zone) return null;
  // When clocks change, a local time occurs twice or never.
  const offsets = new Set([local - DAY_MS, local + DAY_MS].map(zone.offsetAt));
  const [found, ...more] = [...offsets].filter((each) => zone.offsetAt(local - each) === each);
  if (found === undefined || more.length) return null;
  const isItsName = LOCAL_ZONES[written]?.some(([place, east]) => zone.name.startsWith(place) && east * HOUR_MS === found);
  return !written || isItsName ? found : null;
}
