// A table of schemes that answer yes or no: the reader chooses answers, and the rows that give them stay.
// Column names and answers are the state, and stand in the address.
(() => {
  const box = document.querySelector(".matrix");
  const columns = [...box.querySelectorAll("thead th")].slice(1);
  const rows = [...box.querySelectorAll("tbody tr")];
  const make = (tag, props, ...children) => {
    const e = Object.assign(document.createElement(tag), props);
    e.append(...children);
    return e;
  };
  const selects = columns.map((head) => {
    const select = make("select", {}, ...["any", "yes", "no"].map((answer) => new Option(answer)));
    select.name = head.textContent;
    return select;
  });
  const status = make("p", { className: "matrix-status" });
  status.setAttribute("role", "status");
  const all = make("button", { type: "button", textContent: "Show all" });
  const show = () => {
    const fits = (row) => selects.every((s, n) => s.value === "any" || row.cells[n + 1].textContent === s.value);
    for (const row of rows) row.hidden = !fits(row);
    const left = rows.filter((row) => !row.hidden);
    const asks = selects.some((s) => s.value !== "any");
    const names = asks && left.length ? `: ${left.map((row) => row.cells[0].textContent).join("; ")}` : "";
    status.textContent = left.length ? `${left.length} of ${rows.length} schemes${names}` : "No scheme gives all of these answers: set one of them to any.";
    all.hidden = !asks;
    selects.forEach((s, n) => columns[n].classList.toggle("asked", s.value !== "any"));
    dispatchEvent(new Event("resize")); // what scrolls may now fit
  };
  const change = () => {
    const state = new URLSearchParams(selects.filter((s) => s.value !== "any").map((s) => [s.name, s.value]));
    history.replaceState(null, "", `#${state}`);
    show();
  };
  const questions = columns.map((head, n) => make("label", {}, selects[n], make("span", {}, make("b", { textContent: head.textContent }), ` ${head.dataset.asks}`)));
  box.previousElementSibling.classList.add("on-paper"); // the same questions
  const form = make("fieldset", {}, make("legend", { textContent: "Which schemes give the answers that you need?" }), ...questions);
  box.prepend(form, make("div", {}, status, all));
  form.addEventListener("change", change);
  all.addEventListener("click", () => {
    for (const s of selects) s.value = "any";
    change();
    selects[0].focus(); // the button is gone
  });
  const read = () => {
    const said = new URLSearchParams(location.hash.slice(1));
    for (const s of selects) s.value = ["yes", "no"].includes(said.get(s.name)) ? said.get(s.name) : "any";
    show();
    if (!all.hidden) box.scrollIntoView();
  };
  addEventListener("hashchange", read);
  read();
})();
