/** Types of aggregator-client.mjs. The second part comes from the OpenAPI document. */

export interface ClientOptions {
  /** API key, if the service requires one. */
  key?: string;
  /** Time limit for one article from when it is sent, retries included; by default 2000 ms. */
  deadlineMs?: number;
  /** Time limit for each batch of 256 articles; by default 60000 ms. */
  batchDeadlineMs?: number;
  /** Without a verdict: "open" (default) returns the verdict "unknown", "closed" rejects with Unavailable. */
  onFailure?: "open" | "closed";
  /** Maximum number of requests in flight; further calls wait for a slot. By default 8. */
  concurrency?: number;
  /** All articles are an archive or a backlog: they get verdicts and fire no events. */
  backfill?: boolean;
  /** Where dates without an offset are local, such as "Europe/Berlin"; without it they are not read. */
  timezone?: string;
  /** Receives the log lines; by default the console. */
  log?: { warn(line: string): void; error(line: string): void };
}

/**
 * An article whose date is RFC 3339, RFC 2822, Unix time or a Date; what cannot be read for certain is left out
 * and counted as "unread_date".
 */
export type Article = Omit<ArticleIn, "published_at"> & { published_at?: string | number | Date | null };

/** The verdict on one article. */
export interface Decision {
  /** "unknown": no answer, and the client fails open. "refused": the service rejected the article. */
  verdict: VerdictOut["verdict"] | "unknown" | "refused";
  /** The whole answer; null if unknown or refused. */
  answer: VerdictOut | null;
  /** Whether this call stored the article, so that undoing it removes nothing older. */
  stored: boolean;
  /** Why there is no answer, in one sentence; empty with an answer. */
  problem: string;
  /** Likewise, in one word: "refused", "taken_down", "timeout", "connection_refused", ... */
  kind: string;
  /** Whether to insert the article, as the service answered; without an answer unless taken down. */
  keep: boolean;
  /** The article's id in the service. */
  id: string | null;
  /** For a duplicate the id of the canonical article of its group, which was to be kept; else null. */
  canonicalId: string | null;
}

/** No usable answer within the deadline; sending the article again is safe. */
export class Unavailable extends Error {
  constructor(message: string, kind?: string);
  kind: string;
}

/** The service rejected a request. */
export class Rejected extends Error {
  constructor(message: string, status: number, problem: Problem | null);
  status: number;
  problem: Problem | null;
}

export class Client {
  /** Throws TypeError for an unknown option or an invalid value. */
  constructor(url?: string, options?: ClientOptions);
  /** Number of articles by outcome, such as "duplicate" or "unchecked/timeout". */
  get counts(): Record<string, number>;
  /** Logs how many articles passed unchecked; a later call rejects. */
  close(): Promise<void>;
  /** Checks and stores one article. */
  submit(article: Article): Promise<Decision>;
  /** As `submit`, without storing: of two copies that are both not stored, both are new. */
  check(article: Article): Promise<Decision>;
  /**
   * One decision per article, in order; a rejected article gets the verdict "refused". An error, failing closed,
   * has the `decisions` so far.
   */
  submitMany(articles: Iterable<Article>, options?: { dryRun?: boolean }): Promise<Decision[]>;
  /** Removes what the call stored first, to be kept; false, and nothing is removed, if it stored nothing. */
  undo(decision: Decision): Promise<boolean>;
  /** `undo` that does not reject: a failure is logged and counted as "undo_failed". */
  release(decision: Decision): Promise<boolean>;
  /** Submits the article, runs the body, and releases the article if the body throws. */
  reservation<T>(article: Article, body: (decision: Decision) => T | Promise<T>): Promise<T>;
  /** A stored article. */
  get(id: string): Promise<ArticleOut>;
  /**
   * Deletes an article; false if it is not stored. `undo`: your database does not have it; copies that were not to
   * keep leave, too. `takeDown`: true refuses its text, false lifts that.
   */
  delete(id: string, options?: { undo?: boolean; takeDown?: boolean }): Promise<boolean>;
  /** All articles of its duplicate group, the canonical one first. */
  copies(id: string): Promise<CopiesOut>;
  /** Articles related to a stored one; without an id, of top stories, then recent. */
  related(id?: string, parameters?: RelatedQuery): Promise<RelatedOut[]>;
  /** Articles related to one that need not be stored. */
  relatedTo(article: Article, parameters?: RelatedQuery): Promise<RelatedOut[]>;
  /** Articles for a reader of up to 50 stored ones, and the ids that are unknown or expired. */
  relatedToIds(ids: RelatedIn["ids"], parameters?: RelatedQuery): Promise<RelatedToManyOut>;
  /** A list for each of any number of stored articles, in requests of 20, each with a deadline. */
  relatedToEach(ids: string[], parameters?: RelatedQuery): Promise<RelatedBatchOut>;
  /** Articles and events with these words, or the article with this id or URL. */
  search(query: string, limit?: number): Promise<SearchOut>;
  /** Why two stored articles are duplicates, or not, under a policy profile. */
  explain(a: string, b: string, policy?: string): Promise<ExplainOut>;
  /** Events; `query`: query string of /v1/events, e.g. "status=breaking&min_size=20". */
  events(query?: string): Promise<EventsOut>;
  /** One event with its timeline and items. */
  event(id: string): Promise<EventDetailOut>;
  /** Whether the service is ready and accepts the key; if not, logs the reason. */
  ready(): Promise<boolean>;
}

