// A tap on a formula shows what the letters of its chapter stand for, which is folded at the chapter's end.
(() => {
  const list = document.querySelector("details.letters > div");
  const article = document.querySelector("article.bd-article");
  if (!list) return;
  let box, asked;
  const close = () => {
    box?.remove();
    box = asked = undefined;
  };
  article.classList.add("has-letters");
  // Said where the chapter begins, and not on paper.
  article.querySelector("a.notebook")?.after(
    Object.assign(document.createElement("span"), { className: "notebook", textContent: " Touch a formula to see its letters." }),
  );
  article.addEventListener("click", ({ target }) => {
    const formula = target.closest("math, div.formula");
    if (!formula || target.closest("a, button, summary, label, .letters") || !getSelection().isCollapsed) return;
    const place = formula.closest("div.formula, table, p, li, dd, dt") ?? formula;
    const again = asked === place;
    close();
    if (again) return;
    box = Object.assign(document.createElement("div"), { className: "letters", role: "note", ariaLabel: "Letters of this chapter" });
    box.append(list.cloneNode(true));
    if (place.localName === "li") place.append(box); else place.after(box);
    asked = place;
  });
  addEventListener("keydown", ({ key }) => key === "Escape" && close());
})();
