// The page "Break a real model": what was measured (break.json, in the page) shown for a sentence and a
// mistake, word by word. The state stands in the address: #sentence=3&mistake=zero.
(() => {
  const box = document.querySelector("section.break");
  if (!box) return;
  const table = JSON.parse(box.querySelector("script").textContent);
  const form = box.querySelector("form");
  const shown = box.querySelector(".break-shown");
  const [sentence, bet] = form.querySelectorAll("select");
  const abouts = [...document.querySelectorAll(".break-about")];
  const all = document.querySelector(".break-all");
  const calm = matchMedia("(prefers-reduced-motion: reduce)");
  const find = (words) => box.querySelector(words);
  const number = (x, digits = 2) => x.toFixed(digits).replace("-", "−");
  const word = (text) => (text.trim() ? text : text.replaceAll("\n", "⏎").replace(/^ +$/, "␣"));
  const quoted = (text) => `“${word(text).trim()}”`;

  const made = (name, parent, attributes = {}, text = "") => {
    const svg = parent.closest("svg");
    const one = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) one.setAttribute(key, value);
    if (text) one.textContent = text;
    parent.append(one);
    return one;
  };

  const own = () => table.sentences[sentence.value];
  const mistake = () => form.elements.mistake.value;
  const entry = (name) => own().entries.find((one) => one.mistake === name);
  const order = () => own().entries.map((one) => one.mistake);

  // ---- the two texts ----------------------------------------------------------------------------

  let timer = 0;
  const say = (place, text, surprise) => {
    const p = Math.exp(-surprise);
    const chance = p >= 0.995 ? "more than 99%" : p < 0.01 ? "less than 1%" : `${Math.round(100 * p)}%`;
    place.textContent = `${quoted(text)}: ${number(surprise)} nats, probability ${chance} in the right model.`;
  };

  const column = (side, name) => {
    const part = find(`.break-${side}`);
    const { written, surprise, wrong } = entry(name);
    const label = name === "right" ? "Right positions" : table.labels[name][0].toUpperCase() + table.labels[name].slice(1);
    part.querySelector(".break-head").textContent = label;
    part.querySelector(".break-given").textContent = own().text;
    const line = part.querySelector(".break-word");
    line.textContent = "Touch a word for its surprise.";
    const bar = part.querySelector(".break-words");
    bar.replaceChildren();
    bar.setAttribute("aria-label", `${label}: words written; arrow keys move`);
    const buttons = written.map((text, n) => {
      const one = made("button", bar, { type: "button", tabindex: n ? -1 : 0 }, word(text));
      one.style.setProperty("--surprise", Math.min(1, surprise[n] / 8));
      one.setAttribute("aria-label", `${word(text).trim()}, ${number(surprise[n])} nats${n === wrong ? ", first wrong word" : ""}`);
      one.classList.toggle("break-first", n === wrong);
      for (const event of ["focus", "click", "pointerenter"]) one.addEventListener(event, () => say(line, text, surprise[n]));
      if (text.includes("\n")) made("br", bar);
      return one;
    });
    bar.onkeydown = (event) => {
      const by = { ArrowRight: 1, ArrowLeft: -1, Home: -99, End: 99 }[event.key];
      if (!by) return;
      event.preventDefault();
      const at = buttons.indexOf(document.activeElement);
      const to = buttons[Math.max(0, Math.min(buttons.length - 1, at + by))];
      buttons.forEach((one) => { one.tabIndex = one === to ? 0 : -1; });
      to.focus();
    };
    return buttons;
  };

  const play = (sides, end) => {
    clearInterval(timer);
    if (calm.matches) return end();
    const words = sides.flat();
    words.forEach((one) => one.classList.add("break-later"));
    let n = 0;
    timer = setInterval(() => {
      sides.forEach((side) => side[n]?.classList.remove("break-later"));
      n += 1;
      if (sides.some((side) => n < side.length)) return;
      clearInterval(timer);
      end();
    }, 130);
  };

  // ---- what was seen ----------------------------------------------------------------------------

  const seen = (name) => {
    const right = entry("right"), { written, wrong, loss } = entry(name);
    if (wrong < 0) {
      return name === "shift"
        ? `Nothing happened: all ${written.length} words are the same. The hands moved, but the angles between them did not.`
        : `All ${written.length} words are the same here, although the loss is not: ${number(loss)} instead of ${number(right.loss)} nats.`;
    }
    const at = wrong + 1, place = `${at}${{ 1: "st", 2: "nd", 3: "rd" }[at % 20] ?? "th"}`;
    return `The ${place} word is the first wrong one: ${quoted(written[wrong])} instead of ${quoted(right.written[wrong])}.`;
  };

  const verdict = () => {
    if (!bet.value) return "";
    const cost = (name) => entry(name).loss - entry("right").loss;
    const said = (name) => `“${table.labels[name]}” changes the loss by ${number(cost(name))} nats`;
    const worst = order().reduce((a, b) => (cost(b) > cost(a) ? b : a));
    if (cost(bet.value) === cost(worst)) return `Your bet is right: ${said(bet.value)}, and nothing here costs more.`;
    return `Your bet is not the worst: ${said(bet.value)}. The most expensive mistake: ${said(worst)}.`;
  };

  const numbers = (name) => {
    const [right, broken] = [entry("right"), entry(name)];
    const first = ({ likeliest }) => likeliest.map(([text, p]) => `${quoted(text)} ${Math.round(100 * p)}%`).join(", ");
    const rows = [
      ["loss of the right words", number(right.loss), number(broken.loss)],
      ["loss of 128 tokens of Opticks", number(table.mistakes.right), number(table.mistakes[name])],
      ["the first word, most probable", first(right), first(broken)],
    ];
    const body = find(".break-numbers tbody");
    body.replaceChildren();
    for (const [head, ...cells] of rows) {
      const row = made("tr", body);
      made("th", row, { scope: "row" }, head);
      for (const cell of cells) made("td", row, {}, cell);
    }
  };

  // ---- clocks and arcs --------------------------------------------------------------------------

  const point = (hand, angle) => {
    hand.style.transform = `rotate(${-angle}rad)`;
  };

  const clocks = (name) => {
    const svg = find(".break-clocks");
    svg.replaceChildren();
    const said = [];
    for (const [row, which] of ["right", name].entries()) {
      const { told: [key, query], turns } = own().clocks[order().indexOf(which)];
      const top = 18 + 126 * row;
      made("text", svg, { x: 2, y: top - 4 }, which === "right" ? "right" : table.labels[which]);
      const apart = turns.map((turn, c) => {
        const x = 40 + 80 * c, y = top + 42;
        made("circle", svg, { cx: x, cy: y, r: 34, class: "grey" });
        const turned = (angle, kind, length) => {
          const hand = made("path", svg, { d: `M${x} ${y}h${length}`, class: kind });
          hand.style.transformOrigin = `${x}px ${y}px`;
          if (calm.matches) return point(hand, angle);
          point(hand, 0);
          hand.getBoundingClientRect(); // from here it turns
          point(hand, angle);
        };
        turned(key * turn, "key", 30);
        turned(query * turn, "query", 24);
        const degrees = ((query - key) * turn * 180) / Math.PI;
        const within = Math.round(degrees - 360 * Math.round(degrees / 360));
        const words = `${within}°`.replace("-", "−");
        made("text", svg, { x, y: top + 92, class: "middle" }, words);
        return words;
      });
      said.push(`${which === "right" ? "right" : table.labels[which]}: ${apart.join(", ")}`);
    }
    svg.setAttribute("aria-label", `Angle between the hands of pairs 0, 16, 32 and 64. ${said.join(". ")}.`);
  };

  const arcs = (name) => {
    const svg = find(".break-arcs"), STEP = 21, TOP = 34;
    svg.replaceChildren();
    const words = [...own().read, ...entry("right").written.slice(0, 4)];
    svg.setAttribute("viewBox", `0 0 320 ${TOP + STEP * words.length}`);
    made("text", svg, { x: 2, y: 14 }, "right");
    made("text", svg, { x: 318, y: 14, class: "end" }, table.labels[name]);
    words.forEach((text, n) => {
      const kind = n < own().read.length ? "middle" : "middle new";
      made("text", svg, { x: 160, y: TOP + STEP * n + 5, class: kind }, word(text).trim());
    });
    const share = { right: 0, [name]: 0 };
    for (const [side, which] of [[-1, "right"], [1, name]]) {
      const { weights } = entry(which), skip = words.length - weights.length;
      weights.forEach((row, i) => row.forEach((percent, j) => {
        if (i && j === i - 1) share[which] += percent / (weights.length - 1);
        if (percent < 10) return;
        const x = 160 + 48 * side, from = TOP + STEP * (i + skip), to = TOP + STEP * (j + skip);
        const style = `stroke-width: ${0.5 + percent / 25}; opacity: ${0.25 + (0.75 * percent) / 100}`;
        if (i === j) made("circle", svg, { cx: x + 5 * side, cy: from, r: 3, style, class: "arc" });
        else {
          const out = x + side * Math.min(145, 8 + 11 * (i - j));
          made("path", svg, { d: `M${x} ${from}C${out} ${from} ${out} ${to} ${x} ${to}`, style, class: "arc" });
        }
      }));
    }
    const part = (which) => `${Math.round(share[which])}%`;
    svg.setAttribute("aria-label", `Attention of head 3 of layer 2. Mean weight on the word before: right ${part("right")}, ${table.labels[name]} ${part(name)}.`);
  };

  // ---- what the reader sets ---------------------------------------------------------------------

  const every = () => {
    all.querySelector("caption q").textContent = own().text;
    for (const row of all.querySelectorAll("tbody tr")) {
      const { written, wrong, loss } = entry(row.dataset.mistake);
      const cell = row.children[3];
      cell.replaceChildren(...written.map((text, n) => {
        if (n !== wrong) return word(text);
        return Object.assign(document.createElement("mark"), { textContent: word(text) });
      }));
      row.children[1].textContent = number(loss);
    }
  };

  const about = () => {
    for (const one of abouts) {
      const name = one.dataset.mistake;
      one.hidden = name !== mistake();
      one.querySelector("pre").textContent = table.commands[name].replace("TEXT", own().text);
    }
    every();
  };

  const show = () => {
    const name = mistake();
    shown.hidden = false;
    find(".break-seen").textContent = find(".break-verdict").textContent = "";
    numbers(name);
    clocks(name);
    arcs(name);
    play([column("right", "right"), column("broken", name)], () => {
      find(".break-seen").textContent = seen(name);
      find(".break-verdict").textContent = verdict();
    });
  };

  const keep = () => history.replaceState(null, "", `#sentence=${Number(sentence.value) + 1}&mistake=${mistake()}`);

  // What stands in the address; true if it says something that this page knows.
  const take = () => {
    const said = new URLSearchParams(location.hash.slice(1));
    const n = Number(said.get("sentence") ?? 1) - 1, name = said.get("mistake");
    if (!table.sentences[n] || !(name in table.labels)) return false;
    sentence.value = n;
    form.elements.mistake.value = name;
    return true;
  };

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    keep();
    show();
    const below = shown.getBoundingClientRect().top > innerHeight / 2; // the button alone would seem to do nothing
    if (below) shown.scrollIntoView({ behavior: calm.matches ? "instant" : "smooth" });
  });
  form.addEventListener("change", ({ target }) => {
    about();
    if (shown.hidden) return;
    if (target === bet) find(".break-verdict").textContent = verdict();
    else {
      keep();
      show();
    }
  });
  addEventListener("hashchange", () => {
    if (!take()) return;
    about();
    show();
  });

  form.elements.mistake.value = "shift";
  const linked = take();
  find(".break-why").append(...abouts);
  form.hidden = false;
  all.open = false;
  about();
  if (linked) show();
})();

