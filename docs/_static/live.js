// Python in the page. `peLive` is what cells and figures share:
//   available         whether the runtime was built into this site; size: its megabytes
//   started()         whether Python is there; fetched(): whether its files are
//   draws(code)       whether code needs matplotlib
//   ready()           a promise: Python has started (the first call starts it)
//   run(code, {fresh, number, part})  a promise of {text, figures, error}; fresh: without earlier
//                     names; number: of a cell, which sees the names before it; part: told at once
//   call(expression)  a promise of its value as JSON; knows `np` and `pe_numpy`
//   warm(draws)       starts Python, and fetches matplotlib, before it is asked for
//   begin()           forgets the names of all cells
//   edit(area, run)   makes a field one for code; returns what fits its height to its text
//   stop()            ends Python: all names are gone
(() => {
  const here = document.currentScript;
  const folder = new URL("live/", here.src).href;
  const packs = {}; // name of a script in `live/`: its files
  const fetching = {};
  let worker, started, drawing;
  let spare; // a promise of a second worker, so that the next run after `stop` need not wait
  let asked = 0;
  let era = 0; // how often Python was ended
  let waiting = new Map(); // what the worker was asked: id to promise
  let state = ""; // what happens now

  const say = (text) => {
    state = text;
    dispatchEvent(new CustomEvent("pelive", { detail: text }));
  };

  // Files come as scripts, since a page that is opened without a server may load nothing else.
  const fetchPack = (name) =>
    (fetching[name] ??= new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = `${folder}${name}.js`;
      script.onload = () => resolve(packs[name]);
      script.onerror = () => {
        delete fetching[name];
        reject(new Error(`${name}.js could not be fetched`));
      };
      document.head.append(script);
    }));

  const ask = (task, more = {}, part = () => {}, one = worker) =>
    new Promise((resolve, reject) => {
      asked += 1;
      waiting.set(asked, { resolve, reject, part, one });
      one.postMessage({ id: asked, task, ...more });
    });

  const heard = ({ data }) => {
    const { resolve, reject, part } = waiting.get(data.id) ?? {};
    if (data.part) return part?.(data.part);
    waiting.delete(data.id);
    if ("failed" in data) reject?.(new Error(data.failed));
    else resolve?.(data.value);
  };

  // End Python; whoever waits for it is told why.
  const fail = (why) => {
    era += 1;
    worker?.terminate();
    for (const [id, { reject, one }] of waiting) {
      if (one !== worker) continue;
      waiting.delete(id);
      reject(new Error(why));
    }
    worker = started = drawing = undefined;
    say("");
  };

  // A worker in which Python has started.
  const launch = async (said) => {
    said("fetching Python …");
    const [python, numpy, book] = await Promise.all(["python", "numpy", "book"].map(fetchPack));
    const { "live-worker.js": code, ...rest } = book;
    const text = await new Response(
      (await fetch(`data:;base64,${code}`)).body.pipeThrough(new DecompressionStream("gzip")),
    ).blob();
    const one = new Worker(URL.createObjectURL(new Blob([text], { type: "text/javascript" })));
    one.onmessage = heard;
    one.onerror = (event) => {
      if (one === worker) fail(event.message || "the worker could not start");
      else spare = undefined; // it takes over only if it is well
    };
    said("starting Python …");
    const ready = ask("start", { given: { ...python, ...numpy, ...rest } }, undefined, one);
    ready.catch(() => {}); // whoever waits for it is told
    return [one, ready];
  };

  const start = async () => {
    const mine = era;
    let ready = spare && (await spare);
    spare = undefined;
    ready ??= await launch(say);
    if (mine !== era) {
      ready[0].terminate();
      throw new Error("stopped");
    }
    worker = ready[0];
    await ready[1];
    say("");
  };

  // While a cell runs long, the reader may stop it. Memory for two is asked of a machine with a
  // pointer that does not say that it is small.
  const roomy = () => matchMedia("(hover: hover)").matches && !(navigator.deviceMemory < 8);
  const addSpare = () => {
    if (!spare && roomy()) spare = launch(() => {}).catch(() => undefined);
  };

  const draws = /\bmatplotlib\b|\bplots\b|\bplt\b/;
  const addFigures = async () => {
    say("fetching matplotlib …");
    await ask("draw", { given: await fetchPack("matplotlib") });
    say("");
  };

  window.peLive = {
    available: Number(here.dataset.live) > 0,
    size: Number(here.dataset.live),
    draws: (code) => draws.test(code),
    started: () => Boolean(worker),
    fetched: () => "python" in packs,
    state: () => state,
    take: (name, files) => (packs[name] = files),
    ready() {
      if (!this.available) return Promise.reject(new Error("this book was built without Python"));
      const mine = era;
      started ??= start().catch((error) => {
        if (mine === era) fail(error.message);
        throw error;
      });
      return started;
    },
    // On a metered or slow line nothing is fetched before it is asked for.
    warm(draws) {
      const { saveData, type, effectiveType = "4g" } = navigator.connection ?? {};
      if (!this.available || saveData || type === "cellular" || effectiveType !== "4g") return;
      const ahead = async () => {
        await this.ready();
        if (draws) await (drawing ??= addFigures());
      };
      ahead().catch(() => {}); // a run that fails says why
    },
    // Forget the names of all cells.
    async begin() {
      await this.ready();
      return ask("fresh");
    },
    async run(code, { fresh = false, number = 0, part = () => {} } = {}) {
      await this.ready();
      if (draws.test(code)) await (drawing ??= addFigures());
      if (fresh) await this.begin();
      const result = { text: "", figures: [], error: null };
      const long = setTimeout(addSpare, 2000);
      await ask("run", { code, number }, (one) => {
        if (one.kind === "text") result.text += one.data;
        if (one.kind === "figure") result.figures.push(`data:image/png;base64,${one.data}`);
        if (one.kind === "error") result.error = one.data;
        part(one);
      }).finally(() => clearTimeout(long));
      return result;
    },
    async call(expression) {
      await this.ready();
      const long = setTimeout(addSpare, 2000);
      return ask("call", { code: expression }).finally(() => clearTimeout(long));
    },
    // Tab leaves the field; Enter keeps the indentation, and runs with Ctrl, Cmd or Shift.
    edit(area, run) {
      const fit = () => (area.rows = area.value.split("\n").length);
      area.spellcheck = false;
      for (const off of ["autocapitalize", "autocomplete", "autocorrect"]) area.setAttribute(off, "off");
      area.addEventListener("input", fit);
      area.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" || event.isComposing) return;
        if (event.ctrlKey || event.metaKey || event.shiftKey) run();
        else {
          const indent = /[ ]*/.exec(area.value.slice(0, area.selectionStart).split("\n").at(-1))[0];
          document.execCommand("insertText", false, `\n${indent}`); // so that undo knows it
        }
        event.preventDefault();
      });
      fit();
      return fit;
    },
    stop: () => fail("stopped"),
  };
})();
