"""Cache, mirror, own folder, offline and download."""

import http.server
import json
import multiprocessing
import threading
from functools import partial

import pytest

from fedmpi.datasets.families.knowledge_graphs import KnowledgeGraphs
from fedmpi.datasets.families.tu import TuDatasets
from fedmpi.datasets.loading import load_all
from fedmpi.datasets.options import DatasetOptions
from fedmpi.datasets.raw import digest
from fedmpi.datasets.source import DataSource
from fedmpi.datasets.tu_folders import read_folder
from fedmpi.errors import BadInput
from tests.refusals import refused


@pytest.fixture
def source(tmp_path):
    """Offline source with an empty cache and a mirror that `make_archive` fills."""
    (tmp_path / "mirror" / "tudataset").mkdir(parents=True)
    return DataSource(tmp_path / "cache", tmp_path / "mirror", offline=True)


def left_in(cache):
    return sorted(path.name for path in cache.rglob("*")) if cache.exists() else []


def test_prepared_data_equal_the_archive_and_need_it_no_more(source, make_archive, make_folder, toy):
    make_archive("FOO", toy)
    assert source.status("FOO") == "mirror"
    source.check("FOO")
    assert left_in(source.cache) == []
    source.prepare("FOO")
    assert source.status("FOO") == "prepared"
    alone = DataSource(source.cache, None, offline=True)
    alone.check("FOO")
    raw = alone.load("FOO")
    fresh = read_folder(make_folder(toy), "FOO", "FOO")
    assert digest(raw) == digest(fresh) == alone.digest_of("FOO") == alone.verify("FOO")
    assert (raw.name, raw.class_names, raw.label_widths) == ("FOO", ("-1", "1"), (4,))


@pytest.mark.parametrize("keep", [0, 10, 200, -1])
def test_a_cut_archive_is_refused_and_nothing_stays(source, make_archive, toy, keep):
    archive = make_archive("FOO", toy)
    archive.write_bytes(archive.read_bytes()[:keep])
    for step in (source.check, source.prepare):
        with refused("is cut short or damaged"):
            step("FOO")
    assert left_in(source.cache) == []


@pytest.mark.parametrize(
    ("name", "changed", "message"),
    [
        ("FOO", {"A": "1, 9\n"}, r"FOO.zip: FOO_A.txt"),
        ("FOO", {"graph_labels": None}, r"holds no FOO_graph_labels.txt"),
        ("MUTAG", {}, r"MUTAG has content digest [0-9a-f]{64}, expected efabee01"),
    ],
)
def test_an_archive_of_other_content_is_refused_and_nothing_stays(
    source, make_archive, toy, name, changed, message
):
    make_archive(name, {part: text for part, text in (toy | changed).items() if text is not None})
    with refused(match=message):
        source.prepare(name)
    assert left_in(source.cache) == []


def flip(path, place):
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


def test_a_damaged_set_is_prepared_anew_with_one_line(source, make_archive, toy, caplog):
    make_archive("FOO", toy)
    source.prepare("FOO")
    folder, whole = source.cache / "tudataset" / "FOO", source.load("FOO")
    cut = lambda path: path.write_bytes(b"cut")  # noqa: E731
    for damage, status in ((lambda path: flip(path, -8), "prepared"), (cut, "mirror")):
        damage(folder / "columns.npy")
        assert source.status("FOO") == status
        caplog.clear()
        source.prepare("FOO")
        assert caplog.messages == [f"{folder} is damaged or of an older fedmpi: prepared anew"]
        assert digest(source.load("FOO")) == digest(whole) == source.digest_of("FOO")
        assert [path.name for path in folder.parent.iterdir()] == ["FOO"]


def test_a_damaged_set_that_cannot_be_had_anew_is_named(source, make_archive, toy):
    make_archive("FOO", toy)
    source.prepare("FOO")
    folder = source.cache / "tudataset" / "FOO"
    flip(folder / "row_ptr.npy", -1)
    for step in (source.load, source.verify):
        with refused("tudataset/FOO is damaged: run 'fedmpi data fetch FOO', which prepares it anew"):
            step("FOO")
    folder.rename(folder.with_name("MUTAG"))
    alone = DataSource(source.cache, offline=True)
    for step in (alone.check, alone.prepare):
        with refused(match=r"MUTAG is damaged in .*: run 'fedmpi data fetch MUTAG' where"):
            step("MUTAG")


def _prepare(source, barrier):
    barrier.wait()
    source.prepare("FOO")