// Generated from the OpenAPI document by scripts/client-types; do not edit below this line.

/** One entry of an event's audit trail. `event`: id of the event that the editor acted on. */
export interface ActionOut {
  /** What to do. */
  action: "acknowledge" | "assign" | "choose_headline" | "delete_note" | "false_alarm" | "merge" | "move_items" | "mute" | "note" | "remove_item" | "set_work_status" | "unacknowledge" | "undo" | "unlink" | "unmute";
  /** Name of the editor; empty: automatic. */
  actor: string;
  /** Time. */
  at: string;
  /** Id of the event that the editor acted on. */
  event: string;
  /** What to mute: the story for a week, or the routine permanently. */
  scope: "routine" | "story" | null;
  /** Id of the event to merge into. */
  into: string | null;
  /** Id of an article of the event. */
  item: string | null;
  /** Id of the added or deleted note. */
  note: number | null;
  /** Name of the editor who works on it; "" for nobody. */
  assignee: string | null;
  /** State of the work; null: unchanged. */
  work_status: "dropped" | "new" | "on_it" | "open" | "published" | "seen" | null;
  /** Id of the action, unique within the event. */
  id?: number;
  /** Ids of the moved articles. */
  items?: Array<string>;
  /** Id of the undone action; null: none. */
  of?: number | null;
}

/** One article with text, html or at least a title; null and an empty text count as not given. */
export interface ArticleIn {
  /** At most 512 bytes, no control characters. */
  id?: string | null;
  /** http or https. */
  url?: string | null;
  /** Headline. */
  title?: string | null;
  /** The main text; takes precedence over html. */
  text?: string | null;
  /** The whole page; the main text is extracted from it. */
  html?: string | null;
  /** The outlet, e.g. its host name. */
  source?: string | null;
  /** RFC 3339 with an offset, e.g. 2026-11-20T08:00:00Z */
  published_at?: string | null;
  /** Language tag such as "en" or "zh-Hant"; detected when absent. */
  lang?: string | null;
  /** Name of a policy profile of the service, or "default"; absent: selected by the source. */
  policy?: string | null;
}

