// What the map answers to the pointer and the keyboard.
cistern.mapActs = (map) => {
  const {el, units} = cistern;
  const {box, view} = map;
  const soon = cistern.onceAFrame(() => map.draw());
  let dragged = null;

  const place = (event) => {
    const bounds = box.getBoundingClientRect();
    return [event.clientX - bounds.left, event.clientY - bounds.top];
  };

  /** The block at a point of the map; -1 if there is none. */
  function blockAt(shown, x, y) {
    const offset = shown.sight.at(x, y);
    if (!shown.layout || offset < 0) return -1;
    const address = shown.layout.tape.address(offset);
    const {window} = shown.layout;
    const {at} = view.position;
    return d3.range(window.placed, window.blocks)
               .find(
                   (b) => window.address[b] <= address &&
                       address < window.address[b] + window.bytes[b] &&
                       (window.lives(b, at) || window.waits(b, at))) ??
        -1;
  }

  function describe(window, b) {
    const {at, us} = view.position;
    const age = view.recording.has_times ?
        `lives for ${units.duration(Math.max(0, us - window.since[b]))}` :
        `lives for ${units.counted(Math.max(0, Math.round(us - window.since[b])), "event")}`;
    const freed = window.freed[b] <= window.count ?
        `, freed at ${view.time(window.timeAt(window.freed[b]))}` :
        window.first + window.count >= view.recording.events ? ", never freed in this recording" :
                                                               "";
    const asleep =
        cistern.asleep.blocks(window, at)[b] ? ", asleep: no memory until its pool wakes" : "";
    const state = window.lives(b, at) ? age + freed + asleep : "freed, waits for other streams";
    const label = window.label[b] > 0 ? `, labelled “${view.names.label(window.label[b])}”` : "";
    return `${units.bytes(window.bytes[b])} from ${view.names.site(window.stack[b])}${label}, ${
               view.names.pool(window.pool[b])}, ` +
        `${view.names.stream(window.stream[b])}; ${state}`;
  }

  function hint(event) {
    const shown = map.shown();
    const [x, y] = place(event);
    const offset = shown ? shown.sight.at(x, y) : -1;
    if (offset < 0) {
      cistern.hint.hide();
      return;
    }
    const b = blockAt(shown, x, y);
    const address = shown.layout ? shown.layout.tape.address(offset) : shown.heat.address(offset);
    const lines = [cistern.soft("0x" + Math.round(address).toString(16))];
    if (b >= 0) {
      const {window} = shown.layout;
      lines.unshift(el("p", {text: describe(window, b)}));
      lines.push(
          el("ol", {class: "stack"},
             view.names.frames(window.stack[b])
                 .slice(0, 12)
                 .map((frame) => el("li", {
                        class: cistern.Names.isLibrary(frame) ? "library" : "program",
                        text: cistern.Names.frameText(frame)
                      }))));
    } else if (shown.heat) {
      const row = Math.floor(offset / shown.heat.model.row_bytes);
      const used =
          shown.heat.used[shown.heat.column(view.position.us) * shown.heat.model.rows + row] / 255;
      lines.unshift(el("p", {text: `${units.percent(used, 1)} of this stretch is allocated`}));
    } else {
      const free = cistern.state.freeAt(shown.layout.window, view.position.at, address);
      lines.unshift(el("p", {
        text: free ? `${units.bytes(free[1])} free, of ${view.names.pool(free[2])}, ${
                         view.names.stream(free[3])}` :
            shown.layout.window.pieces.length > 0 ? "Not reserved" :
                                                    "No block"
      }));
    }
    cistern.hint.show(lines, event.clientX, event.clientY);
  }

  function choose(b) {
    map.chosen = b;
    const shown = map.shown();
    map.detail.textContent =
        b >= 0 && shown && shown.layout ? describe(shown.layout.window, b) : "";
    cistern.say(map.detail.textContent);
    soon();
  }

  /** The next block that lives, in order of address. */
  function next(by) {
    const shown = map.shown();
    if (!shown || !shown.layout) return;
    const {window} = shown.layout;
    const {at} = view.position;
    const living = d3.range(window.placed, window.blocks)
                       .filter((b) => window.lives(b, at) || window.waits(b, at));
    if (living.length === 0) return;
    const here = living.indexOf(map.chosen);
    const there = here < 0 ? 0 : Math.max(0, Math.min(living.length - 1, here + by));
    const offset = shown.layout.tape.offset(window.address[living[there]]);
    const {sight} = shown;
    if (offset < sight.top || offset >= sight.top + sight.rows * sight.rowBytes) {
      sight.top = offset - (sight.rows / 2) * sight.rowBytes;
      sight.clampTop();
    }
    choose(living[there]);
  }

  box.addEventListener("wheel", (event) => {
    const shown = map.shown();
    if (!shown || !(event.ctrlKey || event.metaKey)) return;  // a plain wheel scrolls the page
    event.preventDefault();
    shown.sight.zoom(2 ** (-event.deltaY / 200), ...place(event));
    soon();
  }, {passive: false});
  box.addEventListener("pointerdown", (event) => {
    dragged = {from: place(event), moved: false};
    if (event.pointerType === "mouse") box.setPointerCapture(event.pointerId);
  });
  box.addEventListener("pointermove", (event) => {
    const [x, y] = place(event);
    if (!dragged) {
      hint(event);
      return;
    }
    const shown = map.shown();
    const [dx, dy] = [x - dragged.from[0], y - dragged.from[1]];
    if (!shown || Math.abs(dx) + Math.abs(dy) < 4) return;
    dragged.moved = true;
    const whole = Math.round(dy / shown.sight.pitch) * shown.sight.pitch;
    shown.sight.pan(dx, whole);
    dragged.from = [x, dragged.from[1] + whole];
    soon();
  });
  box.addEventListener("pointerup", (event) => {
    const shown = map.shown();
    if (shown && dragged && !dragged.moved) choose(blockAt(shown, ...place(event)));
    dragged = null;
  });
  box.addEventListener("pointercancel", () => {
    dragged = null;
  });
  box.addEventListener("pointerleave", cistern.hint.hide);
  box.addEventListener("dblclick", (event) => {
    const shown = map.shown();
    if (shown) shown.sight.zoom(event.shiftKey ? 0.5 : 2, ...place(event));
    soon();
  });
  box.addEventListener("keydown", (event) => {
    const acts = {
      ArrowRight: () => next(1),
      ArrowLeft: () => next(-1),
      ArrowDown: () => next(50),
      ArrowUp: () => next(-50),
      "+": () => map.zoomBy(2),
      "=": () => map.zoomBy(2),
      "-": () => map.zoomBy(0.5),
      0: () => map.zoomBy(0),
      Escape: () => choose(-1)
    };
    if (!acts[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    acts[event.key]();
    soon();
  });
};
