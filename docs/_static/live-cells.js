// Each code cell of a chapter can be run, edited and reset; see `live.js`.
addEventListener("DOMContentLoaded", () => {
  if (!window.peLive?.available) return;
  const make = (tag, className, text = "") => {
    const element = document.createElement(tag);
    element.className = className;
    element.textContent = text;
    return element;
  };
  const lasting = (seconds) =>
    seconds < 90 ? `about ${Math.ceil(seconds / 5) * 5} s` : `about ${Math.round(seconds / 60)} min`;
  const LONG = 3; // seconds: a shorter cell needs no word about it

  let ran = []; // the code with which the first cells ran, one after the other
  let running = null; // the cell that the reader asked for

  class Cell {
    constructor(box, index) {
      this.box = box;
      this.number = index + 1;
      this.input = box.querySelector(".cell_input");
      this.pre = this.input.querySelector("pre");
      this.committed = this.pre.textContent.replace(/\n$/, "");
      this.seconds = Number(box.dataset.seconds ?? 0);
      this.note = box.dataset.note ?? ""; // why it differs here from the book
      this.button("play", "▶ Run", `Run cell ${this.number}`, () => (running ? stop() : run(this)));
      this.input.addEventListener("pointerenter", (event) => event.pointerType === "mouse" && this.warm());
      this.input.addEventListener("focusin", () => this.warm());
      this.button("edit", "Edit", `Edit cell ${this.number}`, () => this.open());
      this.button("reset", "Reset", `Reset cell ${this.number}`, () => this.reset()).hidden = true;
      this.status = make("span", "live-status");
      this.status.setAttribute("role", "status");
      this.bar = make("div", "live");
      const tools = this.input.querySelector(".code-tools"); // of `book.js`: wrap and copy
      this.bar.append(this.play, this.edit, this.reset_, ...(tools ? [tools] : []), this.status);
      this.input.append(this.bar);
    }

    button(name, text, label, does) {
      const button = make("button", "", text);
      button.type = "button";
      button.setAttribute("aria-label", label);
      button.addEventListener("click", does);
      return (this[name === "reset" ? "reset_" : name] = button);
    }

    get code() {
      return this.area?.value ?? this.committed;
    }

    // Whoever is near a cell may run it: start Python, where that costs the reader nothing.
    warm() {
      if (!peLive.started()) peLive.warm(cells.slice(0, this.number).some((cell) => peLive.draws(cell.code)));
    }

    say(text) {
      this.status.textContent = text;
    }

    // Let the reader change the code.
    open() {
      if (this.area) return this.area.focus();
      const area = make("textarea", "live-code");
      area.value = this.committed;
      area.setAttribute("aria-label", `Code of cell ${this.number}`);
      peLive.edit(area, () => run(this));
      area.addEventListener("input", () => area.classList.remove("live-wrong"));
      this.area = area;
      this.pre.hidden = true;
      this.pre.after(area);
      this.edit.hidden = true;
      this.reset_.hidden = false;
      area.focus();
      this.say("Ctrl+Enter runs");
    }

    // Back to what is printed in the book: code, output and figures.
    reset() {
      if (running) return;
      const changed = this.code !== this.committed;
      this.area?.remove();
      this.area = undefined;
      this.pre.hidden = this.edit.hidden = false;
      if (this.held) this.output.replaceChildren(...this.held);
      if (this.made) this.output.remove();
      this.held = this.made = this.output = undefined;
      if (changed) this.result = undefined;
      this.reset_.hidden = true;
      this.mark();
      this.box.classList.remove("live-old");
      this.say(changed ? "as in the book; the next run uses this code again" : "");
      this.play.focus();
    }

    // Whether it printed something else than what the book has.
    get differs() {
      const book = [...this.box.querySelectorAll(".cell_output pre")].map((pre) => pre.textContent);
      const words = (text) => text.replace(/\s+/g, "");
      return this.result.error || words(this.result.text) !== words(book.join(""));
    }

    count({ kind, data }) {
      if (kind === "text") this.result.text += data;
      if (kind === "figure") this.result.figures += 1;
      if (kind === "error") this.result.error = data;
      if (kind === "wrong") this.result.wrong = JSON.parse(data);
      if (kind === "held") Object.assign(this.result, JSON.parse(data));
    }

    // What its assertions said, in a few words.
    get verdict() {
      const { wrong, held } = this.result ?? {};
      if (!held) return "";
      if (wrong) return `✗ ${wrong.line ? `line ${wrong.line}: ` : ""}${wrong.words}`;
      const own = held.filter((place) => place.startsWith(`<cell ${this.number}>`)).length;
      return own ? `✓ ${own === 1 ? "1 assertion holds" : `${own} assertions hold`}` : "";
    }

    // Mark the line that failed.
    mark() {
      for (const code of [this.pre, this.area]) {
        code?.classList.toggle("live-wrong", Boolean(this.result?.wrong?.line));
        code?.style.setProperty("--line", this.result?.wrong?.line ?? 0);
      }
    }

    // Clear the place where output goes; the book's own is kept for `reset`.
    clear() {
      this.drawn = 0;
      this.output ??= this.box.querySelector(".cell_output");
      if (!this.output) {
        this.output = make("div", "cell_output docutils container");
        this.input.after(this.output);
        this.made = true;
      }
      this.held ??= [...this.output.childNodes];
      this.output.replaceChildren();
      this.box.closest("details.second")?.setAttribute("open", ""); // what is new is seen
      this.reset_.hidden = false;
    }

    show({ kind, data }) {
      const last = this.output.lastElementChild;
      if (kind === "text") {
        const before = last?.classList.contains("stream") && last.querySelector("pre");
        if (before) before.append(data);
        else this.add("output stream highlight-myst-ansi notranslate").append(make("pre", "", data));
      } else if (kind === "figure") {
        const images = this.held.filter((node) => node.matches?.("img, .drawn"));
        const image = images[this.drawn++];
        const drawn = new Image();
        drawn.alt = image?.alt || image?.querySelector(".whole").getAttribute("aria-label") || `Figure ${this.drawn} of cell ${this.number}`;
        drawn.src = `data:image/png;base64,${data}`;
        this.output.append(drawn);
      } else if (kind === "html") {
        const box = this.add("output text_html");
        box.innerHTML = data;
        for (const script of box.querySelectorAll("script")) {
          const again = document.createElement("script"); // one that is only put in does not run
          again.type = script.type;
          again.textContent = script.textContent;
          script.replaceWith(again);
        }
      } else if (kind === "error") {
        const failed = /^AssertionError/m.test(data);
        const box = this.add("output live-error");
        box.append(make("p", "", failed ? "An assertion failed." : "The cell stopped with an error."));
        box.append(make("pre", "", data));
      }
    }

    add(className) {
      const box = make("div", className);
      this.output.append(box);
      return box;
    }
  }

  const stop = () => {
    ran = [];
    peLive.stop();
  };

  // The first cell that has to run before another, or with it.
  const from = (cell) => {
    const changed = ran.findIndex((code, n) => code !== cells[n].code);
    return Math.min(changed < 0 ? ran.length : changed, cell.number - 1);
  };

  // Say beforehand how long a run takes, if it is long.
  const foretell = () => {
    for (const cell of cells) {
      const above = cells.slice(from(cell), cell.number - 1);
      const first = above.reduce((sum, one) => sum + one.seconds, 0);
      const words = cell.seconds >= LONG ? [lasting(cell.seconds)] : [];
      if (first >= LONG) words.push(`${lasting(first)} for the cells above`);
      const takes = words.length ? `takes ${words.join(", and ")}` : "";
      const old = cell.box.matches(".live-old") ? "ran before a cell above was changed: run it again" : "";
      const fetches = peLive.fetched() ? "" : `the first run fetches ${peLive.size} MB`;
      cell.say([old || cell.verdict, takes, cell.note].filter(Boolean).join("; ") || fetches);
    }
  };

  // What the cells below have shown came from names that are no more.
  const age = (n) => {
    for (const cell of cells.slice(n)) {
      if (!cell.result) continue;
      cell.box.classList.add("live-old");
    }
  };

  // At the end: how many assertions of the chapter held, of those that can hold in a page.
  const end = make("p", "live-end");
  end.setAttribute("role", "status");
  const conclude = () => {
    if (ran.length < cells.length || cells.some((cell) => cell.box.matches(".live-old"))) {
      end.textContent = "";
      return;
    }
    const able = cells.filter((cell) => !cell.note);
    const all = able.reduce((sum, cell) => sum + cell.result.all, 0);
    const held = new Set(cells.flatMap((cell) => cell.result.held)); // some by a cell further down
    const own = [...held].filter((place) => able.some((cell) => place.startsWith(`<cell ${cell.number}>`)));
    end.textContent = `${own.length} of the ${all} assertions that can run here held.`;
  };

  // Run a cell and show what it gives. One above that shows what the book shows is left alone.
  const show = async (cell, asked) => {
    const book = cells.slice(0, cell.number).every((one) => one.code === one.committed);
    const quiet = book && !asked && !cell.held;
    const parts = [];
    cell.result = { text: "", figures: 0, error: null, wrong: null, held: [], all: 0 };
    if (!quiet) cell.clear();
    if (asked) cell.output.closest("details")?.setAttribute("open", "");
    const part = (one) => {
      cell.count(one);
      if (quiet) parts.push(one);
      else cell.show(one);
    };
    const { error } = await peLive.run(cell.code, { number: cell.number, part });
    if (quiet && cell.differs) {
      cell.clear();
      for (const one of parts) cell.show(one);
    }
    cell.mark();
    cell.box.classList.remove("live-old");
    return error;
  };

  const run = async (cell) => {
    if (running) return;
    running = cell;
    cell.play.textContent = "■ Stop";
    cell.play.setAttribute("aria-label", "Stop");
    const told = ({ detail }) => detail && cell.say(detail);
    addEventListener("pelive", told);
    let words = "";
    let start;
    try {
      await peLive.ready();
      if (!ran.length) await peLive.begin();
      for (let n = from(cell); n < cell.number; n++) {
        const one = cells[n];
        const long = one.seconds >= LONG ? `, ${lasting(one.seconds)}` : "";
        cell.say(one === cell ? `running${long} …` : `running cell ${n + 1} of ${cell.number}${long} …`);
        if (ran[n] !== undefined && ran[n] !== one.code) age(n + 1);
        ran.length = n;
        start = performance.now();
        const error = await show(one, one === cell);
        if (error && one !== cell) words = `cell ${n + 1}, above, stopped with an error`;
        if (error && one.code !== one.committed) break;
        ran[n] = one.code; // the book's own code may fail here alone (see its note): go on
      }
      const took = `ran in ${((performance.now() - start) / 1000).toFixed(1)} s`;
      words ||= [cell.verdict, cell.note || took].filter(Boolean).join(" · ");
    } catch (error) {
      const why = error.message === "stopped" ? "stopped" : `Python ended (${error.message})`;
      words = `${why}: all names are gone, and the next run begins with the cells above`;
      stop();
    }
    removeEventListener("pelive", told);
    running = null;
    cell.play.textContent = "▶ Run";
    cell.play.setAttribute("aria-label", `Run cell ${cell.number}`);
    foretell();
    cell.say(words);
    conclude();
    dispatchEvent(new Event("resize")); // what is wide is marked: see `book.js`
  };

  const boxes = [...document.querySelectorAll(".bd-article div.cell")];
  const cells = boxes
    .filter((box) => box.querySelector(".cell_input pre"))
    .map((box, index) => new Cell(box, index));
  peLive.cells = cells;
  cells.at(-1)?.input.querySelector(".live").after(end);
  foretell();
});
