// A tap on a formula, or Enter, says what its letters are: in the words of a sentence of this page that introduces each,
// or as the table of axes has it (chapter 0).
(() => {
  const article = document.querySelector("article.bd-article");
  if (!article?.querySelector("math")) return;
  const AXES = {}; // the build writes them here
  const SIGNS = /^[∞⊤π∂]$/u, FORMULA = "\ufffc";
  // What stands around a letter where it is introduced: "K is the", "let c", "the slope m", "query i".
  const IS = /^,? (is|are|be) (the|an?|its|called|some|any|one)\b|^ for (the|its|an?)\b|^ (stands?|counts?|numbers) |^, (the|an?)\b/;
  const LET = /\b(calls?|called|let|write)\s(\w+\s){0,3}$/i;
  const NAMED = /\b(an?|the|each|every|any|one|its|whose|their)\s([\w'-]+\s){0,2}[\w'-]+\s$|\b(query|key|word|token|pair|component|row|column|head|layer|position|patch)\s$/i;
  const VERB = /\b(is|are|gives?|has|by|in|to|from|as|than|and|or|not|all|only|so|if|that|which|of|with|for)\s$/i;
  const make = (tag, props, ...children) => {
    const e = Object.assign(document.createElement(tag), props);
    e.append(...children);
    return e;
  };

  // The letter that a formula is, with or without an index.
  const letter = (formula) => {
    const all = formula.querySelector("semantics")?.firstElementChild;
    const base = all?.localName === "msub" ? all.firstElementChild : all;
    return base?.localName === "mi" ? base.textContent : "";
  };
  const worth = (before, after) =>
    IS.test(after) || LET.test(before) ? 2 : NAMED.test(before) && !VERB.test(before) ? 1 : 0;

  const section = (node) => (node.closest ? node : node.parentNode).closest("section[id]");
  const best = (uses) => uses.reduce((one, other) => (other.worth > one.worth ? other : one), uses[0]);

  // The sentences that use a letter by itself: each as a range of the page, with what it is worth.
  const find = () => {
    const found = new Map();
    for (const block of article.querySelectorAll("p, li, td")) {
      if (block.querySelector("p, li") || block.closest(".letters, .explore, .break")) continue;
      let text = "";
      const signs = []; // of each sign of the text: its node, where it begins and ends there, and the formula that it is
      const walk = document.createTreeWalker(block, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT, (node) =>
        node.parentNode.closest("math") ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT);
      while (walk.nextNode()) {
        const node = walk.currentNode;
        if (node.localName === "math") {
          const at = [...node.parentNode.childNodes].indexOf(node);
          text += FORMULA;
          signs.push([node.parentNode, at, at + 1, node]);
        } else if (node.nodeType === Node.TEXT_NODE) {
          text += node.data.replace(/\s/g, " ");
          for (let n = 0; n < node.length; n++) signs.push([node, n, n + 1]);
        }
      }
      let start = 0;
      for (const sentence of text.split(/(?<=[.?!:]\)?)\s+(?=[(\p{Lu}\ufffc"])/u)) {
        start = text.indexOf(sentence, start);
        const own = signs.slice(start, start + sentence.length);
        start += sentence.length;
        if (/\?\)?$|Predict|hapter \d+ calls/.test(sentence)) continue;
        const range = document.createRange();
        if (own.length) {
          range.setStart(own[0][0], own[0][1]);
          range.setEnd(own.at(-1)[0], own.at(-1)[2]);
        }
        own.forEach(([, , , formula], n) => {
          const name = formula && letter(formula);
          if (!name) return;
          const use = { range, section: section(block), worth: worth(sentence.slice(0, n), sentence.slice(n + 1)) };
          found.set(name, [...found.get(name) ?? [], use]);
        });
      }
    }
    return found;
  };
  const isLetter = (e) => e?.localName === "mi" && [...e.textContent].length === 1 && !SIGNS.test(e.textContent);
  const ofWord = (e) => { // three or more in a row, as in "pos"
    let [first, run] = [e, 1];
    while (isLetter(first.previousElementSibling)) first = first.previousElementSibling;
    for (let next = first; isLetter(next.nextElementSibling); next = next.nextElementSibling) run++;
    return run > 2;
  };
  const letters = (formula) => new Set([...formula.querySelectorAll("mi")]
    .filter((e) => isLetter(e) && !ofWord(e)).map((e) => e.textContent));

  let known, box, asked;
  const close = () => {
    box?.remove();
    box = asked = undefined;
  };
  const explain = (formula) => {
    const same = asked === formula;
    close();
    if (same) return;
    known ??= find();
    const said = new Map(); // what is said, and of which letters
    for (const name of letters(formula)) {
      const uses = known.get(name) ?? [];
      const here = best(uses.filter((use) => use.section === section(formula)));
      const chapter = uses.filter((use) => !use.section.id.startsWith("exercise"));
      const first = best(chapter.slice(0, 4)); // what the page begins with is mostly what it means by it
      const found = here?.worth ? [here] : first?.worth ? [here, first] : [];
      const axis = found.some((use) => use?.worth === 2) ? "" : AXES[name];
      for (const what of [...found.map((use) => use?.range), axis]) {
        if (what) said.set(what, [...said.get(what) ?? [], name]);
      }
    }
    const rows = [...said].flatMap(([what, names]) => {
      const words = make("dd", {}, typeof what === "string" ? `as an axis of an array: ${what}` : what.cloneContents());
      const where = typeof what !== "string" && section(what.startContainer);
      if (where && where !== section(formula)) {
        const heading = where.querySelector("h1, h2, h3, h4").cloneNode(true);
        heading.querySelector(".headerlink")?.remove();
        words.append(" ", make("a", { className: "letters-where", href: `#${where.id}`, textContent: `(${heading.textContent})` }));
      }
      return [make("dt", { textContent: names.join(", ") }), words];
    });
    const symbols = new URL("symbols.html", new URL(document.documentElement.dataset.content_root, location.href)).href;
    const head = make("p", {}, rows.length ? "Letters of this formula, in the words of this page. " : "No sentence of this page introduces its letters by themselves. ",
      make("a", { href: symbols, textContent: "All symbols" }));
    box = make("div", { className: "letters", tabIndex: -1 }, head, make("dl", {}, ...rows));
    box.setAttribute("role", "note");
    box.setAttribute("aria-label", "The letters of the formula");
    const place = formula.closest("div.formula, table, p, li, dd, dt") ?? formula;
    if (place.localName === "li") place.append(box); else place.after(box);
    asked = formula;
  };

  article.classList.add("has-letters");
  article.addEventListener("click", (event) => {
    const formula = event.target.closest("math, div.formula");
    if (!formula || event.target.closest("a, button, summary, label, .letters") || !getSelection().isCollapsed) return;
    explain(formula.localName === "math" ? formula : formula.querySelector("math"));
  });
  const hint = make("span", { id: "letters-hint", hidden: true, textContent: "Enter explains its letters." });
  article.append(hint);
  for (const formula of article.querySelectorAll("div.formula")) formula.setAttribute("aria-describedby", hint.id);
  article.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && event.target.matches("div.formula")) {
      explain(event.target.querySelector("math"));
      box?.focus();
    } else if (event.key === "Escape" && box) {
      const back = asked.closest("div.formula");
      const inside = box.contains(document.activeElement);
      close();
      if (inside) back?.focus();
    }
  });
})();
