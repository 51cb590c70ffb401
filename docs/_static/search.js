// The search of the book: `sections.js` holds every section, MiniSearch ranks them. Both are scripts and
// come with the first question, so that pages opened from a folder can search like those of a server.
const peSearch = (() => {
  const STOP = new Set(("a an and are as at be but by can could did do does for from get give had has have i if in into "
    + "is it its just me my of on or our should so than that the their them then there these they this to use used "
    + "using versus vs was we were while who will with would you your").split(" "));
  const ASKS = new Set("how what when where which why".split(" ")); // in a title they tell, in a text they don't
  // Weights, found on 350 questions: of the fields, and of what is added below.
  const W = { home: 1, more: 0.15, label: 0.4, whole: 0.5, asks: 0.4, rare: 0.5, common: 40, cover: 0.5, part: 1.5, least: 0.75,
    loose: 0.7, named: 1.5, answers: 0.8, name: 1 };
  const FIELDS = { title: 2.2, bold: 1, asked: 5, said: 5, around: 0.5, page: 4, text: 0.8, code: 0.3 };

  // What is typed short, and what the book calls it.
  const SHORT = { attn: "attention", bf16: "bfloat16", ckpt: "checkpoint", cnn: "convolution", concat: "concatenate", config: "config.json",
    convnet: "convolution", dim: "dimension", dims: "dimensions", emb: "embedding", fp16: "float16", fp32: "float32", gb: "bytes",
    gpus: "machines", gpu: "machine", grad: "gradient", img: "image", init: "initialisation", llm: "language model", llms: "language models",
    mb: "bytes", params: "parameters", pos: "position", quant: "quantised", seq: "sequence" };
  const full = (query) => query.replace(/\S+/g, (word) => SHORT[word.toLowerCase()] ?? word);

  // Words, and the parts of compound ones: rope_theta is also rope and theta, LayerNorm layer and norm;
  // ALiBi is one word.
  const split = (text) => text.replaceAll("√", " sqrt ").normalize("NFKC").split(/[^\p{L}\p{N}_]+/u).flatMap((word) => {
    const parts = word.replace(/([a-z]{2})([A-Z][a-z])/g, "$1_$2").toLowerCase().split("_").filter(Boolean);
    return parts.length > 1 ? [word.toLowerCase(), ...parts] : parts;
  });

  // Normalise and normalize, neighbour and neighbor, centre and center are one word each.
  const american = (word) => word.replace(/is(e[drs]?|ing|ations?)$/, "iz$1").replace(/(?<=[a-z]{3})our(s|ed|ing|al)?$/, "or$1")
    .replace(/(?<=[a-z]{3}t)re(s|d)?$/, "er$1");

  // How many letters must be exchanged, added, left out, or change places with the next; at most `most`, or more.
  const edits = (a, b, most) => {
    if (Math.abs(a.length - b.length) > most) return most + 1;
    const rows = [Array.from({ length: b.length + 1 }, (_, n) => n)];
    for (let i = 1; i <= a.length; i++) {
      rows.push([i]);
      for (let j = 1; j <= b.length; j++) {
        const same = a[i - 1] === b[j - 1];
        rows[i][j] = Math.min(rows[i - 1][j] + 1, rows[i][j - 1] + 1, rows[i - 1][j - 1] + !same);
        if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) rows[i][j] = Math.min(rows[i][j], rows[i - 2][j - 2] + 1);
      }
    }
    return rows.at(-1).at(-1);
  };

  // In pieces, so that a page can be read and typed into meanwhile.
  async function build(sections, MiniSearch, Stemmer) {
    const stems = new Map(), stemmer = new Stemmer();
    const stemOf = (word) => {
      if (/^(en|de)coders?$/.test(word)) return word.replace(/s$/, ""); // an encoder is no encoding
      return /^[a-z]+$/.test(word) ? stemmer.stemWord(american(word)) : word;
    };
    const stem = (word) => {
      if (STOP.has(word)) return null;
      if (!stems.has(word)) stems.set(word, stemOf(word));
      return stems.get(word);
    };
    const index = new MiniSearch({
      fields: Object.keys(FIELDS), tokenize: split, processTerm: stem, idField: "id",
    });
    await index.addAllAsync(sections.map((section, id) => ({ ...section, id })), { chunkSize: 50 });
    const count = new Map(); // in how many sections a word stands
    for (const [n, s] of sections.entries()) {
      if (n % 200 === 0) await new Promise((go) => setTimeout(go));
      for (const w of new Set(split(`${s.title} ${s.text}`).map(stem))) count.set(w, 1 + (count.get(w) ?? 0));
    }
    const known = [...count.keys()].filter(Boolean);
    // A word that no section has is taken for the nearest one that many have, if it is long enough.
    const mended = new Map();
    const mend = (word) => {
      if (!mended.has(word)) {
        const own = stem(word), most = own?.length > 7 ? 2 : own?.length > 4 ? 1 : 0;
        const unknown = most && !count.has(own) && !known.some((other) => other.startsWith(own));
        const near = unknown ? known.filter((other) => other[0] === own[0]).map((other) => [edits(own, other, most), -count.get(other), other])
          .filter(([n]) => n <= most).sort((a, b) => a[0] - b[0] || a[1] - b[1]) : [];
        mended.set(word, near[0]?.[2] ?? word);
      }
      return mended.get(word);
    };
    const seen = (word) => count.get(stem(word)) ?? 0;
    const mass = (stems) => stems.reduce((sum, s) => sum + 1 - Math.log(1 + (count.get(s) ?? 0)) / Math.log(1 + sections.length), 0);
    const rare = (word) => Math.log(1 + sections.length / (1 + seen(word))) / Math.log(1 + sections.length);

    // A rare word may be two common ones: layernorm, batchnorm.
    const apart = (word) => {
      for (let n = word.length - 3; seen(word) < 8 && n > 2; n--) {
        const two = [word.slice(0, n), word.slice(n)];
        if (two.every((part) => seen(part) > 15)) return [word, ...two];
      }
      return [word];
    };
    // What the glossary says: a term in the question leads to its chapter, and to the words that explain it.
    const glossary = sections.filter((s) => s.url.includes("GLOSSARY.html#")).flatMap((s) => {
      const [name, ...short] = s.title.replace(/ \([^()]*[^\x00-\x7f]+[^()]*\)$/, "").split(/ \(|\)/).filter(Boolean);
      const says = `${name} ${s.text.replace(/\(chapter \d+\)$/, "")}`;
      return [name, ...short].map((term) => ({ term, place: s.place, says }));
    });
    // Names of things lead to the place that explains them, before all ranking.
    const key = (words) => words.map(stem).filter(Boolean).join(" ");
    const bare = (text) => split(text).filter((w) => !ASKS.has(w));
    const named = new Map();
    for (const [id, { names }] of sections.entries()) for (const name of names?.split("; ") ?? []) named.set(key(split(name)), id);
    const place = (query) => named.get(key(split(query))) ?? named.get(key(bare(query))) ?? -1;
    const stream = (text) => ` ${split(text).map(stem).filter(Boolean).join(" ")} `;

    for (const g of glossary) g.stems = stream(g.term).trim();
    const streams = new Map();
    const read = (id) => {
      if (!streams.has(id)) {
        const { title, bold, asked, said, text } = sections[id];
        const names = [title, title.split(": ")[0]].map((name) => stream(name).trim().split(" "));
        streams.set(id, [names, stream(`${title} . ${bold}`), stream(`${asked} . ${said ?? ""} . ${text}`)]);
      }
      return streams.get(id);
    };
    // The short answer that has most of what was asked: of the first three sections, for one word of the first.
    const answer = (hits, all) => {
      const said = hits.slice(0, all.length > 1 ? 3 : 1).flatMap((hit) => (hit.asked ? hit.asked.split("\n") : []).map((text) => ({ hit, text })));
      const share = ({ hit, text }) => {
        const own = new Set(split(`${text} ${hit.title}`).map(stem));
        return mass(all.filter((word) => own.has(word))) / mass(all);
      };
      const [best] = said.map((one) => ({ ...one, share: share(one) })).sort((a, b) => b.share - a.share);
      return best?.share >= W.answers ? best : undefined;
    };
    // Words that no section has, nor one that begins like them.
    const unknown = (query) => query.split(/\s+/).filter((word) => {
      const parts = split(word).filter((w) => !STOP.has(w));
      return parts.length && !parts.some((w) => count.has(stem(w)) || known.some((stem) => stem.startsWith(w)));
    });
    return (query, limit = 20) => {
      const asked = [...new Set(split(full(query)).filter((w) => !STOP.has(w)).map(mend).flatMap(apart))];
      const found = index.search(asked.join(" "), {
        boost: FIELDS,
        bm25: { k: 1.2, b: 0.9, d: 0.5 },
        boostTerm: (word) => ((ASKS.has(word) ? W.asks : 1) * rare(word) ** W.rare),
        fuzzy: (word) => (word.length > 5 && !count.has(word) ? 0.2 : false),
        prefix: (word, n, all) => n === all.length - 1 && word.length > 2 && !count.has(word),
        boostDocument: (id) => sections[id].weight,
      });
      // Words that stand side by side in the question and in the section belong together.
      const all = asked.map(stem);
      const pairs = all.slice(1).map((word, n) => ` ${all[n]} ${word} `);
      const terms = glossary.map((g) => { // a term may stand apart in the question, or lack a common word
        const own = g.stems.split(" ");
        const whole = ` ${all.join(" ")} `.includes(` ${g.stems} `);
        const part = mass(own.filter((w) => all.includes(w))) / mass(own);
        const telling = own.length > 1 ? part >= W.least : (count.get(g.stems) ?? 0) < W.common;
        return { ...g, share: (whole ? 1 : W.loose * part) * (telling && part ? own.length / all.length : 0) };
      }).filter((g) => g.share);
      const weigh = (words) => words.reduce((sum, w) => sum + (ASKS.has(w) ? W.asks : 1) * rare(w), 0);
      const whole = weigh(asked.filter(seen)) || 1;
      const home = new Map(), more = new Map();
      const raise = (map, key, value) => map.set(key, Math.max(value, map.get(key) ?? 0));
      for (const { place, says, share } of terms) {
        raise(home, place.split("#")[0], share);
        for (const hit of index.search(says, { boost: FIELDS })) {
          raise(more, hit.id, share * sections[hit.id].weight * hit.score / hit.queryTerms.length);
        }
      }
      // A name inside a longer question leads to its section, too.
      const inside = new Map();
      for (const [name, id] of named) {
        if (` ${all.join(" ")} `.includes(` ${name} `)) raise(inside, id, mass(name.split(" ")) / mass(all));
      }
      const base = ({ id, score, queryTerms }) => {
        const known = home.get(sections[id].url.split("#")[0]) ?? 0;
        const covers = (weigh(queryTerms) / whole) ** W.part * all.length / queryTerms.length;
        return (1 + W.home * known + W.name * (inside.get(id) ?? 0)) * (covers * score + W.more * all.length * (more.get(id) ?? 0));
      };
      const near = (id) => {
        const [names, short, whole] = read(id);
        const part = (where) => pairs.filter((pair) => where.includes(pair)).length / (pairs.length || 1);
        // A title names its subject before a colon: all of it, or that part, may be what was asked.
        const cover = Math.max(...names.map((name) => mass(name.filter((word) => all.includes(word))) / mass(name)));
        const named = names.some((name) => name.length === all.length && name.every((word) => all.includes(word)));
        return (named ? W.named : 1) * (1 + W.cover * cover ** 2) * (1 + W.label * part(short) + W.whole * part(whole));
      };
      const rated = found.map((hit) => ({ id: hit.id, terms: hit.terms, score: base(hit) })).sort((a, b) => b.score - a.score);
      const best = rated.slice(0, 80).map((hit) => ({ ...hit, score: hit.score * near(hit.id) }))
        .sort((a, b) => b.score - a.score).slice(0, limit);
      const first = place(query);
      if (first >= 0) {
        const at = best.findIndex((hit) => hit.id === first);
        best.unshift(at < 0 ? { id: first, terms: key(bare(query)).split(" ") } : best.splice(at, 1)[0]);
        best.length = Math.min(best.length, limit);
      }
      const told = new Set([...ASKS].map(stem));
      const hits = best.map(({ id, terms }) => {
        const telling = terms.filter((term) => term.length > 1 && !told.has(term));
        return { ...sections[id], terms: telling.length ? telling : terms };
      });
      return Object.assign(hits, { answer: answer(hits, all), unknown: unknown(query) });
    };
  }
  return { build };
})();

