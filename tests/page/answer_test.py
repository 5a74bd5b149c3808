"""The page says in words what failed, who held the memory, what would have helped, and what leaks."""

import assemble
import stories
from conftest import rows, settle, text
from stories import MIB


def test_headline_names_the_failed_request_and_its_step(show):
    assert text(show(), "h1") == "A request for 96 MiB found no memory at 203 ms, after “step 8”"


def test_headline_of_a_program_that_did_not_fail_is_its_peak(show):
    assert text(show("bare"), "h1").startswith("Memory peaked at 10 MiB")


def test_failure_says_what_was_asked_why_it_did_not_fit_and_what_would_have_helped(show):
    card = text(show(), ".card.failure")
    assert "96 MiB was asked for on stream 0, labelled “train / forward / attention”, from attention.py:42 in attend" in card
    assert "The limit was 384 MiB, so 44 MiB more could be reserved" in card
    assert "33 MiB is free in pieces of at most 12 MiB" in card
    assert "A limit that is 64 MiB higher would have been enough" in card


def test_largest_holder_at_the_failure_stands_first(show):
    first = text(show(), ".bars li")
    assert "attention.py:42 in attend" in first and "120 MiB" in first


def test_leak_is_named_with_its_line(show):
    driver = show()
    assert ("train.py:88 in log_loss holds 9 MiB in 9 blocks at the failure. The oldest of them was allocated at "
            "100 ms. It grows by about 1 MiB in each step.") in text(driver, "#answer")
    assert rows(driver,
                "leaks") == [["train.py:88 in log_loss", "train", "", "1 MiB a step", "9", "9 MiB", "100 ms"]]


def test_page_opens_at_the_failure_and_its_button_leads_there(show):
    driver = show()
    settle(driver)
    assert text(driver, "#scrub-title") == "Failed request"
    driver.execute_script("cistern.view.goMoment(0)")
    driver.execute_script("document.querySelector('.card.failure .go').click()")
    settle(driver)
    assert text(driver, "#scrub-title") == "Failed request"


def test_parts_without_content_say_why(show):
    driver = show("bare")
    for section, words in {
            "free": "does not say which memory was reserved", "flame": "no call stacks",
            "leaks": "No call site keeps growing"
    }.items():
        assert words in text(driver, f"#{section}")


def test_sections_for_which_there_is_nothing_leave_no_card_and_no_entry(show):
    driver = show("bare")
    menu = text(driver, "#contents")
    for section, name in {"labels": "Peaks of labels", "calls": "Device calls", "comparison": "Comparison"}.items():
        assert not driver.find_element("id", section).is_displayed()
        assert name not in menu
    assert "Peaks of labels Device calls Notes" in text(show(), "#contents")


def test_menu_has_the_headings_of_the_sections(show):
    entries = show().execute_script("""return Array.from(document.querySelectorAll("#contents a")).slice(1)
        .map((a) => [a.textContent, document.querySelector(`${a.getAttribute("href")} h2`).textContent]);""")
    assert len(entries) > 8 and all(name == heading for name, heading in entries)


def test_title_keeps_a_number_and_its_unit_together(show):
    title = show().execute_script("return document.querySelector('h1').textContent")
    assert "96\u00a0MiB" in title and "203\u00a0ms" in title and "step 8" in title


def failure_in_words(driver, frames, **moment):
    """The sentence on a request's stack ("own", "foreign" or none), and what a moment lacks in bytes."""
    return driver.execute_script(
        """const {names} = cistern.view;
        return [cistern.sentences.noLine({hasProgram: (stack) => arguments[0] === "own", site: () => "??:0 in call"},
                                         {stack: arguments[0] === "" ? 0 : 1}),
                cistern.sentences.lacking({request: null, ...arguments[1]})];""", frames, moment)


def test_a_request_without_a_line_of_the_program_says_so(show):
    driver = show()
    assert failure_in_words(driver, "")[0] == "The recording has no call stack for this request."
    assert failure_in_words(driver, "foreign")[0].startswith("No line of the program is in its call stack")
    assert failure_in_words(driver, "own")[0] == ""


