// Who holds the memory at the chosen moment, largest first, with stacks and a search.
cistern.Holders = class {
  constructor(body, view) {
    this.view = view;
    this.all = false;
    this.by = "stack";
    this.rows = [];
    this.titles = new Map();  // made once: a stack that is unfolded stays so while its row moves
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
    const columns = [
      ["Holder", false], ["Label", false], ["Pool, stream", false], ["Blocks", true],
      ["Largest", true], ["Bytes", true], ["Share", true]
    ];
    this.table = cistern.table.table("Who holds the memory", columns, []);
    this.bodyRows = this.table.querySelector("tbody");
    this.more = el("button", {type: "button", class: "quiet", on: {click: () => this.toggle()}});
    const searching =
        el("label", {hidden: this.view.nameless}, el("span", {text: "Search"}), this.search);
    body.replaceChildren(
        el("div", {class: "tools"}, this.grouping(), searching, this.found), this.table, this.more);
  }

  /** What makes two blocks one holder's. */
  grouping() {
    const {stacks, labels} = this.view.recording;
    const choices = [["stack", "Call stack"]];
    if (stacks.length > 1) choices.push(["line", "Program line"]);
    if (labels.length > 1) choices.push(["label", "Label"]);
    return choices.length < 2 ? null :
                                cistern.choice("Group by", "holders-by", choices, this.by, (by) => {
                                  this.by = by;
                                  this.draw();
                                });
  }

  toggle() {
    this.all = !this.all;
    this.draw();
  }

  draw() {
    if (!this.view.position) return;
    const {units} = cistern;
    const {rows, sum, about} = cistern.holderRows.at(this.view, this.by);
    const has = (name) => rows.some((row) => row[name] !== "");
    this.table.classList.toggle("no-labels", !has("label"));
    this.table.classList.toggle("no-places", !has("place"));
    this.found.textContent = this.view.wanted && about === "" ?
        `${units.counted(rows.length, "holder")} of ${
            units.bytes(d3.sum(rows, ({bytes}) => bytes))}` :
        about;
    const short = !this.all && !this.view.printing;
    this.fill(short ? rows.slice(0, 12) : rows, sum);
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
    if (rows.length === 0) this.setEmpty(this.rows[0]);
  }

  setEmpty(row) {
    row.node.hidden = false;
    row.holder.textContent =
        this.view.wanted ? "Nobody matches the search." : "No block lives at this moment.";
    row.cells.forEach((cell) => {
      cell.textContent = "";
    });
  }

  addRow() {
    const {el} = cistern;
    const holder = el("td");
    const cells = d3.range(6).map((i) => el("td", {class: i > 1 ? "number" : null}));
    const node = el("tr", {}, holder, cells);
    this.bodyRows.append(node);
    this.rows.push({node, holder, cells});
  }

  setRow(row, {key, title, label, place, blocks, bytes, largest}, sum) {
    const {units} = cistern;
    if (!this.titles.has(key)) this.titles.set(key, title());
    if (row.holder.firstChild !== this.titles.get(key))
      row.holder.replaceChildren(this.titles.get(key));
    const texts = [
      label, place, blocks === null ? "" : units.count(blocks),
      largest === null ? "" : units.bytes(largest), units.bytes(bytes), units.percent(bytes, sum)
    ];
    texts.forEach((text, i) => {
      cistern.setText(row.cells[i], text);
    });
    row.cells[5].style.setProperty("--share", `${(100 * bytes) / Math.max(1, sum)}%`);
  }
};