/** A stored article: its metadata and its verdict. */
export interface ArticleOut {
  /** Id of the article. */
  id: string;
  /** new, related or duplicate, by the policy of the article. */
  verdict: "duplicate" | "new" | "related";
  /** Whether to store it: not a duplicate that adds too little, nor of an untrusted source. */
  keep: boolean;
  /** Why a duplicate is kept: adds: enough of its words are new; fuller: it contains the original and is longer; updated_figures: its outlet replaced figures; reversed: its outlet replaced a word by its opposite; correction: its outlet says that it corrects; headline: its headline contradicts that of each kept version; news: its headline and text say what no kept version does. Else null. */
  keep_reason: "adds" | "correction" | "fuller" | "headline" | "news" | "reversed" | "updated_figures" | null;
  /** Differing bits to the nearest stored article, 0 to 7; null: none is as near. */
  distance: number | null;
  /** The verdict by the distance alone, with the bits of the settings. */
  hamming_class: "duplicate" | "new" | "related";
  /** The stored article that this one duplicates; null unless the verdict is duplicate. */
  duplicate_of: DuplicateOf | null;
  /** Share of a duplicate's words that no kept article of its group has, 0 to 1; else null. */
  adds: number | null;
  /** Whether it contains the original and has 60 words or 30 % more. */
  fuller: boolean;
  /** Whether it repeats an article with other numbers, such as a new toll. */
  updated_figures: boolean;
  /** Whether it repeats an article with a word replaced by its opposite. */
  reversed: boolean;
  /** False: the text is a notice or a list that stands under many headlines. */
  text_is_article: boolean;
  /** Id of the collection that contains the article; null: none. */
  part_of: string | null;
  /** Id of the article of which it is a later version with a new text; null: none. */
  follows: string | null;
  /** Id of the event that the article belongs to; null: none. */
  event_id: string | null;
  /** Index of the article: language group and id of its model. */
  space: string;
  /** 64-bit simhash as 16 hexadecimal digits. */
  fingerprint: string;
  /** Whether the text is too short for reliable wording rules. */
  short: boolean;
  /** Headline. */
  title: string;
  /** Address of the article; empty: it has none. */
  url: string;
  /** Name of the outlet; empty: unknown. */
  source: string;
  /** Language code; und: none was detected. */
  lang: string;
  /** Time of publication that the outlet states; null: unknown. */
  published_at: string | null;
  /** Time at which the article was stored first. */
  arrived_at: string;
  /** Time at which what is stored of the article changed last. */
  updated_at: string;
}

/** An article in a list: title, address, source and times. */
export interface ArticleRef {
  /** Id of the article. */
  id: string;
  /** Headline. */
  title: string;
  /** Address of the article; empty: it has none. */
  url: string;
  /** Name of the outlet; empty: unknown. */
  source: string;
  /** Time of publication that the outlet states; null: unknown. */
  published_at: string | null;
  /** Time at which the article was stored first. */
  arrived_at: string;
}

/** The stored articles of one duplicate group, the canonical one first. */
export interface CopiesOut {
  /** Id of the article. */
  id: string;
  /** Id of the first article of the duplicate group. */
  canonical_id: string;
  /** The articles of the group, the canonical one first, at most 1,000. */
  copies: Array<ArticleRef>;
  /** Whether there are more than are listed or compared. */
  truncated: boolean;
}

/** The stored article that this one duplicates; to link to one that was kept, use `canonical_id`. */
export interface DuplicateOf {
  /** Id of the article it resembles most, itself maybe dropped. */
  id: string;
  /** Id of the first article of the group, which was kept. */
  canonical_id: string;
  /** Differing bits of the two fingerprints, 0 to 64; null: no stored article is near. */
  distance: number;
  /** Share of wording in common, 0 to 1; null: it was not compared. */
  overlap: number | null;
  /** The rule that decided: equal text, fingerprint or shared wording. */
  rule: "exact" | "hamming" | "overlap";
}

/** One error of an input: `pointer` or `parameter` says where it is. */
export interface ErrorOut {
  /** What was wrong, where, and what to do. */
  detail: string;
  /** Stable reason of this error. */
  code: string;
  /** JSON pointer into the body as a URI fragment; #: the whole body. */
  pointer?: string | null;
  /** Name of a parameter of the query or path. */
  parameter?: string | null;
}

