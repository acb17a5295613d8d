"""The page in a real headless browser."""

import numpy as np
import pytest

from fedmpi.cli.report import Formats, report
from tests.analysis.tasks import blank, recorded


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A page about three made-up algorithms with two seeds each; one of them splits its clients."""
    folder = tmp_path_factory.mktemp("page")
    generator = np.random.default_rng(0)
    for algorithm in ("fedavg", "gcfl", "self-train"):
        for seed in (1, 2):
            _record(folder / "runs" / f"{algorithm}-{seed}", algorithm, seed, generator)
    report([folder / "runs"], formats=Formats(html=folder / "page.html"))
    return folder / "page.html"


def _record(folder, algorithm, seed, generator):
    config = {"suite": "made/up", "name": folder.name, "seed": seed, "rounds": 12}
    config |= {"dataset": {"name": "PROTEINS"}, "algorithm": {"name": algorithm}}
    clients = [f"client-{place}" for place in range(4)]
    partition = {
        "class_counts": np.array([[3, 1], [1, 3], [2, 2], [4, 0]]),
        "datasets": np.array(["PROTEINS"] * 4),
        "total_emd": np.array(0.5),
    }
    rounds = []
    for index in range(12):
        names = ("test_accuracy", "val_accuracy", "test_loss", "train_loss", "gradient_norm")
        scores = {name: generator.uniform(0.4, 0.9, 4) for name in names}
        group = [0, 0, 1, 1] if algorithm == "gcfl" and index > 5 else 0
        results, measured = blank(4, 2, group=group, client_bytes_up=250_000, **scores)
        measured["phase_seconds"][:] = generator.uniform(0.1, 0.3, (2, 6))
        measured["round_seconds"][()] = measured["virtual_seconds"][()] = 1.0
        measured["collective_bytes"][:] = 1000
        rounds.append((results, measured))
    recorded(folder, config, clients, rounds, partition=partition, provenance={"cpu_model": "made up"})


def test_it_opens_without_an_error_asks_for_nothing_and_has_what_a_screen_reader_needs(tab, page):
    tab.open(page)
    assert tab.run("document.querySelector('h1').textContent") == "made/up"
    assert tab.errors == []
    assert tab.requests == [page.resolve().as_uri()]
    lacking = "[...document.querySelectorAll('table.sortable')].filter(t => !t.caption || !t.querySelector('th[scope=col]') || !t.querySelector('th[scope=row]')).length"
    assert tab.run(lacking) == 0
    unnamed = "[...document.querySelectorAll('figure svg')].filter(s => !s.getAttribute('aria-label')).length"
    assert tab.run(unnamed) == 0
    assert tab.run("document.documentElement.lang") == "en"
    identifiers = tab.run("[...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(set(identifiers)) == len(identifiers)


def test_a_table_is_sorted_by_a_heading_and_back(tab, page):
    tab.open(page)
    column = "[...document.querySelectorAll('#all-runs tbody tr')].map(row => row.cells[3].textContent)"
    click = "document.querySelector('#all-runs thead th:nth-child(4) button').click()"
    assert tab.run(column) == ["1", "2", "1", "2", "1", "2"]
    tab.run(click)
    assert tab.run(column) == ["2", "2", "2", "1", "1", "1"]
    heading = "document.querySelector('#all-runs thead th:nth-child(4)').getAttribute('aria-sort')"
    assert tab.run(heading) == "descending"
    tab.run(click)
    assert tab.run(column) == ["1", "1", "1", "2", "2", "2"]
    assert tab.run(heading) == "ascending"


def show(tab, selector):
    """Bring an element into view; return its left end, its top, its width and its height."""
    tab.run(f"document.querySelector('{selector}').scrollIntoView({{block: 'center'}})")
    return tab.run(
        f"(r => [r.x, r.y, r.width, r.height])(document.querySelector('{selector}').getBoundingClientRect())"
    )


def point(tab, box, share, kind="mouseMoved", **more):
    """Move or press the mouse at a share of a box's width, half way down."""
    left, top, width, height = box
    tab.call("Input.dispatchMouseEvent", type=kind, x=left + width * share, y=top + height / 2, **more)


