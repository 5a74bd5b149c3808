"""Light, dark, paper and narrow screens; accessible, and alone: nothing is loaded from anywhere."""

import base64

import pytest
from axe_core_python.selenium import Axe
from conftest import rows, settle


def background(driver):
    return driver.execute_script("return getComputedStyle(document.body).backgroundColor")


def test_system_and_button_choose_light_and_dark(show):
    driver = show(prefers_color_scheme="dark")
    dark = background(driver)
    assert dark == "rgb(14, 17, 21)"
    button = driver.find_element("id", "theme")
    assert button.text == "Light"
    button.click()
    assert background(driver) != dark and button.text == "Dark"
    button.click()
    assert background(driver) == dark


def test_canvases_follow_the_colours(show):
    driver = show(prefers_color_scheme="light")
    ink = """const canvas = document.querySelector("#chart canvas"); const colour = d3.rgb(cistern.colours.now().series[0]);
        const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
        let n = 0;
        for (let i = 0; i < data.length; i += 4) n += data[i] === colour.r && data[i + 1] === colour.g && data[i + 2] === colour.b;
        return [cistern.colours.now().series[0], n];"""
    light, many = driver.execute_script(ink)
    driver.find_element("id", "theme").click()
    settle(driver)
    dark, as_many = driver.execute_script(ink)
    assert light != dark and many > 100 and abs(many - as_many) < many / 10


def test_print_is_light_shows_every_row_and_fits_the_paper(show):
    driver = show(prefers_color_scheme="dark")
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia",
                           {"media": "print", "features": [{"name": "prefers-color-scheme", "value": "dark"}]})
    settle(driver)
    assert driver.execute_script("return document.documentElement.dataset.theme") == "light"
    assert background(driver) == "rgb(255, 255, 255)"
    for hidden in (".bar", "#scrub", "#holders .tools", ".flags"):
        assert not driver.find_element("css selector", hidden).is_displayed(), hidden
    assert len(rows(driver, "holders")) == 7
    assert len(driver.find_elements("css selector", ".failure details[open] li")) == 4
    assert driver.execute_script(
        "return document.querySelector('#chart canvas').getBoundingClientRect().width") <= 700
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})
    settle(driver)
    assert driver.find_element("css selector", ".bar").is_displayed()


def test_page_prints_to_pdf(show):
    driver = show()
    pdf = base64.b64decode(driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"])
    assert pdf.startswith(b"%PDF") and len(pdf) > 20000
    assert driver.execute_script("return document.documentElement.hasAttribute('data-printing')") is False


@pytest.mark.parametrize("width", [380, 768, 1440, 3840])
def test_page_is_as_wide_as_the_screen(show, width):
    driver = show()
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                           {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False})
    settle(driver)
    settle(driver)
    assert driver.execute_script("return document.documentElement.scrollWidth") <= width
    wide = driver.execute_script("return document.querySelector('#chart canvas').getBoundingClientRect().right")
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert wide <= width


@pytest.fixture
def wide(driver):
    """A function that makes the window so many pixels wide, until the test ends."""
    def set_width(width):
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                               {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False})
        settle(driver)
        settle(driver)

    yield set_width
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.mark.parametrize("width", [600, 800, 1300])
def test_the_menu_has_all_its_entries_in_sight_above_the_moments_bar(show, wide, width):
    driver = show()
    wide(width)
    hidden, bar, top = driver.execute_script("""
        const bar = document.querySelector(".bar").getBoundingClientRect();
        const hidden = Array.from(document.querySelectorAll("#contents a")).filter((link) => {
          const {left, right, bottom} = link.getBoundingClientRect();
          return left < bar.left || right > bar.right || bottom > bar.bottom;
        });
        return [hidden.map((link) => link.textContent), bar.height,
                parseFloat(getComputedStyle(document.getElementById("scrub")).top)];""")
    assert hidden == [] and bar < top < bar + 20


def test_what_scrolls_sideways_has_a_shadow_there(show, wide):
    driver = show()
    wide(390)
    for part in ("#contents", "#holders .table"):
        assert "gradient" in driver.execute_script(
            "return getComputedStyle(document.querySelector(arguments[0])).backgroundImage", part), part


def test_a_wide_table_is_a_list_on_a_narrow_screen(show, wide):
    driver = show("compared")
    wide(390)
    right = "return Math.max(...Array.from(document.querySelectorAll(arguments[0]), (cell) => cell.getBoundingClientRect().right))"
    for part in ("#leaks td", "#labels td", "#comparison td"):
        assert driver.execute_script(right, part) <= 390, part
    assert driver.execute_script(
        "return getComputedStyle(document.querySelectorAll('#leaks td')[3], '::before').content") == '"Grows by: "'


def test_a_long_name_does_not_make_the_page_wide(driver, tmp_path):
    import assemble
    import stories
    recording = stories.training_recording()[0]
    recording["marks"] = [[us, number, "Optimizer.zero_grad#" * 8] for us, number, _ in recording["marks"]]
    recording["file"] = "/" + "folder" * 20
    path = tmp_path / "long.html"
    path.write_text(assemble.page(stories.models.model(recording)))
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                           {"width": 380, "height": 900, "deviceScaleFactor": 1, "mobile": False})
    driver.get(path.as_uri())
    settle(driver)
    wide = driver.execute_script("return document.documentElement.scrollWidth")
    title = driver.execute_script("return document.getElementById('scrub-title').getBoundingClientRect().width")
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert wide <= 380 and title > 60


@pytest.mark.parametrize("story", ["training", "bare", "compared"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(show, story, scheme):
    driver = show(story, prefers_color_scheme=scheme)
    settle(driver)
    found = Axe().run(driver)["violations"]
    assert [(rule["id"], rule["impact"], rule["nodes"][0]["html"]) for rule in found
            if rule["impact"] in ("moderate", "serious", "critical")] == []


def test_nothing_is_loaded_and_no_handler_stands_in_the_markup(show):
    driver = show()
    assert driver.execute_script(
        "return performance.getEntriesByType('resource').map((entry) => entry.name)") == []
    assert driver.execute_script("""return Array.from(document.querySelectorAll("*")).flatMap((node) =>
        Array.from(node.attributes).map(({name}) => name)).filter((name) => name.startsWith("on"));""") == []


def test_policy_of_the_page_refuses_requests_and_foreign_scripts(show):
    driver = show()
    driver.execute_async_script("""const done = arguments[0]; window.refused = [];
        document.addEventListener("securitypolicyviolation", (event) => window.refused.push(event.effectiveDirective));
        const script = document.createElement("script"); script.textContent = "window.foreign = 1"; document.body.append(script);
        fetch("https://example.org/").catch(() => setTimeout(done, 50));""")
    assert driver.execute_script("return [window.foreign === undefined, window.refused.sort()]") == [
        True, ["connect-src", "script-src-elem"]
    ]
    driver.get_log("browser")  # the complaints that were meant
