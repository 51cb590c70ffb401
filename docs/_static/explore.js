// Figures that answer the hand (pe_numpy/book/explore). Python computes all that a figure shows: settings
// that are often wanted beforehand, when the book is built, any others in the page, if Python can run
// there (window.peLive). This script reads the controls, and puts what Python says in its places.
// The address has what a reader has set, #toy=rope-clocks&m=8: whatever differs from the beginning.
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

  // A figure in the page; returns a function that sets it as the address says.
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
    const placeOf = (name) => box.querySelector(`[data-key="${name}"]`);
    const put = (key, words) => {
      const [name, attribute] = key.split("@");
      const place = placeOf(name);
      if (place && attribute) place.setAttribute(attribute, words);
      else if (place) place.textContent = words;
    };
    const show = (state, where) => {
      box.classList.toggle("explore-wrong", "error" in state);
      if ("error" in state) put("note", state.error);
      else Object.entries(state).forEach(([key, words]) => put(key, words));
      box.dataset.shows = setting();
      button("compute").hidden = true;
      say(where);
      tell("error" in state);
    };

    // One question to Python at a time; of those that came meanwhile, the last is asked.
    const setting = (given = {}) => names.map((name) => given[name] ?? value(name)).join("|");
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

    // Python is not fetched before the reader does something: `asked`.
    const update = (asked = true) => {
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
      } else if (!live()) nearest();
      else if (asked || peLive.started()) ask();
      else {
        button("compute").hidden = false;
        put("note", "These settings were not computed beforehand: press Compute.");
        if (!peLive.fetched()) say(`It fetches Python, ${peLive.size} MB.`);
      }
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

    const slideTo = (slide, at) => {
      slide.value = at;
      slide.dispatchEvent(new Event("input", { bubbles: true }));
    };
    const step = (by) => slideTo(slides[0], Number(slides[0].value) + by);
    const button = (what) => box.querySelector(`[data-do=${what}]`);
    const play = button("play");
    let timer = 0;
    const note = placeOf("note");
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

    // What the address says.
    const start = Object.fromEntries(names.map((name) => [name, value(name)]));
    const set = (given) => {
      for (const name of names) {
        const own = fields.filter((one) => one.dataset.name === name);
        const words = given[name] ?? start[name];
        own.forEach((one, i) => {
          if (one.disabled) return;
          one.value = own.length > 1 ? words.split(/\s+/)[i] ?? "" : words;
          if (one.selectedIndex === -1) one.value = start[name];
        });
      }
    };
    const keep = () => {
      const said = new URLSearchParams({ toy: box.id });
      for (const name of names) if (value(name) !== start[name]) said.set(name, value(name));
      history.replaceState(null, "", `#${said}`);
    };
    const more = box.querySelector(".explore-controls details");
    const take = () => {
      const said = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
      if (said.toy !== box.id) return;
      if (timer) rest();
      set(said);
      if (names.some((name) => name in said && more?.contains(field(name)))) more.open = true;
      update(false);
      box.scrollIntoView();
    };

    // A move, after a bet or without one: what is measured before and after it.
    const bet = box.querySelector(".explore-bet");
    const seen = box.querySelector(".explore-seen");
    const measured = () => bet.dataset.measure.split(" ").map((name) => placeOf(name).textContent);
    let before, moved; // the measured texts, and the settings of the move
    const tell = (wrong) => {
      if (bet) seen.textContent = wrong || moved !== setting() ? "" : sentence(measured());
      moved = undefined;
    };
    const sentence = (now) => {
      const rise = now.length > 1 ? NaN : parseFloat(now) - parseFloat(before);
      const what = String(now) === String(before) ? "same" : rise > 0 ? "more" : rise < 0 ? "less" : "other";
      const verb = { same: "it stays", more: "it grows", less: "it falls", other: "it changes" }[what];
      const chosen = bet.querySelector("[aria-pressed=true]")?.dataset.bet;
      const so = chosen === what ? ", as you bet" : chosen ? ", and you bet otherwise" : "";
      return `${bet.dataset.subject} was ${before.join(" and ")} and is ${now.join(" and ")}: ${verb}${so}.`;
    };
    const move = () => {
      const change = Object.entries(JSON.parse(button("move").dataset.change));
      const by = (sign) => Object.fromEntries(change.map(([name, to]) =>
        [name, typeof to === "number" ? String(Number(value(name)) + sign * to) : to]));
      // What was computed beforehand comes first, and back is as good as forward.
      const to = [by(1), by(-1)].find((given) => setting(given) in table.states) ?? (live() && by(1));
      if (!to) seen.textContent = "Not all of this was computed beforehand: take other settings first.";
      else if (setting(to) === setting()) seen.textContent = "This is set already: take another setting first.";
      else {
        before = measured();
        set({ ...Object.fromEntries(names.map((name) => [name, value(name)])), ...to });
        moved = setting();
        update();
      }
    };

    // A handle that is dragged moves its slider to where the picture has the handle nearest the pointer.
    const pull = (handle, { clientX, clientY }) => {
      const { drag, key } = handle.dataset;
      const slide = slides.find((one) => one.dataset.slides === drag);
      const all = JSON.parse(slide.dataset.values);
      const part = table.keys.indexOf(`${key}@transform`);
      const shown = handle.getAttribute("transform");
      const off = (at) => {
        if (!(at in all)) return Infinity;
        const to = { [drag]: all[at] };
        const found = table.states[setting(to)] ?? table.states[setting({ ...start, ...to })];
        handle.setAttribute("transform", found[part] || table.first[part]);
        const { x, y, width, height } = handle.getBoundingClientRect();
        return Math.hypot(x + width / 2 - clientX, y + height / 2 - clientY);
      };
      let at = Number(slide.value);
      for (const by of [-1, 1]) while (off(at + by) < off(at)) at += by;
      handle.setAttribute("transform", shown);
      if (at !== Number(slide.value)) slideTo(slide, at);
    };
    for (const handle of box.querySelectorAll("[data-drag]")) {
      handle.addEventListener("touchstart", (event) => event.preventDefault(), { passive: false }); // the page stays
      handle.addEventListener("pointerdown", (event) => {
        if (timer) rest();
        handle.setPointerCapture(event.pointerId);
      });
      handle.addEventListener("pointermove", (event) => {
        if (handle.hasPointerCapture(event.pointerId)) pull(handle, event);
      });
      handle.addEventListener("lostpointercapture", keep);
    }

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
      keep();
    });
    const does = {
      play: () => (timer ? rest() : run()),
      back: () => step(-1),
      forward: () => step(1),
      move,
      compute: () => update(),
    };
    box.addEventListener("click", async ({ target }) => {
      const what = target.dataset.do;
      if (target.dataset.bet) {
        for (const one of bet.querySelectorAll("button")) one.setAttribute("aria-pressed", one === target);
      }
      if (!what) return;
      if (timer && what !== "play") rest();
      does[what]?.();
      if (what === "play") return;
      keep();
      if (what !== "copy") return;
      await peCopy(location.href, target);
      target.textContent = "Copied";
      setTimeout(() => { target.textContent = "Copy link"; }, 2000);
    });

    box.dataset.shows = setting();
    box.querySelector(".explore-controls").hidden = false;
    for (const one of box.querySelectorAll("[data-live]")) one.disabled = !live();
    if (!live() && box.querySelector("[data-live]")) {
      say(`${built} Grey fields need Python in the page, which this copy of the book has not.`);
    }
    if ("plays" in box.dataset && !calm.matches) run();
    return take;
  };

  addEventListener("load", () => {
    const takes = [...document.querySelectorAll("figure.explore")].map(wake);
    const follow = () => takes.forEach((take) => take());
    follow();
    addEventListener("hashchange", follow);
  });
})();