// The reader's own words: Python in the page lets the book's small decoder continue them.
(() => {
  const form = document.querySelector("form.break-own");
  if (!form || !window.peLive?.available) return;
  const said = form.querySelector(".break-own-said");
  const list = form.querySelector("dl");
  const size = () => (peLive.started() ? "" : `The first time fetches Python, ${peLive.size} MB.`);
  let asked = 0;

  const put = (place, { written, surprise }, other) => {
    const differs = [...written].findIndex((letter, n) => letter !== other[n]);
    place.replaceChildren(...[...written].map((letter, n) => {
      const kind = n === differs ? "mark" : "span";
      const one = Object.assign(document.createElement(kind), { textContent: letter, title: `${surprise[n].toFixed(2)} nats` });
      one.style.setProperty("--surprise", Math.min(1, surprise[n] / 8));
      return one;
    }));
  };

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const mine = (asked += 1);
    const [text, mistake] = [form.querySelector("input").value, form.querySelector("select").value];
    const label = form.querySelector("option:checked").textContent;
    said.textContent = `Python is computing. ${size()}`;
    let shown;
    try {
      shown = await peLive.call(`__import__("pe_numpy.book.own_words", fromlist=["continued"]).continued(${JSON.stringify(text)}, "${mistake}")`);
    } catch (error) {
      shown = { error: `Python in the page says: ${error.message ?? error}` };
    }
    if (mine !== asked) return;
    list.hidden = "error" in shown;
    if (shown.error) {
      said.textContent = shown.error.replace(/^continued: /, "");
      return;
    }
    const { right, broken, loss } = shown;
    const [first, second] = list.querySelectorAll("dd");
    put(first, right, right.written);
    put(second, broken, right.written);
    second.previousElementSibling.textContent = `With the mistake: ${label}`;
    const same = right.written === broken.written ? "All characters are the same. " : "";
    said.textContent = `${same}Loss of the right characters: ${loss.right.toFixed(2)} nats right, ${loss.broken.toFixed(2)} with the mistake. Computed just now, by pe_numpy in this page.`;
  });
  said.textContent = size();
  form.hidden = false;
})();
