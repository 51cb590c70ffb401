// Whatever is wider than the screen scrolls by itself; let the keyboard reach it.
(() => {
  const wide = "mjx-container[display=true], .bd-article table, .bd-article pre";
  const mark = () => {
    for (const e of document.querySelectorAll(wide)) {
      if (e.scrollWidth > e.clientWidth + 1) e.tabIndex = 0;
      else e.removeAttribute("tabindex");
    }
  };
  addEventListener("load", async () => {
    await window.MathJax?.startup?.promise;
    mark();
    addEventListener("resize", mark);
    document.addEventListener("toggle", mark, true); // an opened solution
  });
})();
