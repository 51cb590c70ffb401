// Figures that answer the hand (pe_numpy/book/explore). Python computes all that a figure shows: settings
// that are often wanted beforehand, when the book is built, any others in the page, if Python can run
// there (window.peLive). This script reads the controls, and puts what Python says in its places.
(() => {
  const calm = matchMedia("(prefers-reduced-motion: reduce)");
  const live = () => Boolean(window.peLive?.available);

  const call = (name, ...given) => {
    const words = given.map((one) => JSON.stringify(one)).join();
    return window.peLive.call(`__import__("pe_numpy.book.explore", fromlist=["${name}"]).${name}(${words})`);
  };

  // The text of a file. Python reads .npy, which comes to it as base64.
  const textOf = async (file) => {
    if (!file.name.endsWith(".npy")) return (await file.text()).trim();
    if (file.size > 1e6) throw new Error("it is larger than a megabyte; rows of one head are wanted");
    const bytes = new Uint8Array(await file.arrayBuffer());
    const { rows, error } = await call("from_npy", btoa([...bytes].map((n) => String.fromCharCode(n)).join("")));
    if (error) throw new Error(error);
    return rows;
  };

  const wake = (box) => {
    const table = JSON.parse(box.querySelector("script").textContent);
    const fields = [...box.querySelectorAll("[data-name]")];
    const names = [...new Set(fields.map((field) => field.dataset.name))];
    const slides = [...box.querySelectorAll("[data-slides]")];
    const source = box.querySelector("[data-source]");
    const built = source?.textContent;
    const field = (name) => fields.find((one) => one.dataset.name === name);

    // What is set: the texts of all controls; cells of one row stand in one line.
    const value = (name) => {
      const own = fields.filter((one) => one.dataset.name === name);
      return own.map((one, i) => {
        const row = one.dataset.row;
        return (i ? (row === own[i - 1].dataset.row ? " " : "\n") : "") + one.value.trim();
      }).join("");
    };

    const say = (words) => {
      if (source) source.textContent = words;
    };
    const put = (key, words) => {
      const [name, attribute] = key.split("@");
      const place = box.querySelector(`[data-key="${name}"]`);
      if (place && attribute) place.setAttribute(attribute, words);
      else if (place) place.textContent = words;
    };
    const show = (state, where) => {
      box.classList.toggle("explore-wrong", "error" in state);
      if ("error" in state) put("note", state.error);
      else Object.entries(state).forEach(([key, words]) => put(key, words));
      box.dataset.shows = setting();
      say(where);
    };

    // One question to Python at a time; of those that came meanwhile, the last is asked.
    const setting = () => names.map(value).join("|");
    let busy = false;
    const ask = async () => {
      if (busy) return;
      busy = true;
      let asked, state;
      do {
        asked = setting();
        const given = Object.fromEntries(names.map((name) => [name, value(name)]));
        say("Python is computing; its first start takes some seconds.");
        try {
          state = await call("state", box.dataset.explore, given);
        } catch (error) {
          state = { error: `Python in the page says: ${error.message ?? error}` };
        }
      } while (asked !== setting() && !(setting() in table.states));
      busy = false;
      if (asked === setting()) show(state, "Computed just now, by pe_numpy in this page.");
    };

    const update = () => {
      for (const slide of slides) {
        const words = field(slide.dataset.slides).value;
        const at = JSON.parse(slide.dataset.values).indexOf(words);
        if (at >= 0) slide.value = at;
        slide.setAttribute("aria-valuetext", words);
      }
      const found = table.states[setting()];
      if (found) {
        const words = (key, i) => [key, found[i] === 0 ? table.first[i] : found[i]];
        const state = Object.fromEntries(table.keys.map(words));
        show({ ...standing, ...state }, built);
      } else if (live()) ask();
      else nearest();
    };

    // Without Python, what is typed becomes the nearest value that was computed beforehand.
    const nearest = () => {
      for (const slide of slides) {
        const typed = field(slide.dataset.slides);
        const off = (words) => Math.abs(Number(words) - Number(typed.value));
        const all = JSON.parse(slide.dataset.values);
        typed.value = all.reduce((best, words) => (off(words) < off(best) ? words : best));
      }
      if (setting() in table.states) update();
      say("The nearest that was computed beforehand: this copy of the book has no Python in its pages.");
    };

    // The table has only what changes in it; Python may change more. So keep how all looked at first.
    const standing = {};
    for (const place of box.querySelectorAll("[data-key]")) {
      const name = place.dataset.key;
      if (/^(text|p|td)$/.test(place.localName)) standing[name] = place.textContent;
      if (place.closest("svg")) {
        for (const one of place.attributes) standing[`${name}@${one.name}`] = one.value;
      }
    }

    const step = (by) => {
      const slide = slides[0];
      slide.value = Number(slide.value) + by;
      slide.dispatchEvent(new Event("input", { bubbles: true }));
    };
    const play = box.querySelector("[data-do=play]");
    let timer = 0;
    const note = box.querySelector("[data-key=note]");
    const rest = () => {
      clearInterval(timer);
      note.ariaLive = "polite";
      timer = 0;
      play.textContent = "Play";
    };
    const run = () => {
      const slide = slides[0];
      if (slide.value === slide.max) step(-slide.max);
      note.ariaLive = "off"; // nobody could listen so fast
      const pace = Number(box.dataset.interval);
      timer = setInterval(() => {
        step(1);
        if (slide.value === slide.max) rest();
      }, calm.matches ? Math.max(pace, 1000) : pace);
      play.textContent = "Pause";
    };

    box.addEventListener("input", ({ target }) => {
      if (!target.dataset.slides) return; // what is typed counts when it is complete
      field(target.dataset.slides).value = JSON.parse(target.dataset.values)[target.value];
      update();
    });
    box.addEventListener("change", async ({ target }) => {
      if (target.type === "file" && target.files.length) {
        const [file] = target.files;
        say(`Reading ${file.name} …`);
        try {
          field(target.dataset.into).value = await textOf(file);
        } catch (error) {
          return show({ error: `${file.name}: ${error.message}` }, "");
        }
      }
      if (!target.dataset.slides) update();
    });
    box.addEventListener("click", ({ target }) => {
      const what = target.dataset.do;
      if (what && what !== "play") {
        if (timer) rest();
        step(what === "back" ? -1 : 1);
      } else if (what) timer ? rest() : run();
    });

    box.dataset.shows = setting();
    box.querySelector(".explore-controls").hidden = false;
    for (const one of box.querySelectorAll("[data-live]")) one.disabled = !live();
    if (!live() && box.querySelector("[data-live]")) {
      say(`${built} Grey fields need Python in the page, which this copy of the book has not.`);
    }
    if ("plays" in box.dataset && !calm.matches) run();
  };

  addEventListener("load", () => document.querySelectorAll("figure.explore").forEach(wake));
})();