/** The report on one event: `items` are ids in order of joining, `articles` the newest in full. */
export interface EventDetailOut {
  /** Id of the event: that of its first article. */
  id: string;
  /** Headline of the event. */
  title: string;
  /** As said now: Quake kills 9 (2+ outlets: 31 dead). */
  current_title: string;
  /** Stage by the detector. */
  status: "breaking" | "closed" | "emerging" | "fading";
  /** How fast outlets report it at the time of the answer. */
  severity: "breaking" | "emerging" | "ended" | "fading" | "growing" | "running";
  /** Time at which the event fired. */
  detected_at: string;
  /** Time of the first item not in doubt. */
  first_seen: string;
  /** Time of the last item. */
  last_seen: string;
  /** Items counted, of any age. */
  size: number;
  /** Further duplicates from sources that were counted already. */
  sightings: number;
  /** Maximum number of items within one window (4 h). */
  peak: number;
  /** Maximum number of items within 10 minutes. */
  rate: number;
  /** Usual items per window for this story when it fired. */
  expected: number;
  /** Whether an editor acknowledged, published, dropped or muted it. */
  handled: boolean;
  /** Items in the last hour. */
  last_hour: number;
  /** Items in the hour before the last one. */
  hour_before: number;
  /** Names of outlets. */
  sources: Array<string>;
  /** Language codes. */
  languages: Array<string>;
  /** Terms. */
  terms: Array<string>;
  /** Why it fired, in one sentence. */
  reason: string;
  /** Id of the event that it was merged into; null: none. */
  merged_into: string | null;
  /** Id of its storyline, for /v1/stories/{id}. */
  story_id: string;
  /** Id of the event that reported it before in another language; null: none. */
  translation_of: string | null;
  /** Ids of the events merged into this one. */
  absorbed: Array<string>;
  /** Editor who acknowledged it; null: nobody. */
  acknowledged_by: string | null;
  /** Scope of the muted alerts; null: not muted. */
  muted: "routine" | "story" | null;
  /** Whether an editor marked it as a false alarm. */
  false_alarm: boolean;
  /** Editor actions, oldest first, the newest 300. */
  actions: Array<ActionOut>;
  /** Name of the editor who works on it; "" for nobody. */
  assignee: string;
  /** State of the newsroom's work; null: unchanged. */
  work_status: "dropped" | "on_it" | "open" | "published";
  /** Number of notes. */
  note_count: number;
  /** Version number, which increases with each change. */
  revision: number;
  /** New facts after it fired, oldest first. */
  developments: Array<EventDevelopment>;
  /** Items by 10 minutes; steps without items are omitted. */
  timeline: Array<TimelinePoint>;
  /** Ids of the items in order of joining. */
  items: Array<string>;
  /** Similarity of each to the story when it joined, 0 to 1 (1: duplicate or first). */
  cosines: Array<number>;
  /** Source of the earliest item that is about it; empty: not certain. */
  first_source: string;
  /** Id of the article whose headline is the title. */
  headline_id: string;
  /** Whether an editor chose the headline. */
  headline_is_chosen: boolean;
  /** Notes of editors, oldest first, at most 100. */
  notes: Array<NoteOut>;
  /** The newest items in full. */
  articles: Array<ArticleRef>;
  /** Id of the event of the storyline detected before this one; null: none. */
  previous: string | null;
  /** Id of the event of the storyline detected after this one; null: none. */
  next: string | null;
}

/** A new fact in a story that continues after its alert. */
export interface EventDevelopment {
  /** Time at which it was noticed. */
  at: string;
  /** Words new to the story; empty: it doubled. */
  terms: Array<string>;
}

/** One breaking event. */
export interface EventOut {
  /** Id of the event: that of its first article. */
  id: string;
  /** Headline of the event. */
  title: string;
  /** As said now: Quake kills 9 (2+ outlets: 31 dead). */
  current_title: string;
  /** Stage by the detector. */
  status: "breaking" | "closed" | "emerging" | "fading";
  /** How fast outlets report it at the time of the answer. */
  severity: "breaking" | "emerging" | "ended" | "fading" | "growing" | "running";
  /** Time at which the event fired. */
  detected_at: string;
  /** Time of the first item not in doubt. */
  first_seen: string;
  /** Time of the last item. */
  last_seen: string;
  /** Items counted, of any age. */
  size: number;
  /** Further duplicates from sources that were counted already. */
  sightings: number;
  /** Maximum number of items within one window (4 h). */
  peak: number;
  /** Maximum number of items within 10 minutes. */
  rate: number;
  /** Usual items per window for this story when it fired. */
  expected: number;
  /** Whether an editor acknowledged, published, dropped or muted it. */
  handled: boolean;
  /** Items in the last hour. */
  last_hour: number;
  /** Items in the hour before the last one. */
  hour_before: number;
  /** Names of outlets. */
  sources: Array<string>;
  /** Language codes. */
  languages: Array<string>;
  /** Terms. */
  terms: Array<string>;
  /** Why it fired, in one sentence. */
  reason: string;
  /** Id of the event that it was merged into; null: none. */
  merged_into: string | null;
  /** Id of its storyline, for /v1/stories/{id}. */
  story_id: string;
  /** Id of the event that reported it before in another language; null: none. */
  translation_of: string | null;
  /** Ids of the events merged into this one. */
  absorbed: Array<string>;
  /** Editor who acknowledged it; null: nobody. */
  acknowledged_by: string | null;
  /** Scope of the muted alerts; null: not muted. */
  muted: "routine" | "story" | null;
  /** Whether an editor marked it as a false alarm. */
  false_alarm: boolean;
  /** Editor actions, oldest first, the newest 300. */
  actions: Array<ActionOut>;
  /** Name of the editor who works on it; "" for nobody. */
  assignee: string;
  /** State of the newsroom's work; null: unchanged. */
  work_status: "dropped" | "on_it" | "open" | "published";
  /** Number of notes. */
  note_count: number;
  /** Version number, which increases with each change. */
  revision: number;
  /** New facts after it fired, oldest first. */
  developments: Array<EventDevelopment>;
}