// ---- the page ----------------------------------------------------------------------------------------
(() => {
  const root = new URL(document.documentElement.dataset.content_root, location.href);
  const load = (file) => new Promise((done, fail) => {
    const script = document.createElement("script");
    Object.assign(script, { src: new URL(`_static/${file}`, root), onload: done, onerror: fail, async: false });
    document.head.append(script);
  });
  let engine; // built at the first question
  const ready = () => engine ??= Promise.all(
    ["minisearch.js", "base-stemmer.js", "english-stemmer.js", "sections.js"].map(load),
  ).then(() => peSearch.build(window.sections, MiniSearch, EnglishStemmer));

  // Words that begin like the stems of what was asked.
  const like = (stems) => new RegExp(
    `(?<![\\p{L}\\p{N}])(?:${stems.map((s) => s.length > 2 ? `${s.replace(/i$/, "[iy]")}[\\p{L}\\p{N}]*` : s)
      .join("|")})(?![\\p{L}\\p{N}])`, "giu");

  // The part of a text that has most of the words, with these marked.
  function excerpt({ asked, text, terms }, width = 220) {
    const pattern = like(terms);
    const whole = [text, asked].map((t) => [new Set(t.toLowerCase().match(pattern)).size, t]).sort((a, b) => b[0] - a[0])[0][1];
    const hits = [...whole.matchAll(pattern)];
    const kinds = (from) => new Set(hits.filter((h) => h.index >= from && h.index < from + width).map((h) => h[0].slice(0, 4))).size;
    const start = hits.map((h) => h.index).reduce((a, b) => (kinds(b) > kinds(a) ? b : a), hits[0]?.index ?? 0);
    const from = start < 60 ? 0 : whole.lastIndexOf(" ", start - 40) + 1;
    const part = whole.slice(from, whole.indexOf(" ", from + width) < 0 ? undefined : whole.indexOf(" ", from + width));
    const box = document.createElement("p");
    let at = 0;
    box.append(from ? "… " : "");
    for (const hit of part.matchAll(pattern)) {
      const mark = document.createElement("mark");
      mark.textContent = hit[0];
      box.append(part.slice(at, hit.index), mark);
      at = hit.index + hit[0].length;
    }
    box.append(part.slice(at), from + part.length < whole.length ? " …" : "");
    return box;
  }

  function item(hit) {
    const [file, anchor] = hit.url.split("#");
    const link = Object.assign(document.createElement("a"), {
      href: new URL(`${file}?q=${encodeURIComponent(hit.terms.join(" "))}${anchor ? `#${anchor}` : ""}`, root),
      textContent: hit.title,
    });
    const where = Object.assign(document.createElement("span"), {
      className: "search-where", textContent: [hit.page, hit.around].filter((t) => t && t !== hit.title).join(" · "),
    });
    const li = document.createElement("li");
    li.append(link, where, excerpt(hit));
    return li;
  }

  // A short answer, and where it is shown.
  function told({ hit, text }) {
    const [file, anchor] = hit.url.split("#");
    const said = Object.assign(document.createElement("p"), { textContent: text });
    const href = new URL(`${file}${anchor ? `#${anchor}` : ""}`, root);
    const link = Object.assign(document.createElement("a"), { href, textContent: hit.title });
    const where = document.createElement("p");
    where.append("Shown in ", link);
    return [said, where];
  }

  // What a form finds stands below it: eight results in the window, thirty on the page of the search.
  function serve(form) {
    const input = form.querySelector("input");
    const onPage = !form.closest("dialog");
    const box = (onPage && document.getElementById("search-results")) || document.createElement("div");
    if (!box.id) form.after(box);
    const status = Object.assign(document.createElement("p"), { role: "status", className: "search-status" });
    const short = Object.assign(document.createElement("div"), { className: "search-answer", hidden: true });
    const list = document.createElement("ol");
    box.classList.add("search-found");
    box.append(status, short, list);
    let last = 0;
    const answer = async () => {
      const turn = ++last, query = input.value.trim();
      if (!query) return list.replaceChildren(), short.hidden = true, status.textContent = "";
      if (!window.sections) status.textContent = "Reading the book …";
      try {
        const find = await ready();
        if (turn !== last) return; // more was typed meanwhile
        const hits = find(query, onPage ? 30 : 8);
        list.replaceChildren(...hits.map(item));
        short.hidden = !hits.answer;
        if (hits.answer) short.replaceChildren(...told(hits.answer));
        list.dataset.query = query;
        const none = hits.unknown.map((word) => `“${word}”`).join(", ");
        const found = hits.length ? `${hits.length} sections, the best first` : "";
        status.textContent = [none ? `No section has ${none}.` : "", found].filter(Boolean).join(" ") || "No section has these words.";
      } catch {
        status.textContent = "The search could not be loaded.";
      }
    };
    let wait;
    input.addEventListener("input", () => { clearTimeout(wait); wait = setTimeout(answer, 150); });
    input.addEventListener("focus", () => setTimeout(ready, 50), { once: true });
    box.parentElement.addEventListener("keydown", (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      const stops = [input, ...list.querySelectorAll("a")];
      const next = stops[stops.indexOf(document.activeElement) + step];
      if (next) { event.preventDefault(); next.focus(); }
    });
    if (onPage) {
      form.addEventListener("submit", (event) => {
        event.preventDefault();
        history.replaceState(null, "", `?q=${encodeURIComponent(input.value)}`);
        answer();
      });
      input.value = new URLSearchParams(location.search).get("q") ?? "";
      input.focus();
      answer();
    }
  }
  document.querySelectorAll("form.bd-search").forEach(serve);

  // Whoever comes from the search finds the heading on the screen and the words marked.
  const words = new URLSearchParams(location.search).get("q");
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (words && !document.getElementById("search-results")) {
    const within = target?.closest("section, dl, dt") ?? document.querySelector("article");
    const mark = () => {
      const pattern = like(words.split(" ")), ranges = [];
      const walk = document.createTreeWalker(within, NodeFilter.SHOW_TEXT);
      while (walk.nextNode()) {
        if (walk.currentNode.parentElement.closest("math, script, pre")) continue;
        for (const hit of walk.currentNode.data.matchAll(pattern)) {
          const range = new Range();
          range.setStart(walk.currentNode, hit.index);
          range.setEnd(walk.currentNode, hit.index + hit[0].length);
          ranges.push(range);
        }
      }
      if (window.Highlight) CSS.highlights.set("asked", new Highlight(...ranges));
    };
    target?.classList.add("search-target");
    addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      CSS.highlights?.delete("asked");
      target?.classList.remove("search-target");
    });
    let moved = false;
    addEventListener("wheel", () => { moved = true; }, { once: true, passive: true });
    addEventListener("load", () => {
      mark();
      if (!moved) target?.scrollIntoView();
    });
  }
})();