def test_two_processes_prepare_at_once(source, make_archive, toy):
    make_archive("FOO", toy)
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(2)
    workers = [context.Process(target=_prepare, args=(source, barrier)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0, 0]
    assert [path.name for path in (source.cache / "tudataset").iterdir()] == ["FOO"]
    assert source.verify("FOO") == source.digest_of("FOO")


def test_offline_names_the_command_for_the_login_node(tmp_path):
    source = DataSource(tmp_path, offline=True)
    for step in (source.check, source.prepare):
        with refused(match=r"run 'fedmpi data fetch PROTEINS' .*login node"):
            step("PROTEINS")
    with refused(match="fedmpi data fetch MUTAG"):
        source.check("gcfl/molecules")
    assert source.status("gcfl/molecules") == "missing"
    with refused(match="run 'fedmpi data fetch PROTEINS'"):
        source.load("PROTEINS")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("PROTIENS", "did you mean PROTEINS"),
        ("imdb-binary", "did you mean IMDB-BINARY"),
        ("gcfl/molecule", "did you mean gcfl/molecules"),
        ("BAR", r"\(did you mean the folder \./BAR\?\)"),
        ("DD+DD", "names a dataset twice"),
        ("DD+", "'' is no dataset name"),
        ("RED DIT;", "no dataset name"),
        ("a/FOO+a/BAR", r"^no folder a/FOO and no group"),
        ("./BAR+./BAR", "names a dataset twice"),
        ("/", "folder / holds no _A.txt"),
        ("a/FOO+", r"^no folder a/FOO\+ and no group"),
    ],
)
def test_a_wrong_name_is_refused_with_what_was_meant(source, tmp_path, monkeypatch, name, message):
    (tmp_path / "BAR").mkdir()
    monkeypatch.chdir(tmp_path)
    with refused(match=message):
        source.check(name)


@pytest.mark.parametrize(
    ("name", "members"),
    [
        ("./BAR+./FOO", ("./BAR", "./FOO")),
        ("a/BAR+b/FOO", ("a/BAR", "b/FOO")),
        ("MUTAG+DD+./BAR", ("MUTAG", "DD", "./BAR")),
        ("./BAR+DD+../FOO", ("./BAR", "DD", "../FOO")),
        ("./C++", ("./C++",)),
        ("./C+++./BAR", ("./C++", "./BAR")),
        ("./a.csv?label=x+y/z", ("./a.csv?label=x+y/z",)),
        ("./a.csv?label=x+y+./b.csv?label=z", ("./a.csv?label=x+y", "./b.csv?label=z")),
    ],
)
def test_paths_are_joined_by_plus(source, tmp_path, monkeypatch, name, members):
    (tmp_path / "C++").mkdir()
    monkeypatch.chdir(tmp_path)
    assert source.members(name) == members


def test_datasets_are_joined_by_plus_and_any_tu_name_may_be_tried_online(source, tmp_path):
    assert source.members("PROTEINS+DD") == ("PROTEINS", "DD")
    DataSource(tmp_path).check("REDDIT-BINARY")


def test_an_own_folder_is_prepared_anew_after_an_edit(source, make_folder, toy):
    folder = make_folder(toy)
    name = str(folder)
    assert source.members(name) == (name,)
    for edges in (10, 2):
        assert source.status(name) == "mirror"
        source.check(name)
        source.prepare(name)
        raw = source.load(name)
        assert (raw.name, raw.num_graphs, raw.topology.num_edges) == (name, 3, edges)
        assert source.status(name) == "prepared"
        (folder / "FOO_A.txt").write_text("1, 2\n2, 1\n")
    (folder / "FOO_graph_indicator.txt").unlink()
    with refused("holds no FOO_graph_indicator.txt"):
        source.check(name)