/** Events in the order of `sort`. */
export interface EventsOut {
  /** Events. */
  events: Array<EventOut>;
  /** Cursor of the next page; null on the last one, and for surprise and growth. */
  next: string | null;
  /** Progress of the detector; null: it knows its 7 days, or nothing. */
  learning: LearningOut | null;
}

/** Comparison of two articles. Bit 0 is the least significant bit of the fingerprint. */
export interface ExplainOut {
  /** The comparison in one or two sentences. */
  summary: string;
  /** The first article. */
  a: ExplainSideOut;
  /** The second article. */
  b: ExplainSideOut;
  /** Differing bits, 0 to 64; null: the articles are in different indexes. */
  distance: number | null;
  /** Positions of the differing bits, 0: least significant; null as the distance. */
  differing_bits: Array<number> | null;
  /** Wording in common. */
  overlap: OverlapOut;
  /** Cosine of the main terms, 0 to 1. */
  similarity: number;
  /** Share of headline words in common, 0 to 1. */
  headline_similarity: number;
  /** Whether both have the same source. */
  same_outlet: boolean;
  /** Hours between the two times; null: one is unknown. */
  hours_apart: number | null;
  /** Number of numbers in common. */
  common_figures: number;
  /** Whether the rules take one for a duplicate of the other. */
  is_copy: boolean;
  /** Whether to store the later one if only the earlier one is stored. */
  keep: boolean;
  /** Why a duplicate is kept: adds: enough of its words are new; fuller: it contains the original and is longer; updated_figures: its outlet replaced figures; reversed: its outlet replaced a word by its opposite; correction: its outlet says that it corrects; headline: its headline contradicts that of each kept version; news: its headline and text say what no kept version does. Else null. */
  keep_reason: "adds" | "correction" | "fuller" | "headline" | "news" | "reversed" | "updated_figures" | null;
  /** Whether it repeats an article with other numbers, such as a new toll. */
  updated_figures: boolean;
  /** Whether it repeats an article with a word replaced by its opposite. */
  reversed: boolean;
  /** Passages in both; null: a text is not stored. */
  shared_passages: Array<string> | null;
  /** Name of the policy profile. */
  policy?: string;
  /** Whether they have one subject; null: the articles are in different indexes. */
  relatedness?: RelatednessOut | null;
}

/** One of the two articles; figures and passages that the other lacks (null: a text is not stored). */
export interface ExplainSideOut {
  /** Headline or id of the article. */
  label: string;
  /** Index of the article: language group and id of its model. */
  space: string;
  /** 64-bit simhash as 16 hexadecimal digits. */
  fingerprint: string;
  /** Numbers in the text that the other lacks; null: a text is not stored. */
  figures: Array<string> | null;
  /** Passages that the other lacks; null: a text is not stored. */
  own_passages: Array<string> | null;
}

/** An article in a result. */
export interface FoundArticle {
  /** Id of the article. */
  id: string;
  /** Headline. */
  title: string;
  /** Address of the article; empty: it has none. */
  url: string;
  /** Name of the outlet; empty: unknown. */
  source: string;
  /** Time of publication that the outlet states; null: unknown. */
  published_at: string | null;
  /** Time at which the article was stored first. */
  arrived_at: string;
  /** Language code; und: none was detected. */
  lang: string;
  /** new, related or duplicate, by the policy of the article. */
  verdict: "duplicate" | "new" | "related";
  /** Whether to store it: false for a duplicate without news. */
  keep: boolean;
  /** Words of the query that headline, source and key terms lack. */
  missing: number;
  /** Id of the event that the article belongs to; null: none. */
  event_id: string | null;
}

