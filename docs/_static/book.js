(() => {
  // Whatever is wider than the screen scrolls by itself; let the keyboard reach it.
  const wide = "mjx-container[display=true], .bd-article table, .bd-article pre, .cell_output";
  const mark = () => {
    for (const e of document.querySelectorAll(wide)) {
      if (e.scrollWidth > e.clientWidth + 1) e.tabIndex = 0;
      else e.removeAttribute("tabindex");
    }
  };
  // No line begins with the comma after a short formula.
  const hold = () => {
    for (const formula of document.querySelectorAll(".bd-article span.math")) {
      const after = formula.nextSibling;
      const stop = after?.nodeType === Node.TEXT_NODE && /^[,.;:?!)]+/.exec(after.data);
      if (!stop || formula.offsetWidth > 200) continue;
      after.splitText(stop[0].length);
      const pair = document.createElement("span");
      pair.className = "nowrap";
      formula.before(pair);
      pair.append(formula, after);
    }
  };
  addEventListener("resize", mark);
  document.addEventListener("toggle", mark, true); // an opened solution
  addEventListener("load", async () => {
    await window.MathJax?.startup?.promise;
    hold();
    mark();
  });
})();
