"""The page says in words what failed, who held the memory, what would have helped, and what leaks."""

from conftest import rows, settle, text


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
    assert "train.py:88 in log_loss has kept 9 blocks, 9 MiB, since 100 ms. It grows by 12.5 MiB a second" in text(
        driver, "#answer")
    assert rows(driver,
                "leaks") == [["train.py:88 in log_loss", "train", "", "12.5 MiB/s", "9", "9 MiB", "100 ms"]]


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
            "leaks": "No call site keeps growing", "labels": "no labels", "calls": "does not tell of calls",
            "comparison": "This page has one recording"
    }.items():
        assert words in text(driver, f"#{section}")


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
    import assemble
    import stories
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
