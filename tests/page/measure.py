"""Measures the page in headless Chromium: how soon it can be used, and how long a frame of a scrub takes.

measure.py [PAGE.html]      without one: the model of large_story.py"""

import pathlib
import sys
import tempfile

import assemble
import browser

SCRUB = """
const done = arguments[arguments.length - 1];
const slider = document.getElementById("along-events");
const view = cistern.view;
const widest = d3.range(view.recording.windows.length).reduce((a, b) =>
  view.recording.windows[b].count > view.recording.windows[a].count ? b : a);
view.goEvent(widest, 0);
document.getElementById("map").scrollIntoView();
const steps = 300, frames = [];
let step = 0, last = performance.now();
function next(now) {
  const time = performance.now();
  if (step > 5) frames.push(time - last);
  last = time;
  if (step === steps) {
    frames.sort((a, b) => a - b);
    done({median: frames[frames.length >> 1], p95: frames[Math.floor(frames.length * 0.95)], most: frames[frames.length - 1],
          a_second: 1000 * frames.length / frames.reduce((a, b) => a + b, 0)});
    return;
  }
  slider.value = Math.round(slider.max * step / steps);
  slider.dispatchEvent(new Event("input"));
  step += 1;
  requestAnimationFrame(next);
}
requestAnimationFrame(next);
"""


def measured(path):
    driver = browser.start()
    try:
        driver.set_script_timeout(120)
        driver.get(path.resolve().as_uri())
        marks = driver.execute_script("""const load = performance.getEntriesByType('navigation')[0];
            return {ready_ms: cistern.readyAt, loaded_ms: load.loadEventEnd};""")
        scrub = driver.execute_async_script(SCRUB)
        memory = driver.execute_script("return performance.memory ? performance.memory.usedJSHeapSize : 0")
        return marks, scrub, memory
    finally:
        driver.quit()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        page = pathlib.Path(folder) / "large.html"
        if len(sys.argv) > 1:
            page = pathlib.Path(sys.argv[1])
        else:
            import large_story
            page.write_text(assemble.page(large_story.model()))
        marks, scrub, memory = measured(page)
        print(f"{page.stat().st_size / 2**20:.1f} MiB; usable after {marks['ready_ms'] / 1000:.2f} s "
              f"(loaded after {marks['loaded_ms'] / 1000:.2f} s); {memory / 2**20:.0f} MiB of heap")
        print(
            f"scrub of 300 steps: {scrub['a_second']:.0f} frames a second; a frame takes {scrub['median']:.1f} ms in the middle, "
            f"{scrub['p95']:.1f} ms at 95 %, {scrub['most']:.1f} ms at most")
