// How the memory was divided at a moment: one bar to scale, and below it the request that failed.
// Its elements are made once and change in place, so that scrubbing stays cheap.
cistern.Balance = class {
  constructor() {
    const {el} = cistern;
    const kinds = [
      ["asked", "In use by the program"], ["rounding", "Rounding"], ["free", "Reserved, but free"],
      ["beyond", "Not reserved, up to the limit"]
    ];
    this.parts = kinds.map(([name, title]) => this.part(name, title));
    this.bar = el("div", {class: "balance", role: "img"}, this.parts.map(({bar}) => bar));
    this.request = this.part("asked-for", "The failed request");
    this.short = el("span", {class: "soft"});
    this.request.key.append(this.short);
    this.before = el("span");  // up to where the request would have begun
    this.requestBar =
        el("div", {class: "balance request", role: "img"}, this.before, this.request.bar);
    this.limit = this.part("limit", "Limit");
    const keys = [...this.parts, this.request, this.limit].map(({key}) => key);
    this.node =
        el("div", {id: "balance"},
           el("div", {class: "balances"}, this.bar, this.requestBar, this.limit.bar),
           el("ul", {class: "legend plain"}, keys));
  }

  part(name, title) {
    const {el} = cistern;
    const size = el("strong");
    const bar = el("span", {class: `part ${name}`});
    const key =
        el("li", {}, el("span", {class: `swatch part ${name}`}), el("span", {text: title}), size);
    return {title, bar, key, size};
  }

  set(part, bytes, scale) {
    part.bar.hidden = part.key.hidden = bytes <= scale / 5000;  // less than any pixel
    part.bar.style.width = `${(100 * Math.max(0, bytes)) / scale}%`;
    cistern.setText(part.size, cistern.units.bytes(bytes));
  }

  /** A line at the limit, over both bars. */
  setLimit(limit, scale) {
    this.limit.bar.hidden = this.limit.key.hidden = !limit;
    this.limit.bar.style.left = `${Math.min(100, (100 * (limit || 0)) / scale)}%`;
    cistern.setText(this.limit.size, cistern.units.bytes(limit));
  }

  /**
   * `asked`, `allocated`, `reserved` and `limit` in bytes, or null; `request`: the one that
   * failed, or null.
   */
  update({asked, allocated, reserved, limit, request}) {
    const {bytes} = cistern.units;
    const used = Math.max(asked, allocated ?? asked);
    const held = Math.max(used, reserved ?? used);
    const left = limit ? Math.max(0, limit - held) : 0;
    const wanted = request ? request.bytes : 0;
    const scale = Math.max(held + left, held + wanted, 1) * (wanted > 0 ? 1.01 : 1);
    const sizes = [asked, used - asked, held - used, left];
    this.parts.forEach((part, i) => this.set(part, sizes[i], scale));
    this.set(this.request, wanted, scale);
    this.setLimit(limit, scale);
    this.requestBar.hidden = wanted === 0;
    this.before.style.width = `${(100 * held) / scale}%`;
    cistern.setText(
        this.short, limit && wanted > left ? `${bytes(wanted - left)} more than was left` : "");
    const told =
        this.parts.filter((_, i) => sizes[i] > 0).map(({title,
                                                        size}) => `${title}: ${size.textContent}`);
    this.bar.setAttribute("aria-label", told.join("; ") || "Nothing is in use");
    this.requestBar.setAttribute(
        "aria-label",
        `The failed request: ${bytes(wanted)}, beside ${bytes(left)} that was not reserved`);
  }
};
