// What is measured again whenever the text changes its size (a window, a sidebar that slides, what is
// opened or printed), or a script says that what is in it has changed.
const peSized = (measure) => {
  const text = document.querySelector(".bd-article");
  if (text) new ResizeObserver(measure).observe(text);
  addEventListener("resize", measure);
};

// Whatever is wider than the screen scrolls by itself; let the keyboard reach it.
(() => {
  const wide = ".formula, .bd-article table, .bd-article pre, .cell_output, .drawn";
  peSized(() => {
    for (const e of document.querySelectorAll(wide)) {
      if (e.scrollWidth > e.clientWidth + !e.matches(".drawn")) e.tabIndex = 0; // words may be a pixel wide of it
      else e.removeAttribute("tabindex");
    }
  });
})();

// A formula that is copied is the TeX that it was written as.
document.addEventListener("copy", (event) => {
  const part = getSelection().rangeCount ? getSelection().getRangeAt(0).cloneContents() : null;
  if (!part?.querySelector("math")) return;
  for (const formula of part.querySelectorAll("math")) {
    const sign = formula.getAttribute("display") === "block" ? "$$" : "$";
    const tex = formula.querySelector("annotation");
    if (tex) formula.replaceWith(sign + tex.textContent + sign);
  }
  const page = document.createElement("div");
  page.append(part);
  document.body.append(page); // where it is drawn, its lines are known
  event.clipboardData.setData("text/plain", page.innerText);
  page.remove();
  event.preventDefault();
});

// Copy a text; the focus comes back to what asked for it.
window.peCopy = async (text, asked) => {
  try {
    await navigator.clipboard.writeText(text);
  } catch { // a page without a server, or a browser that asks
    const area = Object.assign(document.createElement("textarea"), { value: text });
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
    asked.focus();
  }
};

// A task for the page's Python: the button that begins it stops it; `say` is told how it is, and after
// so many seconds of `work` that it is late.
window.peTask = ({ button, label, say, doing, late, seconds, begin, work }) => {
  let running = false;
  const task = async () => {
    if (running) return;
    running = true;
    button.textContent = "■ Stop";
    begin();
    const told = ({ detail }) => say(detail || doing);
    addEventListener("pelive", told);
    let clock;
    try {
      say(doing);
      await peLive.ready();
      clock = setTimeout(() => say(`${late} Is there a loop without end? Stop ends it.`), seconds * 1000);
      await work();
    } catch (error) {
      say(error.message === "stopped" ? "Stopped. The next check starts Python again." : `Python ended: ${error.message}`);
      if (error.message !== "stopped") peLive.stop();
    }
    clearTimeout(clock);
    removeEventListener("pelive", told);
    running = false;
    button.textContent = label;
  };
  return { run: task, stop: () => running && peLive.stop(), press: () => (running ? peLive.stop() : task()) };
};

// The theme's button *Back to top* goes into the bar of the page: it covers nothing there.
(() => {
  const button = document.getElementById("pst-back-to-top");
  const bar = document.querySelector(".article-header-buttons");
  if (!button || !bar) return;
  button.classList.add("in-bar");
  button.ariaLabel = button.title = button.textContent.trim();
  button.replaceChildren(...button.querySelectorAll("i"));
  bar.prepend(button);
})();

// Code can be copied, as it is written and without what a live cell has made of it; its long lines wrap on request.
(() => {
  const page = document.documentElement;
  const tools = [];
  try {
    page.classList.toggle("wrap-code", localStorage.getItem("wrap-code") === "yes");
  } catch { /* a browser that keeps nothing */ }
  const wrapped = () => page.classList.contains("wrap-code");
  const offer = () => { // only where something is too long
    const wide = tools.map(([pre]) => pre.scrollWidth > pre.clientWidth + 1);
    tools.forEach(([, wrap], n) => {
      if (!wrapped()) wrap.hidden = !wide[n];
      wrap.setAttribute("aria-pressed", wrapped());
    });
  };
  const turn = (button) => {
    const before = button.getBoundingClientRect().top;
    page.classList.toggle("wrap-code");
    try { localStorage.setItem("wrap-code", wrapped() ? "yes" : "no"); } catch { /* as above */ }
    dispatchEvent(new Event("resize"));
    scrollBy({ top: button.getBoundingClientRect().top - before, behavior: "instant" }); // stays below the finger
  };
  for (const code of document.querySelectorAll(".bd-article div.highlight")) {
    if (code.closest(".cell_output") && !code.closest(".source")) continue; // what a cell has printed
    const button = Object.assign(document.createElement("button"), { type: "button", className: "copy-code", textContent: "Copy" });
    button.setAttribute("aria-label", "Copy this code");
    button.addEventListener("click", async () => {
      const text = code.querySelector("pre").textContent;
      await peCopy(text, button);
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    });
    const wrap = Object.assign(document.createElement("button"), { type: "button", className: "wrap-lines", textContent: "Wrap" });
    wrap.setAttribute("aria-label", "Wrap the long lines of this page's code");
    wrap.addEventListener("click", () => turn(wrap));
    const box = Object.assign(document.createElement("div"), { className: "code-tools" });
    box.append(wrap, button);
    code.append(box);
    tools.push([code.querySelector("pre"), wrap]);
  }
  peSized(offer);
})();