def test_a_method_is_hidden_and_shown_again_on_the_whole_page(tab, page):
    tab.open(page)
    seen = "filter(p => p.getBoundingClientRect().width)"
    shown = f"(place => [...document.querySelectorAll(place)].{seen}.length)"
    places = {
        "#curves [data-series=GCFL]": 8,  # a band and a line in four charts
        "#results figure [data-series=GCFL]": 1,
        "#time g[data-series=GCFL]": 1,
        "#cells-0 tbody tr, #matrix-0 tbody tr": 6,
        "#clients-0 thead th": 5,
        "#all-runs tbody tr": 6,
    }
    assert {place: tab.run(f"{shown}('{place}')") for place in places} == places
    tab.run("document.querySelector('#tradeoff [data-toggle=GCFL]').click()")
    assert [tab.run(f"{shown}('{place}')") for place in places] == [0, 0, 0, 4, 4, 4]
    pressed = "[...document.querySelectorAll('[data-toggle=GCFL]')].map(b => b.getAttribute('aria-pressed'))"
    assert set(tab.run(pressed)) == {"false"}
    tab.run("document.querySelector('#filter [data-toggle=GCFL]').click()")
    assert {place: tab.run(f"{shown}('{place}')") for place in places} == places
    assert tab.errors == []


def test_all_values_are_shown_under_the_pointer_and_by_key(tab, page):
    tab.open(page)
    point(tab, show(tab, "#curves svg.lines"), 0.979)
    assert tab.run("document.querySelector('#tip caption').textContent") == "round 12"
    cells = "[...document.querySelectorAll('#tip td:nth-child(3)')].map(cell => Number(cell.textContent))"
    table = "[...document.querySelectorAll('#curves-0 tbody tr:last-child td')].map(cell => Number(cell.dataset.value))"
    assert tab.run(cells) == pytest.approx(sorted(tab.run(table), reverse=True), abs=0.1)
    tab.run("document.querySelector('#curves svg.lines').focus()")
    tab.press("ArrowRight")
    assert tab.run("document.querySelector('#tip caption').textContent") == "round 2"
    point(tab, show(tab, "#run-shown figure:nth-child(2) svg"), 0.5)
    assert tab.run("document.querySelectorAll('#tip tr').length") == 6  # seconds of six phases
    assert all(0.1 <= value <= 0.3 for value in tab.run(cells))
    point(tab, show(tab, "#time figure rect.fill"), 0.5)
    assert tab.run("document.querySelectorAll('#tip div').length") == 6
    assert tab.errors == []


def test_a_chart_shows_a_part_of_its_rounds_by_drag_and_by_key_and_all_again(tab, page):
    tab.open(page)
    line = "document.querySelector('#curves svg.lines .line').getAttribute('d')"
    numbers = "map(tick => Number(tick.textContent))"
    ticks = f"[...document.querySelectorAll('#curves .ticks .tick.middle')].{numbers}"
    box = show(tab, "#curves svg.lines")
    point(tab, box, 0.4)
    point(tab, box, 0.4, "mousePressed", button="left", clickCount=1)
    point(tab, box, 0.75, buttons=1)
    assert tab.run("document.querySelectorAll('.drag').length") == 1
    point(tab, box, 0.75, "mouseReleased", button="left", clickCount=1)
    assert tab.run(ticks) == [5, 6, 7, 8, 9] and tab.run(line).count("L") == 4
    point(tab, box, 0.95)
    assert tab.run("document.querySelector('#tip caption').textContent") == "round 9"
    tab.press("Escape")
    assert tab.run(ticks) == [] and tab.run(line).count("L") == 11
    tab.run("document.querySelector('#curves svg.lines').focus()")
    tab.press("+", text="+")
    assert tab.run(ticks) == [2, 3, 4, 5, 6, 7]
    tab.press("-", text="-")
    assert tab.run(ticks) == [2, 4, 6, 8]
    assert tab.errors == []


def test_another_run_is_chosen_from_the_menu(tab, page):
    tab.open(page)
    assert tab.run("document.querySelector('#run-shown h3').textContent") == "fedavg-1"
    tab.run("document.getElementById('run-before').click()")
    assert tab.run("document.querySelector('#run-shown h3').textContent") == "self-train-2"
    for _ in range(4):
        tab.run("document.getElementById('run-after').click()")
    assert tab.run("document.querySelector('#run-shown h3').textContent") == "gcfl-2"
    assert "Clusters: who was with whom" in tab.run("document.getElementById('run-shown').textContent")


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [390, 1300])
def test_nothing_is_wider_than_the_screen_in_light_and_dark(tab, page, width, dark):
    tab.open(page, width=width, dark=dark)
    assert tab.run("document.documentElement.scrollWidth") <= width
    wider = "[...document.querySelectorAll('.panel')].filter(p => p.scrollWidth > p.clientWidth).length"
    assert tab.run(wider) == 0
    paper = "rgb(20, 24, 29)" if dark else "rgb(255, 255, 255)"
    assert tab.run("getComputedStyle(document.documentElement).backgroundColor") == paper
    assert tab.errors == []


