"""The timeline, the map, the flame graph and the bars: what they draw, and how they answer."""

import assemble
import made_up_model as models
import stories
from conftest import fail_index, settle, text
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

MIB = stories.MIB


def choose(driver, name, value):
    driver.execute_script(
        "document.querySelector(`input[name='${arguments[0]}'][value='${arguments[1]}']`).click()", name, value)
    settle(driver)


def colours(driver, selector):
    """How many pixels of a canvas have each of the page's series' colours."""
    return driver.execute_script(
        """
        const canvas = document.querySelector(arguments[0]);
        const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
        const counts = {};
        for (let i = 0; i < data.length; i += 4) {
          if (data[i + 3] < 255) continue;
          const key = d3.rgb(data[i], data[i + 1], data[i + 2]).hex();
          counts[key] = (counts[key] || 0) + 1;
        }
        return cistern.colours.now().series.map((colour) => counts[d3.rgb(colour).hex()] || 0);""", selector)


def test_timeline_stacks_by_what_is_chosen(show):
    driver = show()
    for by, kinds in {"pool": 2, "stream": 2, "label": 5, "site": 6}.items():
        choose(driver, "stack-by", by)
        assert sum(count > 0 for count in colours(driver, "#chart canvas")) == kinds, by


def test_legend_hides_a_series_and_shows_it_again(show):
    driver = show()
    choose(driver, "stack-by", "label")
    before = colours(driver, "#chart canvas")
    button = driver.find_element("css selector", "#time .legend button")
    button.click()
    assert button.get_attribute("aria-pressed") == "false"
    assert colours(driver, "#chart canvas")[0] == 0
    button.click()
    assert colours(driver, "#chart canvas") == before


def test_legend_tells_of_other_policies(show):
    legend = text(show(), "#time .legend")
    assert "Reserved under torch fails at 203 ms" in legend and "Reserved under torch-expandable peak 430 MiB" in legend
    assert "Limit 384 MiB" in legend


def test_chart_explains_its_signs_its_dashes_and_the_policies(show):
    driver = show()
    signs = text(driver, "#time .signs")
    assert "✕ failed request" in signs and "▲ peak" in signs and "■ end" in signs and "marks of the program" in signs
    dashes = driver.execute_script("""return Array.from(document.querySelectorAll("#time .legend .dash line"))
        .map((line) => line.getAttribute("stroke-dasharray"));""")
    assert dashes == ["6 3", "2 3", "8 4"]
    assert "would have reserved for the same requests" in text(driver, "#policies-about")


def test_peak_has_a_sign_beside_a_failure(show):
    driver = show()
    places = driver.execute_script("""return ["failure", "peak"].map((kind) =>
        document.querySelector(`.flag.${kind}`).getBoundingClientRect().left);""")
    assert abs(places[0] - places[1]) > 20


def test_chart_opens_where_the_events_are(driver, tmp_path):
    import assemble
    recording = stories.training_recording()[0]
    times = [m["at_us"] for m in recording["moments"] if m["kind"] in ("failure", "peak")]
    first, last = min(times), max(times)
    recording["timeline"]["busy"] = [first - 1000, last + 1000]
    path = tmp_path / "busy.html"
    path.write_text(assemble.page(models.model(recording)))
    driver.get(path.as_uri())
    settle(driver)
    shown = "return document.querySelector('#chart').timeline.shown"
    start, end = driver.execute_script(shown)
    assert first - 2000 < start < first and last < end < last + 2000
    assert "nine of ten events" in text(driver, "#chart-part")
    button = driver.find_element("xpath", "//*[@id='time']//button[text()='Show all']")
    driver.execute_script("arguments[0].click()", button)  # the page may still scroll
    settle(driver)
    assert driver.execute_script(shown)[0] == 0


def test_a_peak_narrower_than_a_pixel_is_drawn_whole_and_marked(driver, tmp_path):
    recording = stories.training_recording()[0]
    columns, end = 4000, recording["duration_us"]
    asked = [columns if column == 1501 else 100 for column in range(columns)]
    recording["timeline"].update(edges=[end * i / columns for i in range(columns + 1)], asked=asked, reserved=None,
                                 stacked={"pool": [], "stream": [], "label": [], "site": []}, policies=[], limit=None)
    path = tmp_path / "narrow.html"
    path.write_text(assemble.page(models.model(recording)))
    driver.get(path.as_uri())
    driver.execute_script("cistern.view.goTime(arguments[0])", end * 1501.5 / columns)
    settle(driver)
    drawn, meant, marked, top = driver.execute_script("""
        const {timeline} = document.getElementById("chart");
        const place = Math.round(timeline.x(timeline.data.edges[1501])), scale = window.devicePixelRatio;
        const pixels = timeline.canvas.getContext("2d");
        const [r, g, b] = pixels.getImageData(place * scale, (timeline.y(3900) + 2) * scale, 1, 1).data;
        return [d3.rgb(r, g, b).hex(), d3.rgb(cistern.colours.now().series[0]).hex(),
                Number(document.querySelector("#chart circle.now").getAttribute("cy")), timeline.y(4000)];""")
    assert drawn == meant and marked == top


