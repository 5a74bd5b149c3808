// Who holds the memory at the chosen moment, largest first, with stacks and a search.
cistern.Holders = class {
  constructor(body, view) {
    this.view = view;
    this.all = false;
    this.rows = [];
    this.build(body);
    view.on("position", () => this.draw());
  }

  build(body) {
    const {el} = cistern;
    this.search = el("input", {
      type: "search",
      id: "holders-search",
      placeholder: "function, file, label, pool",
      on: {input: () => this.view.search(this.search.value)}
    });
    this.found = el("span", {class: "soft", id: "holders-found", role: "status"});
    this.table = cistern.table.table(
        "Who holds the memory",
        [
          ["Holder", false], ["Label", false], ["Pool, stream", false], ["Blocks", true],
          ["Largest", true], ["Bytes", true], ["Share", true]
        ],
        []);
    this.bodyRows = this.table.querySelector("tbody");
    this.more = el("button", {
      type: "button",
      class: "quiet",
      on: {
        click: () => {
          this.all = !this.all;
          this.draw();
        }
      }
    });
    const searching =
        el("label", {hidden: this.view.nameless}, el("span", {text: "Search"}), this.search);
    body.replaceChildren(el("div", {class: "tools"}, searching, this.found), this.table, this.more);
  }

  /** The rows of the position, and what they are. */
  holders() {
    const {window, at, moment, us} = this.view.position;
    const {moments, timeline} = this.view.recording;
    if (this.view.nameless && window !== null) {
      const sizes = cistern.state.sizes(this.view.window(window), at);
      return [
        sizes.map(({log,
                    blocks,
                    bytes,
                    largest}) => [-2 - log, null, null, null, blocks, bytes, largest]),
        "The recording has no call stacks and no labels: blocks of one size stand together."
      ];
    }
    if (moment !== null && moments[moment].holders.length > 0) return [moments[moment].holders, ""];
    if (window !== null) return [cistern.state.holders(this.view.window(window), at), ""];
    const by = ["site", "label", "pool", "stream"].find(
                   (kind) => (timeline.stacked[kind] || []).length > 1) ||
        "pool";
    const column = this.view.column(us);
    const place = {site: 0, label: 1, pool: 2, stream: 3}[by];
    const rows = (timeline.stacked[by] || []).map(([key, values]) => {
      const row = [by === "site" ? key : -1, null, null, null, null, values[column], null];
      row[place] = key;
      return row;
    });
    return [
      rows.filter((row) => row[5] > 0).sort((a, b) => b[5] - a[5]),
      `Events are kept one by one around the moments only. Here the largest are told apart by ${
          cistern.byName[by].toLowerCase()}.`
    ];
  }

  draw() {
    if (!this.view.position) return;
    const {units} = cistern;
    const {wanted} = this.view;
    const [holders, about] = this.holders();
    this.table.classList.toggle("no-labels", this.view.recording.labels.length < 2);
    this.table.classList.toggle(
        "no-places", this.view.nameless && this.view.position.window !== null);
    const rows = wanted ?
        holders.filter(
            (row) =>
                row[0] >= 0 && this.view.matches(...row.slice(0, 4).map((number) => number ?? 0))) :
        holders;
    const sum = d3.sum(holders, (row) => row[5]);
    this.found.textContent = wanted ?
        `${units.counted(rows.length, "holder")} of ${units.bytes(d3.sum(rows, (row) => row[5]))}` :
        about;
    const shown = this.all || this.view.printing ? rows : rows.slice(0, 12);
    this.fill(shown, sum);
    this.more.hidden = rows.length <= 12 || this.view.printing;
    this.more.textContent =
        this.all ? "Show the largest only" : `Show all ${units.count(rows.length)}`;
  }

  /** Rows are kept and their texts changed, so that scrubbing moves numbers and not elements. */
  fill(rows, sum) {
    while (this.rows.length < Math.max(1, rows.length)) this.addRow();
    this.rows.forEach((row, i) => {
      row.node.hidden = i >= rows.length;
    });
    rows.forEach((values, i) => this.setRow(this.rows[i], values, sum));
    if (rows.length > 0) return;
    this.rows[0].node.hidden = false;
    this.rows[0].key = null;
    this.rows[0].holder.replaceChildren(cistern.el("span", {
      text: this.search.value ? "Nobody matches the search." : "No block lives at this moment."
    }));
    this.rows[0].cells.forEach((cell) => {
      cell.textContent = "";
    });
  }

  addRow() {
    const {el} = cistern;
    const holder = el("td");
    const cells = d3.range(6).map((i) => el("td", {class: i > 1 ? "number" : null}));
    const node = el("tr", {}, holder, cells);
    this.bodyRows.append(node);
    this.rows.push({node, holder, cells, key: null});
  }

  setRow(row, [stack, label, pool, stream, blocks, bytes, largest], sum) {
    const {names} = this.view;
    const {units} = cistern;
    const key = `${stack} ${label} ${pool} ${stream}`;
    if (row.key !== key) {
      row.key = key;
      row.holder.replaceChildren(this.nameOf(stack, label, pool, stream));
    }
    const where =
        pool === null || stream === null ? "" : `${names.pool(pool)}, ${names.stream(stream)}`;
    const texts = [
      label > 0 ? names.label(label) : "", where, blocks === null ? "" : units.count(blocks),
      largest === null ? "" : units.bytes(largest), units.bytes(bytes), units.percent(bytes, sum)
    ];
    texts.forEach((text, i) => {
      if (row.cells[i].textContent !== text) row.cells[i].textContent = text;
    });
    row.cells[5].style.setProperty("--share", `${(100 * bytes) / Math.max(1, sum)}%`);
  }

  nameOf(stack, label, pool, stream) {
    const {names} = this.view;
    if (stack < -1) return cistern.el("span", {text: cistern.sentences.sizes(-2 - stack)});
    if (stack > 0) return cistern.stackElement(names, stack);
    const known = label > 0                           ? names.label(label) :
        pool !== null && pool >= 0 && stream !== null ? names.holder([0, 0, pool, stream]) :
        pool !== null && pool >= 0                    ? names.pool(pool) :
        stream !== null && stream >= 0                ? names.stream(stream) :
                                                        "all others";
    return cistern.el(
        "span",
        {text: stack === 0 && label !== null ? names.holder([stack, label, pool, stream]) : known});
  }
};