/** How much the detector knows of what is usual: until all days are known, routine may fire. */
export interface LearningOut {
  /** Days of the last 7 that the detector knows. */
  known_days: number;
  /** Days that it needs. */
  needed_days: number;
}

/** A note of an editor on an event. */
export interface NoteOut {
  /** Id of the note. */
  id: number;
  /** Name of the editor. */
  actor: string;
  /** Time. */
  at: string;
  /** Plain text of the note. */
  text: string;
}

/** Shared wording, estimated from shingle sketches: ratios in 0..1, `shared` in shingles. */
export interface OverlapOut {
  /** Share of the shingles of the shorter text that are in the other, 0 to 1. */
  containment: number;
  /** Shared shingles divided by all of both texts, 0 to 1. */
  resemblance: number;
  /** Estimated number of shared shingles. */
  shared: number;
  /** Larger share of either opening (80 words) that the other text contains, 0 to 1. */
  opening: number;
  /** Share of the shorter opening that is in the other opening, 0 to 1. */
  common_opening: number;
  /** Length of the shorter text divided by that of the longer one, 0 to 1. */
  length_ratio: number;
}

/** RFC 9457 problem details. `code` is stable; `field` names the offending part of the input. */
export interface Problem {
  /** Address of the description of the error, relative to the service. */
  type: string;
  /** The kind of error in words. */
  title: string;
  /** HTTP status. */
  status: number;
  /** What was wrong, where, and what to do. */
  detail: string;
  /** Stable code of the error. */
  code: string;
  /** The offending part of the input; absent: no single part. */
  field?: string | null;
  /** All errors of the input, the first is that of detail; absent: not an input. */
  errors?: Array<ErrorOut> | null;
  /** Path of the request. */
  instance?: string | null;
  /** Id of the request in the server's log and in X-Request-Id. */
  request_id?: string | null;
}

/** An article that a reader has read; without a time it counts as read last. */
export interface ReadArticle {
  /** At most 512 bytes, no control characters. */
  id: string;
  /** RFC 3339 with an offset, e.g. 2026-11-20T08:00:00Z */
  read_at?: string | null;
}

/** A list for each of several stored articles. */
export interface RelatedBatchOut {
  /** The lists, in order of the given ids. */
  lists: Array<RelatedToOneOut>;
  /** Given ids that are not stored, or not any more. */
  not_found: Array<string>;
}

/** What to find related articles for: an article by its content, or ids; neither: a new reader. */
export interface RelatedIn {
  /** At most 512 bytes, no control characters. */
  id?: string | null;
  /** http or https. */
  url?: string | null;
  /** Headline. */
  title?: string | null;
  /** The main text; takes precedence over html. */
  text?: string | null;
  /** The whole page; the main text is extracted from it. */
  html?: string | null;
  /** A list: as in the query. A text: the outlet of the article; with ids, as a list of one. */
  source?: Array<string> | string | null;
  /** RFC 3339 with an offset, e.g. 2026-11-20T08:00:00Z */
  published_at?: string | null;
  /** Language tag such as "en" or "zh-Hant"; detected when absent. */
  lang?: string | null;
  /** Name of a policy profile of the service, or "default"; absent: selected by the source. */
  policy?: string | null;
  /** What a reader has read, 0 to 50. */
  ids?: Array<string | ReadArticle> | null;
  /** Maximum number of items. */
  limit?: number | null;
  /** Published (else arrived) from this time, day (UTC) or age on. */
  since?: string | null;
  /** Published (else arrived) before this time, day (UTC) or age. */
  until?: string | null;
  /** None of these whole names. */
  exclude_source?: Array<string> | null;
  /** Neither these nor their copies; each repeats the parameter, and unknown ids have no effect. */
  exclude_ids?: Array<string> | null;
  /** Age before now at which an answer counts half, similar scores as equal, e.g. 12h; 0: by score. Default: 7d before the article asked about, and over 3d apart it has to be likelier. */
  half_life?: string | null;
  /** How much an answer that resembles better ones moves back, 0 to 1; by default 0, for ids 0.3. */
  diversity?: number | null;
  /** Least score. Absent: related_min_score, more with days. */
  min_score?: number | null;
}

