// The sandbox of the page "Break a real model": a score that the reader writes, and what the detector
// of chapter 70 finds of it, in the page's Python. The address holds the code: #score=... (base64url
// of UTF-8). Code that came with a link is shown, and runs when the reader asks for it.
(() => {
  const form = document.querySelector("form.sandbox");
  if (!form || !window.peLive?.available) return;
  const examples = JSON.parse(form.querySelector("script").textContent);
  const choice = form.querySelector("select");
  const area = form.querySelector("textarea");
  const [go, copy] = form.querySelectorAll("button");
  const status = form.querySelector("[role=status]");
  const list = form.querySelector("dl");
  const say = (text) => { status.textContent = text; };
  const make = (tag, text, parent, more = {}) => {
    const one = Object.assign(document.createElement(tag), { textContent: text, ...more });
    parent.append(one);
    return one;
  };

  // ---- the address ------------------------------------------------------------------------------

  const KEY = "#score=";
  const pack = (text) => {
    const letters = [...new TextEncoder().encode(text)].map((byte) => String.fromCharCode(byte));
    return btoa(letters.join("")).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
  };
  const unpack = (word) => {
    const letters = atob(word.replaceAll("-", "+").replaceAll("_", "/"));
    return new TextDecoder("utf-8", { fatal: true }).decode(Uint8Array.from(letters, (one) => one.charCodeAt(0)));
  };
  const keep = () => {
    const hash = KEY + pack(area.value);
    history.replaceState(null, "", hash);
    return location.href.split("#")[0] + hash;
  };

  // ---- the editor -------------------------------------------------------------------------------

  let mine = ""; // what is no example
  const fetches = () => (peLive.started() ? "" : `The first check fetches Python, ${peLive.size} MB.`);
  const put = (text, name = "") => {
    area.value = text;
    choice.value = name;
    if (!name) mine = text;
    choice.options[0].hidden = !mine;
    list.replaceChildren();
    fit();
  };

  // ---- the passport -----------------------------------------------------------------------------

  const row = (question, word, sentence) => {
    make("dt", question, list);
    const place = make("dd", "", list);
    if (word) make("b", `${word[0].toUpperCase()}${word.slice(1)}. `, place);
    place.append(sentence);
    return place;
  };
  const show = ({ rows, notes, like, unlike, calls }, seconds) => {
    for (const note of notes) row("Note", "", note);
    for (const [question, [word, sentence]] of Object.entries(rows)) row(question, word, sentence);
    const [first, ...others] = like;
    const place = row("It resembles", "", "");
    make("a", first.label, make("b", "", place), { href: `chapters/${first.chapter}.html` });
    place.append(" (");
    make("a", "card", place, { href: `chapters/CARDS.html#${first.name}` });
    place.append(`). ${unlike.length ? `It differs in ${unlike.join(", ").replace(/, (?=[^,]*$)/, " and ")}.` : "All tests agree."}`);
    if (others.length) place.append(` As near: ${others.map((one) => one.label).join(", ")}.`);
    say(`Measured in ${seconds.toFixed(1)} s, by ${calls.toLocaleString("en")} calls of your function.`);
  };

  const check = peTask({
    button: go,
    label: "▶ Check",
    say,
    doing: "Measuring …",
    late: "Still measuring after 5 s.",
    seconds: 5,
    begin() {
      list.replaceChildren();
      keep();
    },
    async work() {
      await peLive.call('__import__("pe_numpy.book.passport") and 0');
      const start = performance.now();
      const found = await peLive.call(`__import__("pe_numpy.book.passport", fromlist=["passport"]).passport(${JSON.stringify(area.value)})`);
      if ("error" in found) {
        say("No passport: ");
        found.error.split("`").forEach((part, n) => make(n % 2 ? "code" : "span", part, status));
      }
      else show(found, (performance.now() - start) / 1000);
    },
  });

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    check.press();
  });
  copy.addEventListener("click", async () => {
    await peCopy(keep(), copy);
    say("Copied. The link holds your code.");
  });
  choice.addEventListener("change", () => {
    put(choice.value ? examples[choice.value] : mine, choice.value);
    say(fetches());
  });
  const fit = peLive.edit(area, check.run);
  area.addEventListener("input", () => {
    mine = area.value;
    choice.options[0].hidden = false;
    choice.value = "";
    if (list.children.length) say("The code has changed since. Check it again.");
  });
  form.addEventListener("focusin", () => peLive.started() || peLive.warm(false));

  // Code that came with the address.
  const take = () => {
    if (!location.hash.startsWith(KEY)) return false;
    check.stop();
    try {
      put(unpack(location.hash.slice(KEY.length)));
      say(`This code came with the address. Read it before you press Check: it will run in this page. ${fetches()}`);
    } catch {
      say("The code in this address cannot be read, so it was cut or changed. Ask for the link again.");
    }
    form.scrollIntoView();
    return true;
  };
  put(examples.RoPE, "RoPE");
  say(fetches());
  form.hidden = false;
  addEventListener("hashchange", take);
  if (take()) addEventListener("load", () => form.scrollIntoView());
})();
