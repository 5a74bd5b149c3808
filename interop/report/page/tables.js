// Tables: a header row, numbers to the right, and the first rows with a button for the rest.
cistern.table = (() => {
  const {el} = cistern;

  /** `columns`: [[title, is a number], …]. `rows`: arrays of texts or elements. */
  function table(title, columns, rows) {
    const head =
        el("tr", {},
           columns.map(
               ([text, isNumber]) =>
                   el("th", {scope: "col", class: isNumber ? "number" : null, text})));
    const cell = (value, i) =>
        el("td", {class: columns[i][1] ? "number" : null, "data-title": columns[i][0]}, value);
    const body = el("tbody", {}, rows.map((row) => el("tr", {}, row.map(cell))));
    return el(
        "div", {
          class: columns.length > 3 ? "table wide" : "table",
          tabindex: 0,
          role: "group",
          "aria-label": title
        },
        el("table", {}, el("caption", {class: "unseen", text: title}), el("thead", {}, head),
           body));
  }

  /** A bar that shows a part of the largest value beside its number. */
  const bar = (value, most, text) =>
      el("span", {class: "measure"},
         el("span", {class: "share", "aria-hidden": "true"},
            el("span", {style: {width: `${(100 * value) / Math.max(1, most)}%`}})),
         el("span", {text}));
  return {bar, table};
})();