/** A stored article on the same topic; a key with the role `related` gets the first five fields. */
export interface RelatedOut {
  /** Id of the article. */
  id: string;
  /** Headline. */
  title: string;
  /** Address of the article; empty: it has none. */
  url: string;
  /** Name of the outlet; empty: unknown. */
  source: string;
  /** Time of publication that the outlet states; null: unknown. */
  published_at: string | null;
  /** Differing bits of the two fingerprints, 0 to 64. */
  distance?: number;
  /** Cosine of the main terms, 0 to 1. */
  similarity?: number;
  /** Probability of one subject, 0 to 1; null in a verdict and for a new reader. */
  score?: number | null;
  /** part_of (it contains the article asked for), same_event (detected), same_story, background (an older article of the subject), same_person_or_place (or the same news); for a new reader top_story, recent; empty: unlikely, or not known. */
  kind?: "" | "background" | "part_of" | "recent" | "same_event" | "same_person_or_place" | "same_story" | "top_story";
  /** Number of its copies that are stored and not shown. */
  copies?: number;
  /** What both are about, heaviest first. */
  shared?: Array<SharedWord>;
  /** Hours between the two dates; null: one is unknown, or in a verdict. */
  hours_apart?: number | null;
  /** Id of the article of the question that it belongs to. */
  because_of?: string;
}

/** Which related articles are answered, and in which order. */
export interface RelatedQuery {
  /** Maximum number of items. */
  limit?: number;
  /** Published (else arrived) from this time, day (UTC) or age on. */
  since?: string | null;
  /** Published (else arrived) before this time, day (UTC) or age. */
  until?: string | null;
  /** Only from these whole names. */
  source?: Array<string>;
  /** None of these whole names. */
  exclude_source?: Array<string>;
  /** Neither these nor their copies; each repeats the parameter, and unknown ids have no effect. */
  exclude_ids?: Array<string>;
  /** Only articles in this language, e.g. "de"; "und": no language was detected. */
  lang?: string | null;
  /** Age before now at which an answer counts half, similar scores as equal, e.g. 12h; 0: by score. Default: 7d before the article asked about, and over 3d apart it has to be likelier. */
  half_life?: string | null;
  /** How much an answer that resembles better ones moves back, 0 to 1; by default 0, for ids 0.3. */
  diversity?: number | null;
  /** Least score. Absent: related_min_score, more with days. */
  min_score?: number | null;
}

/** As RelatedListOut. `not_found`: those of the given ids that are not stored, or not any more. */
export interface RelatedToManyOut {
  /** Related articles, best first. Empty: nothing that passes the filters has a rare word in common and reaches min_score, by default more with days apart (not with half_life). */
  related: Array<RelatedOut>;
  /** Given ids that are not stored, or not any more. */
  not_found: Array<string>;
}

/** As RelatedListOut, of one article of a batch. */
export interface RelatedToOneOut {
  /** Id of the article. */
  id: string;
  /** Related articles, best first. */
  related: Array<RelatedOut>;
}

/** Why two articles are related, or not. */
export interface RelatednessOut {
  /** The relation in two sentences. */
  summary: string;
  /** Whether the list of the first one may have the second one. */
  listed: boolean;
  /** Cosine of all terms, 0 to 1. */
  similarity: number;
  /** Probability of one subject, 0 to 1. */
  score: number;
  /** part_of (it contains the article asked for), same_event (detected), same_story, background (an older article of the subject), same_person_or_place (or the same news); for a new reader top_story, recent; empty: unlikely, or not known. */
  kind: "" | "background" | "part_of" | "recent" | "same_event" | "same_person_or_place" | "same_story" | "top_story";
  /** What both are about, heaviest first. */
  shared: Array<SharedWord>;
  /** Hours between the two times; null: one is unknown. */
  hours_apart: number | null;
}

/** The article that an id stood for before; its copies stay in their group. */
export interface ReplacedArticle {
  /** Headline. */
  title: string;
  /** Name of the outlet; empty: unknown. */
  source: string;
  /** Time of publication that the outlet states; null: unknown. */
  published_at: string | null;
  /** The verdict that was answered for it. */
  verdict: "duplicate" | "new" | "related";
}

