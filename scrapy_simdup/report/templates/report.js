"use strict";
(() => {
  const all = [...document.querySelectorAll("article[data-pair]")];
  const byId = (id) => document.getElementById(id);
  const store = "simdup-marks:" + document.documentElement.dataset.report;
  let marks = {};
  try { marks = JSON.parse(localStorage.getItem(store)) || {}; } catch { marks = {}; }
  const undo = [];
  const key = (article) => {
    const pair = JSON.parse(article.dataset.pair);
    return pair.kind + "\n" + pair.url + "\n" + pair.duplicate_of;
  };

  const show = () => {
    const wanted = { kind: byId("kind").value, distance: byId("distance").value, host: byId("host").value };
    const marked = byId("marked").value;
    let shown = 0;
    for (const article of all) {
      const mark = marks[key(article)] || "";
      article.dataset.mark = mark;
      article.querySelector(".mark").textContent = mark ? "marked " + mark : "";
      const fits = Object.entries(wanted).every(([name, value]) => !value || article.dataset[name] === value)
        && (!marked || (marked === "none" ? !mark : marked === "any" ? mark : marked === mark));
      article.hidden = !fits;
      shown += fits;
    }
    const judged = all.filter((article) => marks[key(article)]).length;
    byId("count").textContent = shown + " of " + all.length + " pairs, " + judged + " judged";
  };
  const save = () => {
    try { localStorage.setItem(store, JSON.stringify(marks)); } catch { /* private window: until it is closed */ }
    show();
  };
  const visible = () => all.filter((article) => !article.hidden);
  const current = () => document.activeElement && document.activeElement.closest("article[data-pair]");
  const go = (step) => {
    const articles = visible();
    const at = articles.indexOf(current());
    const next = articles[Math.max(0, Math.min(articles.length - 1, at < 0 ? 0 : at + step))];
    if (next) { next.focus({ preventScroll: true }); next.scrollIntoView({ block: "start" }); }
  };
  const mark = (article, value) => {
    if (!article) return;
    const articles = visible();
    const next = articles[articles.indexOf(article) + 1];
    undo.push([key(article), marks[key(article)]]);
    marks[key(article)] = value;
    save();
    if (next && !next.hidden) { next.focus({ preventScroll: true }); next.scrollIntoView({ block: "start" }); }
  };
  const takeBack = () => {
    const last = undo.pop();
    if (!last) return;
    if (last[1]) marks[last[0]] = last[1]; else delete marks[last[0]];
    save();
    const article = all.find((one) => key(one) === last[0]);
    if (article && !article.hidden) article.focus();
  };
  const labels = () => all.filter((article) => marks[key(article)]).map((article) =>
    JSON.stringify({ ...JSON.parse(article.dataset.pair), right: marks[key(article)] === "right" }) + "\n").join("");

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("select, input")) return;
    const actions = {
      j: () => go(1), ArrowDown: current() && (() => go(1)), k: () => go(-1), ArrowUp: current() && (() => go(-1)),
      y: () => mark(current(), "right"), n: () => mark(current(), "wrong"), u: takeBack,
    };
    const action = actions[event.key];
    if (action) { event.preventDefault(); action(); }
  });
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-mark-as]");
    if (button) mark(button.closest("article"), button.dataset.markAs);
  });
  byId("filters").addEventListener("change", show);
  byId("export").addEventListener("click", () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([labels()], { type: "application/x-ndjson" }));
    link.download = "simdup-labels.jsonl";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });
  byId("theme").addEventListener("click", () => {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });
  show();
})();
