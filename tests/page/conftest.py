"""What the tests of the page share: one headless Chromium, and pages of made-up stories."""

import assemble
import browser
import pytest
import stories


@pytest.fixture(scope="session")
def driver():
    started = browser.start()
    yield started
    started.quit()


@pytest.fixture(scope="session")
def pages(tmp_path_factory):
    """A function: the address of a story's page, which is made once."""
    folder, made = tmp_path_factory.mktemp("pages"), {}

    def page(story):
        if story not in made:
            made[story] = folder / f"{story}.html"
            made[story].write_text(assemble.page(stories.named(story)))
        return made[story].as_uri()

    return page


@pytest.fixture
def show(driver, pages):
    """A function that shows a story and gives the driver; the page must not have complained by the end."""
    driver.get_log("browser")

    def shown(story="training", **media):
        features = [{"name": name.replace("_", "-"), "value": value} for name, value in media.items()]
        features.append({"name": "prefers-reduced-motion",
                         "value": "reduce"})  # a click must not chase what scrolls
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": features})
        driver.get(pages(story))
        assert driver.execute_script("return document.documentElement.dataset.ready") == "yes"
        return driver

    yield shown
    assert [entry for entry in driver.get_log("browser") if entry["level"] == "SEVERE"] == []
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})


def settle(driver):
    """Waits for two frames: what a change asked for is drawn then."""
    driver.execute_async_script(
        "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(done));")


def text(driver, selector):
    """The text of an element as its reader sees it, on one line."""
    return " ".join(driver.find_element("css selector", selector).text.split())


def rows(driver, section):
    """The cells of a section's visible rows."""
    return driver.execute_script(
        """
        return Array.from(document.querySelectorAll(`#${arguments[0]} tbody tr`)).filter((row) => !row.hidden)
          .map((row) => Array.from(row.cells).map((cell) => cell.innerText.trim()));""", section)


def fail_index(driver):
    return driver.execute_script(
        "return cistern.view.recording.moments.findIndex((moment) => moment.kind === 'failure')")
