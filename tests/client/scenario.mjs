// @ts-check
// The scenario of test_js_client.py in JavaScript: node scenario.mjs URL DEADLINE_MS ARTICLES
import { Client, Rejected } from "../../packages/client/js/aggregator-client.mjs";

const [url, deadlineMs, articles] = /** @type {any} */ (globalThis).process.argv.slice(2);
const { original, copy, other, lost, hanging, dates } = JSON.parse(articles);
/** @type {string[]} */
const lines = [];
const record = (/** @type {string} */ line) => void lines.push(line);
const log = { warn: record, error: record };
const client = new Client(url, { deadlineMs: Number(deadlineMs), concurrency: 4, log });
const impatient = new Client(url, { deadlineMs: 300, log });
const local = new Client(url, { deadlineMs: Number(deadlineMs), concurrency: 1, timezone: "Europe/Berlin", log });
const strict = new Client(url, { deadlineMs: 300, onFailure: "closed", log });

/** @param {import("../../packages/client/js/aggregator-client.mjs").Decision} decision */
const short = ({ verdict, keep, id, canonicalId, kind }) => [verdict, keep, id, canonicalId, kind];

/** @param {Promise<unknown>} promise */
const rejection = (promise) =>
  promise.then(() => "none", (error) => [error.name, error.kind ?? error.status]);

/** @type {Record<string, unknown>} */
const result = { ready: await client.ready() };
result.check = short(await client.check(original));
result.unstored = await rejection(client.get(original.id));
result.new = short(await client.submit(original));
result.duplicate = short(await client.submit(copy));
const [first, second, refused] = await client.submitMany([copy, other, { id: "empty" }]);
result.batch = [short(first), short(second), short(refused)];
const kept = await client.submit(lost);
result.lost_answer = short(kept);
result.not_undone = (await client.submit(lost)).stored;
result.lost_undone = [await client.undo(kept), ...(await rejection(client.get("lost")))];
const [inBatch] = await client.submitMany([lost]);
result.lost_batch_undone = [await client.undo(inBatch), ...(await rejection(client.get("lost")))];
result.timeout = short(await impatient.submit(hanging));
result.timeout_closed = await rejection(strict.submit(hanging));
result.refused = short(await client.submit({ id: "empty" }));
const unknown = { id: "policy", title: "Ferry", policy: "defualt" };
result.policy = [short(await client.submit(unknown)), short((await client.submitMany([unknown]))[0])];
result.related = (await client.related(original.id)).map((item) => item.id);
result.related_to = (await client.relatedTo({ text: original.text })).map((item) => item.id);
result.related_to_ids = (await client.relatedToIds([{ id: original.id, read_at: "2026-11-20T08:00:00Z" }, "absent"])).not_found;
const many = [original.id, ...Array.from({ length: 120 }, (_, n) => `absent-${n}`), original.id];
const each = await client.relatedToEach(many, { limit: 3 });
result.related_to_each = [each.lists.map((list) => list.id), each.not_found.length];
result.related_limit = (await client.related(original.id, { limit: 1, source: ["none", "nobody"] })).length;
result.search = (await client.search("Brackwater ferry")).articles.map((article) => article.id).sort();
result.copies = (await client.copies(copy.id)).copies.map((article) => article.id);
result.explain = (await client.explain(original.id, copy.id)).is_copy;
result.events = (await client.events("status=breaking")).events;
const failedInsert = client.reservation({ id: "undone", title: "Undone", text: "A note." }, () => {
  throw new Rejected("disk full", 507, null);
});
result.undone = await rejection(failedInsert);
result.after_undo = await rejection(client.get("undone"));
result.delete = [await client.delete(other.id), await client.delete(other.id)];
result.take_down = await client.delete(copy.id, { takeDown: true });
result.taken_down = [short(await client.submit(copy)), short((await client.submitMany([copy]))[0])];
const lifted = await client.delete(copy.id, { takeDown: false });
result.lifted = [lifted, await client.delete(copy.id, { takeDown: false })];
const copies = Array.from({ length: 12 }, (_, number) => ({ id: `burst-${number}`, text: original.text }));
const burst = copies.map((article) => client.check(article));
result.burst = (await Promise.all(burst)).map((decision) => decision.verdict);
for (const [name, reader] of /** @type {const} */ ([["dates", client], ["local_dates", local]])) {
  const dated = (/** @type {any} */ date, /** @type {number} */ n) => ({ id: `${name}-${n}`, title: `Day ${n}`, published_at: date });
  const answers = await reader.submitMany(dates.map(dated));
  const stored = await Promise.all(answers.map(({ id }) => reader.get(id ?? "")));
  result[name] = [stored.map((article) => article.published_at && Date.parse(article.published_at) / 1000), reader.counts.unread_date];
}
result.counts = client.counts;
for (const each of [client, impatient, local, strict]) await each.close();
result.closed = [await rejection(client.submit(original)), await rejection(client.get("a"))];
result.log = lines.map((line) => line.split(" (last ")[0]);
console.log(JSON.stringify(result));
