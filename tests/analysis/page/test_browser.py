"""The page in a real headless browser."""

import numpy as np
import pytest

from fedmpi.cli.report import Formats, report
from fedmpi.store.record import RunRecord
from tests.analysis.tasks import FIELDS


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
    from fedmpi.store.schema import axis_sizes, blank_round, measurement_fields, result_fields

    config = {"suite": "made/up", "name": folder.name, "seed": seed, "rounds": 12}
    config |= {"dataset": {"name": "PROTEINS"}, "algorithm": {"name": algorithm}}
    clients = [f"client-{place}" for place in range(4)]
    partition = {
        "class_counts": np.array([[3, 1], [1, 3], [2, 2], [4, 0]]),
        "datasets": np.array(["PROTEINS"] * 4),
        "total_emd": np.array(0.5),
    }
    about = {"config": config, "clients": clients, "rounds": 12, "partition": partition}
    with RunRecord.create(folder, **about, extra=FIELDS["accuracy"]) as record:
        record.begin_attempt(0, 2, ["Bcast", "Reduce"], {"cpu_model": "made up"})
        for index in range(12):
            results = blank_round(result_fields(FIELDS["accuracy"]), axis_sizes(4))
            measured = blank_round(measurement_fields(), axis_sizes(4, 2, 2))
            for name in ("test_accuracy", "val_accuracy", "test_loss", "train_loss", "gradient_norm"):
                results[name][:] = generator.uniform(0.4, 0.9, 4)
            results["group"][:] = [0, 0, 1, 1] if algorithm == "gcfl" and index > 5 else 0
            measured["phase_seconds"][:] = generator.uniform(0.1, 0.3, (2, 6))
            measured["round_seconds"][()] = 1.0
            measured["virtual_seconds"][()] = 1.0
            measured["collective_bytes"][:] = 1000
            record.write_round(index, results, measured)
        record.finish("complete", "")


def test_it_opens_without_an_error_and_asks_the_network_for_nothing(tab, page):
    tab.open(page)
    assert tab.run("document.querySelector('h1').textContent") == "made/up"
    assert tab.errors == []
    assert tab.requests == [page.resolve().as_uri()]


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


def test_a_series_is_hidden_and_shown_again_everywhere_in_its_section(tab, page):
    tab.open(page)
    shown = "[...document.querySelectorAll('#curves [data-series=GCFL]')].filter(p => p.getBoundingClientRect().width).length"
    click = "document.querySelector('#curves [data-toggle=GCFL]').click()"
    assert tab.run(shown) == 8  # a band and a line in four charts
    tab.run(click)
    assert tab.run(shown) == 0
    assert (
        tab.run("document.querySelector('#curves [data-toggle=GCFL]').getAttribute('aria-pressed')")
        == "false"
    )
    tab.run(click)
    assert tab.run(shown) == 8
    assert tab.errors == []


def test_values_under_the_pointer_and_by_key(tab, page):
    tab.open(page)
    tab.run("document.querySelector('#curves svg.lines').scrollIntoView({block: 'center'})")
    box = "(r => [r.x, r.y, r.width, r.height])(document.querySelector('#curves svg.lines').getBoundingClientRect())"
    left, top, width, height = tab.run(box)
    tab.call("Input.dispatchMouseEvent", type="mouseMoved", x=left + width * 0.979, y=top + height / 2)
    assert tab.run("document.querySelector('#tip caption').textContent") == "round 12"
    shown = tab.run("Number(document.querySelector('#tip tr:nth-child(1) td:nth-child(3)').textContent)")
    table = "[...document.querySelectorAll('#curves-0 tbody tr:last-child td')].map(cell => Number(cell.dataset.value))"
    assert shown == pytest.approx(max(tab.run(table)), abs=0.1)
    tab.run("document.querySelector('#curves svg.lines').focus()")
    for kind in ("keyDown", "keyUp"):
        tab.call("Input.dispatchKeyEvent", type=kind, key="ArrowRight", code="ArrowRight")
    assert tab.run("document.querySelector('#tip caption').textContent") == "round 2"


def test_another_run_is_chosen_from_the_menu(tab, page):
    tab.open(page)
    assert tab.run("document.querySelector('#run-shown h3').textContent") == "fedavg-1"
    tab.run("document.getElementById('run-before').click()")
    assert tab.run("document.querySelector('#run-shown h3').textContent") == "self-train-2"
    for _ in range(4):
        tab.run("document.getElementById('run-after').click()")
    assert tab.run("document.querySelector('#run-shown h3').textContent") == "gcfl-2"
    assert "Clusters: who was with whom" in tab.run("document.getElementById('run-shown').textContent")


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_is_wider_than_the_screen(tab, page, width):
    tab.open(page, width=width)
    assert tab.run("document.documentElement.scrollWidth") <= width
    assert (
        tab.run(
            "Math.max(...[...document.querySelectorAll('.panel')].map(p => p.scrollWidth - p.clientWidth))"
        )
        <= 0
    )


def test_it_is_dark_where_the_reader_wants_it_dark(tab, page):
    tab.open(page, dark=True)
    assert tab.run("getComputedStyle(document.documentElement).backgroundColor") == "rgb(20, 24, 29)"
    tab.open(page, dark=False)
    assert tab.run("getComputedStyle(document.documentElement).backgroundColor") == "rgb(255, 255, 255)"


def test_what_a_screen_reader_needs_is_there(tab, page):
    tab.open(page)
    lacking = "[...document.querySelectorAll('table.sortable')].filter(t => !t.caption || !t.querySelector('th[scope=col]') || !t.querySelector('th[scope=row]')).length"
    assert tab.run(lacking) == 0
    assert (
        tab.run(
            "[...document.querySelectorAll('figure svg')].filter(s => !s.getAttribute('aria-label')).length"
        )
        == 0
    )
    assert tab.run("document.documentElement.lang") == "en"
    identifiers = tab.run("[...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(set(identifiers)) == len(identifiers)
