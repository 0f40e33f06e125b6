/* Fills lists of related articles on the pages of a site. Needs no other file, no inline code and no styles.

   <section data-related-to="ID OF THE ARTICLE" data-related-key="agg_..."></section>
   <script src="https://aggregator.example/static/related.js" async></script>

   An empty data-related-to lists top stories, then recent articles. Optional: data-related-heading (default
   "Related articles"), data-related-query (parameters such as "limit=5&exclude_source=Radio"). Links that the
   page has in a section stay if no articles are found or the service does not answer; without it is hidden.
   Each section gets an event "related", whose detail has `articles`, or `error`. */
(() => {
  "use strict";
  const script = document.currentScript;
  const base = new URL(script ? script.src : location.href).href.replace(/\/static\/[^/]*$/, "");
  let headings = 0;

  function element(name, text, attributes = {}) {
    const made = document.createElement(name);
    made.textContent = text || "";
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  }

  function entry(article) {
    const item = element("li", "", { dir: "auto" });
    item.append(element("a", article.title || article.url, { href: article.url }));
    const about = element("span", "", { class: "related-about" });
    if (article.source) about.append(element("span", article.source, { class: "related-source" }));
    if (article.published_at) {
      const date = new Date(article.published_at);
      const text = date.toLocaleDateString(document.documentElement.lang || undefined, { dateStyle: "medium" });
      about.append(" ", element("time", text, { datetime: article.published_at }));
    }
    item.append(" ", about);
    return item;
  }

  function isLink(article) {
    return /^https?:\/\//i.test(article.url || "");
  }

  async function fill(section) {
    const { relatedTo = "", relatedKey = "", relatedQuery = "", relatedHeading } = section.dataset;
    const path = relatedTo ? `/v1/articles/${encodeURIComponent(relatedTo)}/related` : "/v1/related";
    section.hidden = !section.querySelector("a[href]"); // links of the page stay unless others are found
    try {
      const response = await fetch(base + path + (relatedQuery && "?" + relatedQuery), {
        credentials: "omit",
        headers: relatedKey ? { Authorization: "Bearer " + relatedKey } : {},
      });
      const body = await response.json();
      if (!response.ok) throw new Error(body.detail || `status ${response.status}`);
      const articles = body.related.filter(isLink);
      const left = body.related.length - articles.length;
      if (left) console.warn(`related.js: articles related to "${relatedTo}" that have no URL are not shown: ${left}.`);
      if (articles.length) {
        const id = `related-heading-${++headings}`;
        const list = element("ul");
        list.append(...articles.map(entry));
        section.setAttribute("aria-labelledby", id);
        section.replaceChildren(element("h2", relatedHeading || "Related articles", { id }), list);
        section.hidden = false;
      }
      section.dispatchEvent(new CustomEvent("related", { bubbles: true, detail: { articles } }));
    } catch (error) {
      const hint = error instanceof TypeError ? ". Is the service reached, and data-related-key a key of the role related in its store?" : "";
      console.warn(`related.js: no articles related to "${relatedTo}": ${error.message}${hint}`);
      section.dispatchEvent(new CustomEvent("related", { bubbles: true, detail: { error } }));
    }
  }

  function start() {
    document.querySelectorAll("[data-related-to]").forEach(fill);
  }

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