def test_curves_go_by_traffic_and_time_by_key_and_back(tab, page):
    tab.open(page)
    label = "document.querySelector('#curves svg.lines :is(.across:not(.out), .ticks) .label').textContent"
    line = "document.querySelector('#curves svg.lines .line[data-series=GCFL]').getBoundingClientRect()"
    whole = tab.run(f"(r => [r.x, r.width])({line})")
    assert tab.run(label) == "round"
    tab.run("document.querySelector('[data-axis=MB]').focus()")
    tab.press("Enter", text="\r", windowsVirtualKeyCode=13)
    assert tab.run(label) == "traffic of all clients (MB)"
    left, width = tab.run(f"(r => [r.x, r.width])({line})")
    # 12 rounds of 1 MB each: the first ends at a twelfth of the axis, where rounds begin at its start
    assert width == pytest.approx(whole[1] * 11 / 12, rel=0.01) and left > whole[0]
    tab.run("document.querySelector('[data-axis=s]').click()")
    assert tab.run(label) == "time (s)"
    tab.run("document.querySelector('[data-axis=round]').click()")
    assert tab.run(label) == "round"
    assert tab.run(f"(r => [r.x, r.width])({line})") == pytest.approx(whole, abs=0.2)
    assert tab.errors == []


def test_smoothing_says_so(tab, page):
    tab.open(page)
    choose = "(s => { s.value = '5'; s.dispatchEvent(new Event('change', {bubbles: true})) })(document.querySelector('[data-smooth]'))"
    height = "document.querySelector('#curves svg.lines .line').getBoundingClientRect().height"
    rough = tab.run(height)
    tab.run(choose)
    assert tab.run(height) < rough
    said = "getComputedStyle(document.querySelector('#curves figcaption'), '::after').content"
    assert tab.run(said) == '" (smoothed: mean of 5 points)"'


def test_a_filter_keeps_lines_and_rows_that_have_its_words(tab, page):
    tab.open(page)
    write = "(i => {{ i.value = '{}'; i.dispatchEvent(new Event('input', {{bubbles: true}})) }})(document.querySelector('{}'))"
    shown = "new Set([...document.querySelectorAll('#curves [data-series]')].filter(p => p.getBoundingClientRect().width).map(p => p.dataset.series))"
    tab.run(write.format("proteins self", "#filter [data-filter]"))
    assert tab.run(f"[...{shown}]") == ["self-train"]
    rows = (
        "[...document.querySelectorAll('#{} tbody tr')].filter(r => r.getBoundingClientRect().width).length"
    )
    assert [tab.run(rows.format(table)) for table in ("cells-0", "matrix-0", "all-runs")] == [1, 1, 2]
    tab.run(write.format("nci1", "#filter [data-filter]"))
    assert tab.run(f"[...{shown}]") == []


def test_a_table_as_csv_has_the_halves_of_intervals_in_columns_of_their_own(tab, page):
    tab.open(page)
    first, second, *_ = tab.run("csvOf(document.getElementById('matrix-0'))").splitlines()
    assert first == "algorithm,PROTEINS,PROTEINS ±"
    name, mean, half = second.split(",")
    shown = tab.run("document.querySelector('#matrix-0 td').textContent.replace(/[★▲▼]/g, '').trim()")
    assert name == "FedAvg" and f"{float(mean):.2f} ± {half}" == shown
    header = tab.run("csvOf(document.querySelector('#costs-0'))").splitlines()[0]
    assert "time (s)" in header and "traffic (MB)" in header


def test_commands_are_there_to_be_copied(tab, page):
    tab.open(page)
    tab.run(
        "window.copied = []; Object.defineProperty(navigator, 'clipboard', {value: {writeText: async t => copied.push(t)}})"
    )
    tab.run("document.querySelector('#runs [data-options]').click()")
    assert tab.run("copied[0].endsWith('/runs --by case') && copied[0].startsWith('fedmpi report ')")


def test_it_reads_and_prints_without_script(tab, page):
    tab.call("Emulation.setScriptExecutionDisabled", value=True)
    tab.call("Page.navigate", url=page.resolve().as_uri())
    while tab.run("document.readyState + Boolean(document.querySelector('#tip'))") != "completetrue":
        pass
    assert tab.run("getComputedStyle(document.querySelector('.tools')).display") == "none"
    assert tab.run("document.querySelectorAll('#results svg .line').length") == 2
    tab.call("Emulation.setEmulatedMedia", media="print")
    assert tab.run("getComputedStyle(document.querySelector('nav')).display") == "none"
    assert len(tab.call("Page.printToPDF", printBackground=True)["data"]) > 10_000