def test_map_legend_has_what_the_map_shows(show):
    driver = show()
    driver.execute_script("cistern.view.goMoment(arguments[0])", fail_index(driver))
    settle(driver)
    legend = text(driver, "#map .legend")
    assert "no memory there" in legend and "reserved, free" in legend
    assert "all others" not in legend and "waits for other streams" not in legend


def test_blocks_that_sleep_are_shown_so_until_they_wake(show):
    driver = show("sleeping")
    state = "const at = arguments[0], window = cistern.view.window(0); return [...cistern.asleep.blocks(window, at)]"
    assert [driver.execute_script(state, at) for at in (4, 5, 6)] == [[0, 0], [0, 1], [0, 0]]
    for at, asleep in ((4, False), (5, True), (6, False)):
        driver.execute_script("cistern.view.goEvent(0, arguments[0])", at)
        settle(driver)
        assert ("asleep: no memory until its pool wakes" in text(driver, "#map .legend")) == asleep
        assert ("Pools are asleep: 12 MiB of blocks has no memory" in text(driver, "#free")) == asleep
        assert driver.execute_script("return cistern.state.sums(cistern.view.window(0), arguments[0]).asked",
                                     at) == (6 if asleep else 18) * MIB
        assert driver.execute_script("return cistern.view.window(0).asked[arguments[0]]",
                                     at) == (6 if asleep else 18) * MIB
        assert text(driver, "#holders tbody").count("model.py:31") == (1 if asleep else 2)
    driver.execute_script("cistern.view.goEvent(0, 5)")
    box = driver.find_element("css selector", "#map-box")
    box.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    settle(driver)
    assert "12 MiB from model.py:31" in text(driver, "#map-block")
    assert "asleep: no memory until its pool wakes" in text(driver, "#map-block")


def test_flame_graph_of_the_failure_and_of_the_chosen_moment(show):
    driver = show()
    assert text(driver, "#flame-detail").startswith("All call stacks: 293 MiB")
    choose(driver, "flame-kind", "moment")
    driver.execute_script("cistern.view.goEvent(0, 3)")
    settle(driver)
    sums = driver.execute_script("return cistern.state.sums(cistern.view.window(0), 3).asked")
    assert text(driver, "#flame-detail").startswith(f"All call stacks: {sums // MIB} MiB")


def test_two_stacks_of_one_line_are_told_apart_by_their_callers(show):
    names = show().execute_script("""const recording = {frames: [["main", "a.py", 1], ["f", "a.py", 2], ["g", "a.py", 3],
        ["keep", "b.py", 9], ["__libc_start_main", "??", 0]], stacks: [[0, 0], [0, 0], [1, 1], [2, 3], [1, 2], [4, 3], [0, 4]],
        labels: [["", 0]], timeline: {stacked: {}}};
        const names = new cistern.Names(recording);
        return [names.apart(3, [3, 5]), names.apart(5, [3, 5]), names.apart(3, [3]), names.hasProgram(6),
                names.difference(3, [3])];""")
    assert names == [
        "b.py:9 in keep, called from a.py:2 in f", "b.py:9 in keep, called from a.py:3 in g", "b.py:9 in keep",
        False, ""]


