// Makes elements of the page. Texts go in as text, never as markup: a name from a recording cannot
// become code.
cistern.el = (() => {
  function put(node, name, value) {
    if (name === "text")
      node.textContent = value;
    else if (name === "on")
      Object.entries(value).forEach(([event, act]) => node.addEventListener(event, act));
    else if (name === "style")
      Object.entries(value).forEach(([key, text]) => node.style.setProperty(key, text));
    else if (value === true)
      node.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined)
      node.setAttribute(name, value);
  }

  /** el("p", {class: "x", on: {click}}, child or text, …). */
  return function el(tag, given = {}, ...children) {
    const node = document.createElement(tag);
    Object.entries(given).forEach(([name, value]) => put(node, name, value));
    node.append(
        ...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
    return node;
  };
})();

/**
 * Several attributes of a selection of d3's at once: selection.call(cistern.attrs, {x, y: (d) =>
 * …}).
 */
cistern.attrs = (selection, attributes) =>
    Object.entries(attributes).forEach(([name, value]) => selection.attr(name, value));

/** A picture that says in words what it shows. */
cistern.svg = (attributes) => d3.create("svg").call(cistern.attrs, {role: "img", ...attributes});

cistern.button = (text, click, given = {}) =>
    cistern.el("button", {type: "button", class: "quiet", text, on: {click}, ...given});

/** A remark. */
cistern.soft = (text, given = {}) => cistern.el("p", {class: "soft", text, ...given});

/** Changes a text only if it is another: what stays the same is not laid out again. */
cistern.setText = (node, text) => {
  if (node.textContent !== text) node.textContent = text;
};

/** A sentence that says why a part of the page is empty. */
cistern.empty = (text) => cistern.el("p", {class: "empty", text});

/** Tells a screen reader what changed. */
cistern.say = (text) => {
  document.getElementById("said").textContent = text;
};

/** A row of radio buttons that look like one switch. `choices`: [[value, text], …]. */
cistern.choice = (title, name, choices, chosen, act) => {
  const el = cistern.el;
  const options = choices.map(
      ([value, text]) =>
          el("label", {}, el("input", {
               type: "radio",
               name,
               value,
               checked: value === chosen,
               on: {change: () => act(value)}
             }),
             el("span", {text})));
  return el("fieldset", {class: "choice"}, el("legend", {text: title}), ...options);
};

/** The box beside the pointer that shows what lies under it. */
cistern.hint = (() => {
  const box = () => document.getElementById("hint");
  function show(lines, x, y) {
    const node = box();
    node.replaceChildren(...lines);
    node.hidden = false;
    const right = x + 16 + node.offsetWidth > window.innerWidth;
    const low = y + 16 + node.offsetHeight > window.innerHeight;
    node.style.left = `${Math.max(4, right ? x - node.offsetWidth - 12 : x + 16)}px`;
    node.style.top = `${Math.max(4, low ? y - node.offsetHeight - 12 : y + 16)}px`;
  }
  return {
    show,
    hide: () => {
      box().hidden = true;
    }
  };
})();
