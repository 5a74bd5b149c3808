// Light, dark, or as the system has it; the choice lasts while the page is open. A printed page is
// light, and as wide as paper.
cistern.theme = (() => {
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const print = window.matchMedia("print");
  let chosen = null;
  let onPaper = false;  // between beforeprint and afterprint

  const isDark = () => (chosen === null ? system.matches : chosen === "dark");

  function apply(changed) {
    const printing = onPaper || print.matches;
    document.documentElement.dataset.theme = !printing && isDark() ? "dark" : "light";
    document.documentElement.toggleAttribute("data-printing", printing);
    const button = document.getElementById("theme");
    button.textContent = isDark() ? "Light" : "Dark";
    button.setAttribute("aria-label", isDark() ? "Light colours" : "Dark colours");
    cistern.colours.forget();
    changed(printing);
  }

  /** `changed(printing)` redraws at once: a browser that prints does not wait for a frame. */
  function start(changed) {
    const again = () => apply(changed);
    document.getElementById("theme").addEventListener("click", () => {
      chosen = isDark() ? "light" : "dark";
      again();
    });
    system.addEventListener("change", again);
    print.addEventListener("change", again);
    window.addEventListener("beforeprint", () => {
      onPaper = true;
      again();
    });
    window.addEventListener("afterprint", () => {
      onPaper = false;
      again();
    });
    again();
  }
  return {start};
})();