def test_zoom_buttons_wheel_and_brush_change_what_is_shown(show):
    driver = show()
    width = "const [from, to] = document.querySelector('#chart').timeline.shown; return to - from"
    whole = driver.execute_script(width)
    driver.find_element("xpath", "//*[@id='time']//button[text()='Zoom in']").click()
    settle(driver)
    assert abs(driver.execute_script(width) - whole / 2) < 1
    assert driver.find_elements("css selector", ".strip .selection")[0].get_attribute("width") is not None
    driver.find_element("xpath", "//*[@id='time']//button[text()='Show all']").click()
    settle(driver)
    assert abs(driver.execute_script(width) - whole) < 1e-3
    strip = driver.find_element("css selector", ".strip")
    driver.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", strip)
    ActionChains(driver).move_to_element(strip).click_and_hold().move_by_offset(200, 0).release().perform()
    settle(driver)
    assert driver.execute_script(width) < whole / 3
    driver.execute_script(
        """const chart = document.getElementById("chart"), box = chart.getBoundingClientRect();
        chart.dispatchEvent(new WheelEvent("wheel", {deltaY: 4000, ctrlKey: true, clientX: box.left + 400, clientY: box.top + 50,
                                                     bubbles: true, cancelable: true}));""")
    settle(driver)
    assert abs(driver.execute_script(width) - whole) < 1e-3


def test_hover_over_the_timeline_tells_the_values(show):
    driver = show()
    chart = driver.find_element("id", "chart")
    driver.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", chart)
    ActionChains(driver).move_to_element(chart).perform()
    hint = text(driver, "#hint")
    column = driver.execute_script(
        "const box = document.querySelector('#chart'); return box.timeline.view.column("
        "box.timeline.x.invert(box.clientWidth / 2))")
    asked = driver.execute_script("return cistern.view.recording.timeline.asked[arguments[0]]", column)
    assert f"In use, in all {round(asked / MIB)} MiB" in hint and "Reserved 340 MiB" in hint


def test_timeline_as_a_table_has_the_peaks(show):
    driver = show()
    driver.find_element("css selector", ".as-table summary").click()
    settle(driver)
    table = text(driver, ".as-table")
    assert "293 MiB" in table and "340 MiB" in table and table.count("MiB") > 40


def test_map_draws_each_label_in_its_share(show):
    driver = show()
    choose(driver, "colour-by", "label")
    driver.execute_script("cistern.view.goMoment(arguments[0])", fail_index(driver))
    settle(driver)
    drawn = colours(driver, "#map-box canvas")
    sums = driver.execute_script(
        """const ranks = cistern.view.ranks(), sums = {};
        cistern.view.recording.moments[arguments[0]].holders.forEach((row) => {
          sums[ranks.get(row[1])] = (sums[ranks.get(row[1])] || 0) + row[5]; });
        return sums;""", fail_index(driver))
    total, pixels = sum(sums.values()), sum(drawn)
    for rank, size in sums.items():
        assert abs(drawn[int(rank)] / pixels - size / total) < 0.02