def test_memory_that_is_too_little_even_together_is_said_first(show):
    driver = show()
    much = {"request": {"bytes": 100 * MIB}, "reserved": 80 * MIB, "allocated": 70 * MIB, "asked": 69 * MIB}
    assert failure_in_words(driver, "", available=20 * MIB, **much)[1] == 70 * MIB
    assert failure_in_words(driver, "", available=90 * MIB, **much)[1] is None
    assert failure_in_words(driver, "", available=None, limit=100 * MIB, **much)[1] == 70 * MIB
    assert failure_in_words(driver, "", available=None, limit=None, **much)[1] is None
    card = text(driver, ".card.failure")
    assert "All that is free and all that could still be reserved are" in card
    assert card.index("All that is free") < card.index("in pieces")


def test_what_the_device_had_free_is_said(driver, tmp_path):
    recording = stories.failing_recording()
    for moment in recording["moments"]:
        moment["device_free"] = 77
    path = tmp_path / "free.html"
    path.write_text(assemble.page(stories.models.model(recording)))
    driver.get(path.as_uri())
    assert "The device had 77 B free." in text(driver, ".card.failure")


def test_sizes_of_the_model_are_written_as_the_page_writes_them(show):
    told = show().execute_script("return cistern.units.told('392.63 MiB, 1.50 GiB and 30.00 KiB of 7 blocks')")
    assert told == "393 MiB, 1.5 GiB and 30 KiB of 7 blocks"


def test_snapshot_of_one_moment_is_drawn_whole(show):
    driver = show("snapshot")
    settle(driver)
    assert text(driver, "h1") == "12 MiB was in use when the snapshot was taken"
    assert "of one moment" in text(driver, "#time")
    assert rows(driver, "holders")[0][0] == "model.py:31 in build"
    assert "could not be drawn" not in text(driver, "main")
    assert text(driver, "#map-about").startswith("Exact")


def test_recording_without_events_says_so_everywhere(show):
    driver = show("empty")
    assert text(driver, "h1") == "Nothing was allocated"
    for section, words in {"moment": "The recording has no events", "sizes": "Nothing was allocated",
                           "flame": "Nothing lived at the peak", "holders": "No block lives"}.items():
        assert words in text(driver, f"#{section}")
    assert "could not be drawn" not in text(driver, "main")


def test_labels_and_device_calls_have_their_numbers(show):
    driver = show()
    assert rows(driver, "labels")[0] == ["train", "420 MiB", "203 ms", "101 MiB"]
    assert rows(driver, "calls") == [["Segments taken from the device", "13", "340 MiB"]]


def test_of_many_failures_the_first_stand_open(show):
    driver = show("failures")
    assert text(driver, "h1").endswith("the first of 5 that failed")
    assert len([card for card in driver.find_elements("css selector", ".card.failure") if card.is_displayed()]) == 3
    driver.find_element("css selector", "details.card > summary").click()
    assert len([card for card in driver.find_elements("css selector", ".card.failure") if card.is_displayed()]) == 5


def test_comparison_says_what_grew_and_what_went(show):
    driver = show("compared")
    assert text(driver, "h1").startswith("A request for 96 MiB")
    assert driver.execute_script("return document.getElementById('recording').selectedOptions[0].text") == "tuesday"
    assert "The peak grew by 80 MiB: from 400 MiB to 480 MiB" in text(driver, "#comparison")
    assert rows(driver, "comparison") == [[
        "attention.py:42 in attend", "train / forward / attention", "100 MiB", "180 MiB", "+80 MiB", "3 → 5"
    ], ["train.py:88 in log_loss", "train", "9 MiB", "0 B", "−9 MiB", "9 → 0"]]


def test_selector_shows_another_recording(show):
    driver = show("both")
    driver.execute_script("""const select = document.getElementById("recording"); select.value = 1;
        select.dispatchEvent(new Event("change"));""")
    assert text(driver, "h1").startswith("Memory peaked at 10 MiB")
    assert "no call stacks" in text(driver, "#flame")


def test_a_name_from_a_recording_is_text_and_never_markup(driver, tmp_path):
    recording = stories.bare_recording()
    recording.update(name="<img src=x onerror=alert(1)>",
                     notes=["</script><script>document.title = 'taken'</script>"])
    path = tmp_path / "page.html"
    path.write_text(assemble.page(stories.models.model(recording)))
    driver.get(path.as_uri())
    assert driver.find_elements("css selector", "img") == []
    assert driver.title.startswith("<img src=x")


def test_damaged_data_is_said(driver, pages, tmp_path):
    import assemble
    path = tmp_path / "page.html"
    path.write_text(assemble.template().replace(assemble.MARKER, "AAAA"))
    driver.get(path.as_uri())
    assert text(driver, "#loading").startswith("The page's data cannot be read")