// The contents of a page mark the section in view, and keep it in sight. (The theme's own marks miss
// what one jumps over; it finds the contents by their id.)
(() => {
  document.getElementById("pst-page-toc-nav")?.removeAttribute("id");
  const bar = document.querySelector(".bd-sidebar-secondary");
  const links = [...(bar?.querySelectorAll(".page-toc a.nav-link") ?? [])]
    .map((link) => [link, document.getElementById(decodeURIComponent(link.hash.slice(1)))]).filter(([, to]) => to);
  let waiting = false, last;
  const follow = () => {
    waiting = false;
    const passed = links.filter(([, to]) => to.checkVisibility() && to.getBoundingClientRect().top < innerHeight / 3);
    const atEnd = scrollY + innerHeight > document.documentElement.scrollHeight - 2;
    const now = (atEnd ? links : passed).at(-1)?.[0];
    if (now === last) return;
    last?.classList.remove("active");
    last?.removeAttribute("aria-current");
    now?.classList.add("active");
    now?.setAttribute("aria-current", "location");
    if (now) bar.scrollTop += now.getBoundingClientRect().top - bar.getBoundingClientRect().top - bar.clientHeight / 2;
    last = now;
  };
  const ask = () => { if (!waiting) { waiting = true; requestAnimationFrame(follow); } };
  if (links.length) {
    for (const event of ["scroll", "resize", "load"]) addEventListener(event, ask, { passive: true });
    document.addEventListener("toggle", ask, true);
  }
})();

// Which chapters have been read: kept in this browser alone.
(() => {
  const KEY = "chapters-read";
  const stem = (path) => /chapters\/(\d\d_\w+)\.html/.exec(path)?.[1];
  let read;
  try {
    read = new Set(JSON.parse(localStorage.getItem(KEY) ?? "[]"));
  } catch { // a browser that keeps nothing
    return;
  }
  const show = () => {
    for (const link of document.querySelectorAll(".bd-links a, .part a, .way a")) {
      const mark = read.has(stem(link.href ?? ""));
      link.classList.toggle("has-read", mark);
      if (mark) link.title = "read"; else link.removeAttribute("title");
    }
    const count = document.querySelector(".parts-read");
    if (count) count.textContent = read.size ? `You have marked ${read.size} of ${document.querySelectorAll(".part li").length} chapters as read.` : "";
    for (const way of document.querySelectorAll(".way")) { // a route: how far, and where to go on
      const links = [...way.querySelectorAll("a")];
      const left = links.filter((link) => !link.matches(".has-read"));
      for (const link of links) link.classList.toggle("way-next", link === left[0] && left.length < links.length);
      way.nextElementSibling.textContent = left.length < links.length ? `${links.length - left.length} of ${links.length} read` : "";
    }
  };
  const own = stem(location.pathname);
  const end = document.querySelector(".prev-next-footer");
  if (own && end) {
    const label = Object.assign(document.createElement("label"), { className: "read-mark" });
    const box = Object.assign(document.createElement("input"), { type: "checkbox", checked: read.has(own) });
    box.addEventListener("change", () => {
      if (box.checked) read.add(own); else read.delete(own);
      localStorage.setItem(KEY, JSON.stringify([...read].sort()));
      show();
    });
    label.append(box, "I have read this chapter (kept in this browser alone)");
    end.before(label);
  }
  show();
})();

// A second reading opens when an address leads into it, and on paper.
(() => {
  const KIND = "details.second";
  const unfold = () => {
    const target = document.getElementById(location.hash.slice(1));
    if (!target) return;
    const inside = [...target.querySelectorAll(`:scope > ${KIND}`)];
    for (let box = target.closest(KIND); box; box = box.parentElement.closest(KIND)) inside.push(box);
    const folded = inside.filter((box) => !box.open);
    for (const box of folded) box.open = true;
    if (folded.length) target.scrollIntoView();
  };
  unfold();
  addEventListener("hashchange", unfold);
  document.addEventListener("click", (event) => { // a link to where one is changes no address
    if (event.target.closest?.("a")?.hash && event.target.closest("a").hash === location.hash) setTimeout(unfold);
  });
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll(`${KIND}:not([open])`)];
    for (const box of opened) box.open = true;
  });
  addEventListener("afterprint", () => { for (const box of opened) box.open = false; });
})();

// A link to a heading that was renamed leads to its new name: see anchors.csv.
(() => {
  const key = (anchor) => anchor.toLowerCase().replace(/^[^a-z]+|[^a-z0-9]/g, "");
  const page = /chapters\/(\w+)\.html/.exec(location.pathname)?.[1];
  const follow = () => {
    const anchor = location.hash.slice(1);
    if (!page || !anchor || document.getElementById(anchor)) return;
    const script = document.createElement("script");
    script.src = new URL("_static/moved.js", new URL(document.documentElement.dataset.content_root, location.href));
    script.addEventListener("load", () => {
      const to = window.moved[page]?.[key(anchor)];
      if (to) location.replace(new URL(to, location.href));
    });
    document.head.append(script);
  };
  follow();
  addEventListener("hashchange", follow);
})();