def test_environment_and_options(monkeypatch, tmp_path):
    monkeypatch.setenv("FEDMPI_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("FEDMPI_MIRROR", str(tmp_path))
    monkeypatch.setenv("FEDMPI_OFFLINE", "1")
    assert DataSource.from_environment() == DataSource(tmp_path / "data", tmp_path, True)
    chosen = DataSource.from_environment(cache=tmp_path, offline=False)
    assert chosen == DataSource(tmp_path, tmp_path, False)
    monkeypatch.setenv("FEDMPI_OFFLINE", "yes")
    with refused(match="FEDMPI_OFFLINE is 'yes'"):
        DataSource.from_environment()
    monkeypatch.delenv("FEDMPI_OFFLINE")
    with refused(match="is no folder"):
        DataSource.from_environment(mirror=tmp_path / "absent")


def test_cache_that_cannot_be_written(tmp_path, make_archive, toy):
    make_archive("FOO", toy)
    (tmp_path / "file").write_text("")
    source = DataSource(tmp_path / "file", tmp_path / "mirror")
    with refused(match="cannot write the data cache"):
        source.prepare("FOO")


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        """Keep the test output clean."""


@pytest.fixture
def upstream(tmp_path):
    """Address of a local server that hands out what `make_archive` wrote."""
    folder = tmp_path / "mirror" / "tudataset"
    folder.mkdir(parents=True, exist_ok=True)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_download(tmp_path, make_archive, toy, upstream):
    make_archive("FOO", toy)
    source = DataSource(tmp_path / "cache", upstream=upstream)
    source.prepare("FOO")
    assert source.load("FOO").num_graphs == 3
    assert [path.name for path in (tmp_path / "cache" / "tudataset").iterdir()] == ["FOO"]
    meta = json.loads((tmp_path / "cache" / "tudataset" / "FOO" / "meta.json").read_text())
    assert meta["facts"]["source"] == f"{upstream}/FOO.zip"


FILE = "other/YAGO3-10/{}.txt"


@pytest.fixture
def triples(monkeypatch, upstream, tmp_path):
    """Small files of a dataset that has three, upstream on a local server."""
    folder = tmp_path / "mirror" / "tudataset"
    (folder / "other" / "YAGO3-10").mkdir(parents=True)
    for part in ("train", "valid", "test"):
        (folder / FILE.format(part)).write_text("a\tlikes\tb\n")
    monkeypatch.setattr(KnowledgeGraphs, "upstream", upstream)
    return folder


def test_several_files_are_downloaded_into_one_folder_and_removed(tmp_path, triples, upstream):
    source = DataSource(tmp_path / "cache")
    assert source.status("YAGO3-10") == "missing"
    source.check("YAGO3-10")
    source.prepare("YAGO3-10")
    assert source.load("YAGO3-10").labels.tolist() == [0, 0, 0]
    (place,) = (tmp_path / "cache").glob("*/*")
    assert place.name == "YAGO3-10"
    assert json.loads((place / "meta.json").read_text())["facts"]["source"] == upstream


def test_a_file_that_cannot_be_downloaded_leaves_nothing(tmp_path, triples):
    (triples / FILE.format("test")).unlink()
    with refused(match=r"cannot download .*/test.txt: .* into DIR/kg/other/YAGO3-10 and"):
        DataSource(tmp_path / "cache").prepare("YAGO3-10")
    assert [path for path in (tmp_path / "cache").rglob("*") if path.is_file()] == []


def test_several_files_are_taken_from_the_mirror_or_the_missing_ones_named(tmp_path, triples):
    mirror = triples.rename(triples.parent / "kg").parent
    source = DataSource(tmp_path / "cache", mirror, offline=True)
    assert source.status("YAGO3-10") == "mirror"
    source.prepare("YAGO3-10")
    assert source.verify("YAGO3-10") == source.digest_of("YAGO3-10")
    (mirror / "kg" / FILE.format("test")).unlink()
    words = r"cannot download .*/train.txt: .*; the mirror lacks other/YAGO3-10/test.txt$"
    with refused(match=words):
        DataSource(tmp_path / "another", mirror).prepare("YAGO3-10")


def test_failed_download_is_one_line_and_leaves_nothing(tmp_path, make_archive, toy, upstream):
    source = DataSource(tmp_path / "cache", upstream=upstream)
    with pytest.raises(BadInput, match=r"cannot download http.*: .*FEDMPI_MIRROR=DIR") as caught:
        source.prepare("PROTIENS")
    assert "did you mean PROTEINS" in str(caught.value)
    with pytest.raises(BadInput, match="cannot download") as caught:
        source.prepare("QM9")
    assert "did you mean" not in str(caught.value)
    archive = make_archive("FOO", toy)
    archive.write_bytes(archive.read_bytes()[:-30])
    with refused(match="cut short or damaged"):
        source.prepare("FOO")
    assert left_in(source.cache / "tudataset") == []


def test_load_all_keeps_the_order_of_the_group(mirror, tmp_path, monkeypatch):
    source = DataSource(tmp_path, mirror, offline=True)
    members = ("PTC_MR", "MUTAG")
    monkeypatch.setattr(TuDatasets, "groups", {"gcfl/two": members})
    source.prepare("gcfl/two")
    raws = load_all(DatasetOptions(name="gcfl/two"), source)
    assert [raw.name for raw in raws] == ["PTC_MR", "MUTAG"]
    assert source.verify("MUTAG") == source.digest_of("MUTAG")
