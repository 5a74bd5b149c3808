"""The chosen moment: sliders, keys and marks lead to it, and every number follows."""

import made_up_model as models
import pytest
import stories
from conftest import fail_index, rows, settle, text
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

MIB = stories.MIB


def go_event(driver, at):
    """Moves the slider of events, as a hand would."""
    driver.execute_script(
        """const slider = document.getElementById("along-events"); slider.value = arguments[0];
        slider.dispatchEvent(new Event("input"));""", at)
    settle(driver)


def at_failure(driver):
    driver.execute_script("cistern.view.goMoment(arguments[0])", fail_index(driver))
    settle(driver)


@pytest.fixture(scope="module")
def program():
    return stories.training()[0]


def test_every_event_of_a_window_has_the_sums_of_the_program(show, program):
    driver = show()
    recording = driver.execute_script(
        "return cistern.view.recording.windows.map(({first, count}) => [first, count])")
    for index, (first, count) in enumerate(recording):
        known = models.states(program, *range(first, first + count + 1))
        sums = driver.execute_script(
            """const window = cistern.view.window(arguments[0]);
            return d3.range(window.count + 1).map((at) => cistern.state.sums(window, at));""", index)
        for at, found in enumerate(sums):
            state = known[first + at]
            waiting = sum(event[3] for event in state.pending.values())
            assert [found["asked"], found["reserved"], found["waiting"],
                    found["blocks"]] == [state.asked, state.reserved(), waiting,
                                         len(state.live)], at
            assert found["free"] == state.reserved() - state.asked - waiting


def test_holders_of_every_event_are_those_of_the_program(show, program):
    driver = show()
    first, count = driver.execute_script(
        "const {first, count} = cistern.view.recording.windows[1]; return [first, count]")
    known = models.states(program, *range(first, first + count + 1))
    holders = driver.execute_script("""const window = cistern.view.window(1);
        return d3.range(window.count + 1).map((at) => cistern.state.holders(window, at));""")
    for at, found in enumerate(holders):
        assert sorted(found) == sorted(known[first + at].holders())


def test_holders_table_is_by_bytes_with_its_shares(show):
    driver = show()
    at_failure(driver)
    assert rows(driver, "holders")[:2] == [[
        "attention.py:42 in attend", "train / forward / attention", "pool default, stream 0", "3", "40 MiB",
        "120 MiB", "41 %"
    ], ["model.py:31 in build", "train", "pool default, stream 0", "6", "10 MiB", "60 MiB", "20.5 %"]]


def test_holders_group_by_line_and_by_label(show):
    driver = show()
    at_failure(driver)
    choose = "document.querySelector(`input[name='holders-by'][value='${arguments[0]}']`).click()"
    driver.execute_script(choose, "line")
    assert rows(driver, "holders")[1] == ["model.py:31 in build", "", "", "7", "12 MiB", "72 MiB", "24.6 %"]
    driver.execute_script(choose, "label")
    assert [row[0] for row in rows(driver, "holders")] == [
        "train / forward / attention", "train", "train / forward", "train / optimizer", "no label"]
    assert rows(driver, "holders")[1][3:6] == ["16", "12 MiB", "81 MiB"]


def test_a_line_of_the_program_unfolds_into_its_call_paths(show):
    driver = show()
    rows_of = """const {recording, names} = cistern.view;
        const stacks = Array.from(recording.stacks.keys()).filter((stack) => stack > 0);
        const other = stacks.find((stack) => stack !== 0 && names.site(stack).startsWith("model.py:64"));
        recording.stacks.push([recording.stacks[other][0] - 1, recording.stacks[other][1]]);
        const moment = recording.moments[arguments[0]];
        moment.holders.push([recording.stacks.length - 1, 0, 0, 0, 1, 1 << 20, 1 << 20]);"""
    driver.execute_script(rows_of, fail_index(driver))
    driver.execute_script("document.querySelector(`input[name='holders-by'][value='line']`).click()")
    at_failure(driver)
    summary = next(found for found in driver.find_elements("css selector", "#holders tbody summary")
                   if "2 call paths" in found.text)
    summary.click()
    settle(driver)
    assert len(driver.find_elements("css selector", "#holders tbody .paths > li")) == 2


def test_a_failed_request_sticks_out_past_the_limit(show):
    driver = show()
    at_failure(driver)
    ends = driver.execute_script("""return [".balance .asked-for", ".balances > .limit"].map((selector) =>
        document.querySelector(selector).getBoundingClientRect().right);""")
    assert ends[0] > ends[1] + 5
    assert "Limit 384 MiB" in text(driver, "#balance")


