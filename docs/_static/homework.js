// Homework written in the page: an editor for each stub, the book's checker in the browser's Python,
// and what is done, kept in this browser alone. The address opens an editor: #write-31_shaw.
(() => {
  const box = document.querySelector("section.homework");
  if (!box || !peLive.available) return;
  const KEY = "homework";
  const desk = box.querySelector(".homework-desk");
  const progress = box.querySelector(".homework-progress");
  const make = (tag, more = {}, parent = null) => {
    const one = Object.assign(document.createElement(tag), more);
    parent?.append(one);
    return one;
  };

  // By stub: the functions it asks for, its code, and its hints.
  const stubs = {};
  for (const { dataset, textContent } of document.querySelectorAll("script[data-stub]")) {
    const [code, hints = ""] = textContent.replace(/^\n/, "").split(/^# ---- hints -+\n/m);
    stubs[dataset.stub] = { code: `${code.trimEnd()}\n`, hints, names: [...code.matchAll(/^def (\w+)/gm)].map((m) => m[1]) };
  }

  // What this browser keeps, by stub: a text that differs from the stub's, and functions that were right.
  let keeps = true;
  let kept = {};
  try {
    kept = JSON.parse(localStorage.getItem(KEY) ?? "{}");
    localStorage.setItem(KEY, JSON.stringify(kept));
  } catch { // a browser that keeps nothing, or something else under this name
    keeps = false;
  }
  if (typeof kept !== "object" || !kept) kept = {};
  const own = (stem) => (kept[stem] ??= {});
  const right = (stem) => stubs[stem].names.filter((name) => kept[stem]?.right?.includes(name));
  const keep = () => {
    try {
      localStorage.setItem(KEY, JSON.stringify(kept));
    } catch {
      keeps = false;
    }
  };

  // Ticks in the table, and the line for the teacher.
  const show = () => {
    const done = [];
    for (const place of document.querySelectorAll(".homework-open")) {
      const stem = place.dataset.stub;
      const names = right(stem);
      const link = place.firstChild ?? make("a", { href: `#write-${stem}` }, place);
      link.textContent = kept[stem]?.text === undefined ? "Write" : "Write on";
      link.setAttribute("aria-label", `${link.textContent}: ${stem}.py, ${names.length} of ${stubs[stem].names.length} right`);
      for (const code of place.closest("tr").querySelectorAll("td:last-child code")) {
        code.querySelector(".homework-tick")?.remove();
        if (names.includes(code.textContent)) code.prepend(make("span", { className: "homework-tick", textContent: "✓ ", title: "right when it was checked here" }));
      }
      if (names.length) done.push(`${stem} ${names.length} of ${stubs[stem].names.length} (${names.join(", ")})`);
    }
    progress.hidden = !done.length;
    const now = new Date();
    const day = [now.getFullYear(), now.getMonth() + 1, now.getDate()].map((n) => String(n).padStart(2, "0")).join("-");
    progress.querySelector("textarea").value = `pe_numpy ${box.dataset.version}, ${day}, checked in a page, not verified (the teacher's run grades): ${done.join("; ")}`;
  };
  progress.querySelector("button").addEventListener("click", async ({ currentTarget }) => {
    await peCopy(progress.querySelector("textarea").value, currentTarget);
    progress.querySelector("[role=status]").textContent = "Copied.";
  });

  let stem = ""; // of the stub that is open
  let before; // the text that was reset

  const title = make("h2", { tabIndex: -1 }, desk);
  const area = make("textarea", { className: "live-code" }, desk);
  const bar = make("div", { className: "live" }, desk);
  const button = (text, does) => {
    const one = make("button", { type: "button", textContent: text }, bar);
    one.addEventListener("click", does);
    return one;
  };
  const status = make("span", { className: "live-status" });
  const say = (text) => { status.textContent = text; };
  status.setAttribute("role", "status");
  const said = make("div", { className: "homework-said" }, desk);
  const hints = make("div", { className: "homework-hints" }, desk);

  const fold = (summary, text, className = "", open = false) => {
    const one = make("details", { className, open });
    make("summary", { textContent: summary }, one);
    make("pre", { textContent: text }, one);
    return one;
  };

  // Show a line of the code, which has no numbers beside it.
  const showLine = (line) => {
    const lines = area.value.split("\n");
    const start = lines.slice(0, line - 1).join("\n").length + (line > 1);
    area.focus();
    area.scrollIntoView({ block: "nearest" });
    area.setSelectionRange(start, start + (lines[line - 1] ?? "").length);
    area.scrollTop = Math.max(0, line - 3) * (area.scrollHeight / lines.length);
  };
  const def = (name) => area.value.split("\n").findIndex((line) => line.startsWith(`def ${name}(`)) + 1;

  // What leads from a message to its line, or to its function, and to its chapter.
  const ways = (text, name = "") => {
    const place = make("p", { className: "homework-ways" });
    const line = Number(/\bline (\d+)/.exec(text)?.[1] ?? 0) || def(name);
    if (line) make("button", { type: "button", textContent: `Go to line ${line}` }, place).addEventListener("click", () => showLine(line));
    const number = /See chapter (\d+)/.exec(text)?.[1];
    const chapter = number && Object.keys(stubs).find((one) => Number(one.slice(0, 2)) === Number(number));
    if (chapter) make("a", { href: `chapters/${chapter}.html`, textContent: `Open chapter ${number}` }, place);
    return place;
  };

  // Each function as the command tells it: its first line, and the others below a fold.
  const tell = ({ head, functions }) => {
    said.replaceChildren();
    for (const line of head) said.append(make("p", { textContent: line }), ways(line));
    let first = true;
    for (const { name, passed, text } of functions) {
      const [line, ...rest] = text.split("\n");
      if (passed) {
        said.append(make("p", { textContent: `✓ ${line}` }));
        continue;
      }
      const unwritten = line === `${name}: it is not written yet`;
      const lines = rest.map((one) => one.replace(/^ {4}/, ""));
      const one = fold(`${unwritten ? "–" : "✗"} ${line}`, lines.join("\n"), "homework-wrong", !unwritten && first);
      one.append(ways(text, name));
      said.append(one);
      first &&= unwritten;
    }
  };

  const seconds = Number(box.dataset.seconds);
  const go = button("▶ Check", () => check.press());
  const check = peTask({
    button: go,
    label: "▶ Check",
    say,
    doing: "Checking …",
    late: `Still checking after ${seconds} s: the command gives a function no more.`,
    seconds,
    begin: () => said.replaceChildren(),
    async work() {
      const mine = stem;
      const found = await peLive.call(`__import__("pe_numpy.homework.in_page", fromlist=["checked"]).checked(${JSON.stringify(area.value)}, "${mine}.py")`);
      const names = found.functions.filter((one) => one.passed).map((one) => one.name);
      own(mine).right = stubs[mine].names.filter((name) => names.includes(name));
      keep();
      tell(found);
      say(found.functions.length ? `${names.length} of ${found.functions.length} right` : "Nothing was checked.");
      show();
    },
  });

  const note = () => {
    if (area.value === stubs[stem].code) delete own(stem).text;
    else own(stem).text = area.value;
    keep();
    reset.textContent = before === undefined ? "Reset to the stub" : "Undo the reset";
    reset.hidden = before === undefined && own(stem).text === undefined;
  };

  const reset = button("Reset to the stub", () => {
    const old = area.value;
    area.value = before ?? stubs[stem].code;
    before = before === undefined ? old : undefined;
    fit();
    note();
    area.focus();
  });
  button("Save the file", () => {
    const href = URL.createObjectURL(new Blob([area.value], { type: "text/x-python" }));
    make("a", { href, download: `${stem}.py` }).click();
    setTimeout(() => URL.revokeObjectURL(href), 10_000);
  });
  button("Close", () => {
    const link = document.querySelector(`.homework-open[data-stub="${stem}"] a`);
    history.pushState(null, "", location.pathname + location.search);
    follow();
    link.focus();
  });
  bar.append(status);
  const fit = peLive.edit(area, check.run);
  area.addEventListener("input", () => {
    before = undefined;
    note();
    show();
  });
  desk.addEventListener("focusin", () => peLive.started() || peLive.warm(false));

  const open = (name) => {
    check.stop();
    stem = name;
    before = undefined;
    desk.hidden = false;
    title.textContent = `Chapter ${stem.slice(0, 2)}: ${stem}.py`;
    area.setAttribute("aria-label", `Code of ${stem}.py`);
    area.value = own(stem).text ?? stubs[stem].code;
    fit();
    note();
    said.replaceChildren();
    hints.replaceChildren();
    for (const name of stubs[stem].names) {
      const told = stubs[stem].hints.split(/\n(?=# \w+, \d+: |\n)/).filter((one) => one.startsWith(`# ${name}, `));
      const lines = told.map((one) => one.slice(name.length + 4).replaceAll(/\n# ?/g, "\n"));
      if (lines.length) hints.append(fold(`Hints for ${name}`, lines.join("\n")));
    }
    const fetches = peLive.started() ? "" : `the first check fetches ${peLive.size} MB`;
    say([fetches, keeps ? "" : "this browser keeps nothing: save the file before you leave"].filter(Boolean).join("; "));
    area.scrollTop = (def(stubs[stem].names[0]) - 1) * (area.scrollHeight / area.rows); // below what is said first
    title.focus({ preventScroll: true });
    desk.scrollIntoView({ block: "start" });
  };
  const follow = () => {
    const name = /^#write-(\w+)$/.exec(location.hash)?.[1];
    if (Object.hasOwn(stubs, name)) open(name);
    else desk.hidden = true;
    show();
  };
  addEventListener("hashchange", follow);
  // Another tab wrote: its text is not overwritten by what this one kept.
  addEventListener("storage", ({ key, newValue }) => {
    if (key !== KEY || !newValue) return;
    const mine = stem && kept[stem];
    kept = { ...JSON.parse(newValue), ...(mine && !desk.hidden ? { [stem]: mine } : {}) };
    show();
  });
  addEventListener("load", () => desk.hidden || desk.scrollIntoView()); // the browser went to the row
  box.hidden = false;
  follow();
})();