def test_map_names_the_block_under_the_pointer_and_under_the_keys(show):
    driver = show()
    driver.execute_script("cistern.view.goMoment(arguments[0])", fail_index(driver))
    box = driver.find_element("id", "map-box")
    driver.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", box)
    settle(driver)
    ActionChains(driver).move_to_element_with_offset(box, 0, -box.size["height"] // 2 + 6).perform()
    assert "10 MiB from model.py:31 in build, labelled “train”, pool default, stream 0; lives for" in text(
        driver, "#hint")
    box.send_keys(Keys.ARROW_RIGHT)
    first = text(driver, "#map-block")
    assert first.startswith("10 MiB from model.py:31")
    for _ in range(6):
        box.send_keys(Keys.ARROW_RIGHT)
    assert text(driver, "#map-block").startswith("8 MiB from optimizer.py:55")
    box.send_keys(Keys.ESCAPE)
    assert text(driver, "#map-block") == ""


def test_search_of_holders_dims_all_other_blocks_of_the_map(show):
    driver = show()
    choose(driver, "colour-by", "label")
    driver.execute_script("cistern.view.goMoment(arguments[0])", fail_index(driver))
    settle(driver)
    before = colours(driver, "#map-box canvas")
    driver.find_element("id", "holders-search").send_keys("attention.py")
    settle(driver)
    after = colours(driver, "#map-box canvas")
    assert [count > 0 for count in after].count(True) == 1 and after[0] == before[0]
    assert "Pale: what the search above does not look for" in text(driver, "#map-about")


def test_zoomed_timeline_draws_every_event_of_a_window(show):
    driver = show()
    window = driver.execute_script("""const [start, end] = cistern.view.span(1);
        document.querySelector("#chart").timeline.show([start, end]); return Array.from(cistern.view.window(1).asked);"""
                                   )
    settle(driver)
    program, failed, _ = stories.training()
    first = failed[0] - 60
    known = models.states(program, *range(first, first + len(window)))
    assert window == [known[first + at].asked for at in range(len(window))]
    dark = driver.execute_script(
        """const canvas = document.querySelector("#chart canvas"), cursor = d3.rgb(cistern.colours.now().cursor);
        const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data; let n = 0;
        for (let i = 0; i < data.length; i += 4) n += data[i + 3] === 255 && data[i] === cursor.r && data[i + 2] === cursor.b;
        return n;""")
    assert dark > 200


def test_map_zooms_and_shows_all_again(show):
    driver = show()
    settle(driver)
    whole = text(driver, "#map-about")
    box = driver.find_element("id", "map-box")
    box.send_keys("+")
    settle(driver)
    assert text(driver, "#map-about") != whole
    box.send_keys("0")
    settle(driver)
    assert text(driver, "#map-about") == whole


def test_map_is_coarse_between_windows(show):
    driver = show()
    driver.execute_script("cistern.view.goTime(100000)")
    settle(driver)
    assert text(driver, "#map-about").startswith("Coarse: the darker, the more of 8 MiB")


def test_a_release_cuts_the_pieces_that_it_names(show):
    pieces = show().execute_script("""return cistern.reservedPieces([[100, 50, 0, 0, 1]], [
        {kind: 6, address: 110, bytes: 10, at: 1}, {kind: 5, address: 300, bytes: 20, pool: 1, stream: 2, at: 2},
        {kind: 4, address: 300, bytes: 20, at: 3}]).map(({address, bytes, from, until}) => [address, bytes, from, until]);"""
                                   )
    assert pieces == [[100, 50, 0, 1], [100, 10, 1, None], [120, 30, 1, None], [300, 20, 2, 3]]


def test_tape_leaves_out_the_gaps_and_holds_the_byte_under_the_pointer(show):
    found = show().execute_script("""
        const tape = new cistern.Tape([[1000, 100], [5000, 50], [1100, 10]]);
        const view = new cistern.TapeView(1 << 24);
        view.fit(10, 500, 320);
        const before = view.at(200, 50);
        view.zoom(8, 200, 50);
        return [tape.length, tape.offset(5010), tape.offset(3000), tape.address(120), Math.abs(view.at(200, 50) - before) < 1e-3];"""
                                  )
    assert found == [160, 120, -1, 5010, True]


def frame(driver, name):
    return next(g for g in driver.find_elements("css selector", "#flame-box g")
                if g.get_attribute("aria-label").startswith(name))


def test_flame_graph_has_the_bytes_of_each_frame(show):
    driver = show()
    labels = [g.get_attribute("aria-label") for g in driver.find_elements("css selector", "#flame-box g")]
    assert "all, 293 MiB" in labels and "attend  attention.py:42, 120 MiB" in labels
    assert any(label.startswith("step  train.py:71, 18") for label in labels)


def test_flame_graph_zooms_by_click_and_by_key(show):
    driver = show()
    frame(driver, "step").click()
    settle(driver)
    assert text(driver, "#flame-detail").startswith("step train.py:71: 183 MiB in 18 blocks")
    assert not [
        g for g in driver.find_elements("css selector", "#flame-box g")
        if "build" in g.get_attribute("aria-label")
    ]
    driver.find_element("css selector", "#flame-box g[tabindex='0']").send_keys(Keys.ESCAPE)
    settle(driver)
    assert frame(driver, "build")
    driver.find_element("css selector", "#flame-box g[tabindex='0']").send_keys(Keys.ARROW_DOWN)
    assert driver.switch_to.active_element.get_attribute("aria-label").startswith("main")
    driver.switch_to.active_element.send_keys(Keys.ARROW_DOWN)
    driver.switch_to.active_element.send_keys(Keys.ENTER)
    settle(driver)
    assert text(driver, "#flame-detail").startswith("step")


def test_flame_graph_search_marks_and_sums(show):
    driver = show()
    driver.find_element("id", "flame-search").send_keys("module.py")
    assert text(driver, "#flame-found") == "174 MiB match, 59.4 % of all"
    assert len(driver.find_elements("css selector", "#flame-box g.found")) == 1


def test_flame_graph_of_the_longest_lived_tells_their_age(show):
    driver = show()
    choose(driver, "flame-kind", "longest")
    assert "living 250 ms on average" in text(driver, "#flame-detail")


def test_bars_of_sizes_and_lifetimes_have_their_numbers(show):
    driver = show()
    labels = [svg.get_attribute("aria-label") for svg in driver.find_elements("css selector", "#sizes svg")]
    assert labels[
        0] == "Allocations by size, from. 1 MiB: 9; 2 MiB: 0; 4 MiB: 9; 8 MiB: 56; 16 MiB: 0; 32 MiB: 27"
    assert "32 MiB: 1.05 GiB" in labels[1] and len(labels) == 4


def test_units_read_well(show):
    found = show().execute_script("""const {bytes, duration, moment} = cistern.units;
        return [bytes(0), bytes(1023), bytes(1536), bytes(1048575), bytes(-3 * 2 ** 30), bytes(null), duration(0.5 * 1e6), duration(192e6),
                duration(2 * 3600e6), moment(192123000, true), moment(5e6, true), moment(7000, false)];""")
    assert found == [
        "0 B", "1023 B", "1.5 KiB", "1 MiB", "−3 GiB", "not known", "500 ms", "3 min 12 s", "2 h 0 min",
        "3 min 12.123 s", "5 s", "event 7,000"
    ]


def test_functions_of_cpp_lose_their_arguments(show):
    found = show().execute_script("""const {functionOf} = cistern.Names;
        return ["at::native::empty<std::pair<int, long>>(c10::IntArrayRef, bool)", "(anonymous namespace)::run(int)",
                "f::operator()(int) const", "<lambda>"].map((name) => functionOf([name, "", 0]));""")
    assert found == ["at::native::empty", "run", "f::operator()", "<lambda>"]


def test_program_is_told_from_libraries_with_and_without_lines(show):
    found = show().execute_script("""const {isLibrary} = cistern.Names; return [
        ["f", "/srv/me/train.py", 3], ["f", "/srv/me/app+0x12ab", 0], ["f", "/usr/local/app/train.py", 3], ["f", "train.py", 3],
        ["f", "/usr/lib/python3/x.py", 3], ["f", "/opt/conda/lib/python3.11/x.py", 3], ["f", "/srv/me/libc10.so+0x1", 0],
        ["f", "??", 0], ["std::vector<int>::push_back(int)", "/srv/me/app+0x1", 0], ["f", "<frozen importlib>", 3]
      ].map(isLibrary);""")
    assert found == [False] * 4 + [True] * 6


def test_sites_read_as_lines_or_as_functions(show):
    found = show().execute_script("""const {lineOf} = cistern.Names; return [
        ["forward", "/srv/me/model.py", 3], ["<module>", "model.py", 3], ["step(int)", "/srv/me/app+0x12ab", 0], ["app+0x12ab", "/srv/me/app+0x12ab", 0],
        ["forward", "??", 0], ["", "", 0]].map(lineOf);""")
    assert found == ["model.py:3 in forward", "model.py:3", "step in app", "app+0x12ab", "forward", "unknown function"]


def test_stacks_from_one_line_are_told_apart_by_the_library_that_they_reached(show):
    found = show().execute_script("""
        const frames = [["step", "train.py", 3], ["adam", "/usr/lib/python3/adam.py", 9], ["sgd", "/usr/lib/python3/sgd.py", 7],
                        ["at::empty", "??", 0], ["conv", "/opt/torch/site-packages/torch/nn/conv.py", 5]];
        const stacks = [[0, 0], [0, 0], [1, 1], [1, 2], [2, 3], [3, 4]];
        const names = new cistern.Names({frames, stacks, timeline: {stacked: {site: [[3, []], [4, []]]}}});
        return [names.key("site", 3), names.key("site", 4), names.through(1), names.through(5)];""")
    assert found == ["train.py:3 in step through sgd.py:7 in sgd", "train.py:3 in step through adam.py:9 in adam", "",
                     "sgd.py:7 in sgd"]


def test_hover_over_free_memory_tells_whose_it_is(show):
    driver = show()
    driver.execute_script("cistern.view.goMoment(arguments[0])", fail_index(driver))
    settle(driver)
    x, y, free = driver.execute_script("""const window = cistern.view.window(1), {at} = cistern.view.position;
        const found = []; cistern.state.eachFree(window, at, (...piece) => found.push(piece));
        const [address, bytes] = found.reduce((a, b) => a[1] > b[1] ? a : b);
        const box = document.getElementById("map-box"), {sight, tape} = box.map.layout(1);
        box.scrollIntoView({block: "center"});
        let place = null;
        sight.spans(tape.offset(address) + bytes / 2, 1, (x, y) => { place = [x, y + 5]; });
        return [...place, bytes];""")
    box = driver.find_element("id", "map-box")
    ActionChains(driver).move_to_element_with_offset(box, x - box.size["width"] // 2, y - box.size["height"] // 2).perform()
    assert f"{free // MIB} MiB free, of pool" in text(driver, "#hint")