def test_scrubbing_events_changes_holders_and_says_where(show):
    driver = show()
    at_failure(driver)
    go_event(driver, 0)
    first = driver.execute_script("return cistern.view.recording.windows[1].first")
    assert text(driver, "#scrub-about") == f"as of event {first}"
    assert text(driver, "#scrub-title") == "Between moments"
    before = rows(driver, "holders")
    go_event(driver, 30)
    assert rows(driver, "holders") != before


def test_search_finds_by_frame_label_and_library(show):
    driver = show()
    at_failure(driver)
    search = driver.find_element("id", "holders-search")
    for words, found in {
            "attend": "1 holder of 120 MiB", "module.py": "2 holders of 174 MiB",
            "optimizer": "1 holder of 32 MiB", "nobody": "0 holders of 0 B"
    }.items():
        search.clear()
        search.send_keys(words)
        settle(driver)
        assert text(driver, "#holders-found") == found
    assert rows(driver, "holders")[0][0] == "Nobody matches the search."


def test_stack_unfolds_with_the_innermost_frame_first(show):
    driver = show()
    at_failure(driver)
    driver.find_element("css selector", "#holders tbody summary").click()
    settle(driver)
    frames = [
        item.text for item in driver.find_elements("css selector", "#holders tbody tr:first-child .stack li")
    ]
    assert frames[0].startswith("attend") and frames[-1].startswith("main") and len(frames) == 4
    assert len(driver.find_elements("css selector", "#holders tbody tr:first-child .stack .library")) == 1


def test_outside_windows_the_largest_keys_of_the_timeline_stand_in(show):
    driver = show()
    driver.execute_script("cistern.view.goTime(100000)")
    settle(driver)
    assert driver.execute_script("return cistern.view.position.window") is None
    assert "told apart by call site" in text(driver, "#holders-found")
    column = driver.execute_script("return cistern.view.column(100000)")
    asked = driver.execute_script("return cistern.view.recording.timeline.asked[arguments[0]]", column)
    assert text(driver, "#balance").startswith(f"In use by the program {round(asked / MIB)} MiB")


def test_keys_on_the_chart_move_the_moment(show):
    driver = show()
    at_failure(driver)
    chart = driver.find_element("id", "chart")
    at = "return cistern.view.position.at"
    start = driver.execute_script(at)
    chart.send_keys(Keys.ARROW_LEFT)
    assert driver.execute_script(at) == start - 1
    chart.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    assert driver.execute_script(at) == start + 1
    chart.send_keys(Keys.HOME)
    settle(driver)
    assert text(driver, "#scrub-title") == "step 0"
    chart.send_keys(Keys.PAGE_DOWN)
    settle(driver)
    assert text(driver, "#scrub-title") == "step 1"
    assert "in use" in chart.get_attribute("aria-valuetext")


def test_click_on_the_chart_chooses_that_time(show):
    driver = show()
    chart = driver.find_element("id", "chart")
    driver.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", chart)
    ActionChains(driver).move_to_element(chart).click().perform()
    settle(driver)
    us = driver.execute_script("return cistern.view.position.us")
    assert driver.switch_to.active_element == chart
    place = driver.execute_script("return document.querySelector('#chart').timeline.x(cistern.view.position.us)")
    assert abs(place - chart.size["width"] / 2) < 1.5
    assert 0.4 < us / driver.execute_script("return cistern.view.recording.duration_us") < 0.6


def test_flags_and_chips_choose_their_moments(show):
    driver = show()
    driver.find_element("css selector", ".flag.failure").click()
    settle(driver)
    assert text(driver, "#scrub-title") == "Failed request"
    driver.execute_script("document.querySelector('.chip.mark').click()")
    settle(driver)
    assert text(driver, "#scrub-title") == "step 0"
    assert driver.find_element("css selector", ".chip.mark").get_attribute("aria-pressed") == "true"


def test_free_memory_of_a_failure_has_its_reasons_and_elsewhere_its_pieces(show):
    driver = show()
    at_failure(driver)
    assert [row[1:] for row in rows(driver, "free")] == [["33 MiB", "12 MiB"], ["14 MiB", "14 MiB"]]
    go_event(driver, 3)
    words = text(driver, "#free")
    pieces = driver.execute_script("return cistern.state.sums(cistern.view.window(1), 3)")
    assert f"in {pieces['pieces']} piece" in words and "340 MiB reserved is free" in words


def test_slash_goes_to_the_search(show):
    driver = show()
    driver.find_element("tag name", "body").send_keys("/")
    assert driver.switch_to.active_element.get_attribute("id") == "holders-search"