/** Events and articles, best match first; `events` are in the first page only, at most 10. */
export interface SearchOut {
  /** Articles, newest first or best first. */
  articles: Array<FoundArticle>;
  /** Number of all that match. */
  total: number;
  /** Cursor of the next page; null on the last one. */
  next: string | null;
  /** The headlines that were searched in full. */
  searched: SearchedOut;
  /** Number of words searched; 0: the query has stop words only. */
  words: number;
  /** Events. */
  events: Array<EventOut>;
  /** Number of all events that match. */
  events_total: number;
}

/** The headlines that were searched in full; older articles are found by their key terms. */
export interface SearchedOut {
  /** Number of articles searched in full. */
  articles: number;
  /** Arrival of the oldest of them; null: there are none. */
  since: string | null;
  /** Whether older headlines are still being read: repeat the search for more. */
  loading: boolean;
}

/** A word that both articles are about. */
export interface SharedWord {
  /** The word as a headline spells it, or stems if none has any. */
  word: string;
  /** Its share of all that the articles have in common, 0 to 1. */
  weight: number;
}

/** Number of items that joined in the 10 minutes from `at`; intervals without items are omitted. */
export interface TimelinePoint {
  /** Time. */
  at: string;
  /** Number of items that joined in the 10 minutes. */
  items: number;
}

/** The verdict on one article. */
export interface VerdictOut {
  /** Id of the article. */
  id: string;
  /** new, related or duplicate, by the policy of the article. */
  verdict: "duplicate" | "new" | "related";
  /** Whether to store it: not a duplicate that adds too little, nor of an untrusted source. */
  keep: boolean;
  /** Why a duplicate is kept: adds: enough of its words are new; fuller: it contains the original and is longer; updated_figures: its outlet replaced figures; reversed: its outlet replaced a word by its opposite; correction: its outlet says that it corrects; headline: its headline contradicts that of each kept version; news: its headline and text say what no kept version does. Else null. */
  keep_reason: "adds" | "correction" | "fuller" | "headline" | "news" | "reversed" | "updated_figures" | null;
  /** Differing bits to the nearest stored article, 0 to 7; null: none is as near. */
  distance: number | null;
  /** The verdict by the distance alone, with the bits of the settings. */
  hamming_class: "duplicate" | "new" | "related";
  /** The stored article that this one duplicates; null unless the verdict is duplicate. */
  duplicate_of: DuplicateOf | null;
  /** Share of a duplicate's words that no kept article of its group has, 0 to 1; else null. */
  adds: number | null;
  /** Whether it contains the original and has 60 words or 30 % more. */
  fuller: boolean;
  /** Whether it repeats an article with other numbers, such as a new toll. */
  updated_figures: boolean;
  /** Whether it repeats an article with a word replaced by its opposite. */
  reversed: boolean;
  /** False: the text is a notice or a list that stands under many headlines. */
  text_is_article: boolean;
  /** Id of the collection that contains the article; null: none. */
  part_of: string | null;
  /** Id of the article of which it is a later version with a new text; null: none. */
  follows: string | null;
  /** Id of the event that the article belongs to; null: none. */
  event_id: string | null;
  /** Index of the article: language group and id of its model. */
  space: string;
  /** 64-bit simhash as 16 hexadecimal digits. */
  fingerprint: string;
  /** Whether the text is too short for reliable wording rules. */
  short: boolean;
  /** Related articles, best first. */
  related: Array<RelatedOut>;
  /** What is wrong as the crawler sent it: not_article, empty (no text), cut, markup, other_language (than declared), late (4 h after its date), future (over 1 h before it), no_time, undated, reused_id, untrusted (its source: not stored). */
  problems?: Array<string>;
  /** SOURCE:ID, then also id, if the posted id is of another source; else null. */
  stored_as?: string | null;
  /** Whether the id stood for another article, with next to nothing in common with this one. */
  reused_id?: boolean;
  /** That other article; null unless reused_id. */
  replaces?: ReplacedArticle | null;
  /** Submit these again: this text is no article, or what they repeat lost its id. */
  withdrawn?: Array<string>;
  /** Whether the store forgot what it held: a copy may be called new, see /readyz. */
  unchecked?: boolean;
  /** Whether it is stored: not by a dry run, in another's store, or of an untrusted source. */
  stored?: boolean;
  /** Whether this request stored it first, to be kept (201); DELETE ?undo=true. */
  created?: boolean;
}
