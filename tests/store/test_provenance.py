import json
import subprocess
import sys

from fedmpi.store import provenance


def test_secrets_are_dropped_by_name_and_by_value():
    kept = {
        "SLURM_JOB_ID": "12",
        "SLURM_NODELIST": "n[1-3]",
        "OMP_NUM_THREADS": "1",
        "CUDA_VISIBLE_DEVICES": "0",
        "ROCR_VISIBLE_DEVICES": "0,1",
        "HIP_VISIBLE_DEVICES": "1",
    }
    dropped = dict.fromkeys(("SLURM_AUTH_TOKEN", "MPI_api_key", "UCX_SECRETS", "FI_PASSWORD"), "abc")
    dropped |= {
        "MPIEXEC_ARGS": "--credential=abc",
        "OMPI_PROXY": "http://user:pass@proxy/",
        "HOME": "/home/a",
    }
    assert provenance.environment({**kept, **dropped}) == kept


def test_the_command_line_is_cleaned_too(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["fedmpi", "run", "--token=abc"])
    assert provenance.collect()["command"] == ["fedmpi", "run", "(dropped)"]


def test_it_is_json_and_imports_nothing(monkeypatch):
    monkeypatch.delitem(sys.modules, "tslearn", raising=False)
    found = provenance.collect({"mpi": {"library": "MPICH"}})
    json.dumps(found)
    assert found["mpi"] == {"library": "MPICH"}
    assert found["packages"]["numpy"]["version"] == sys.modules["numpy"].__version__
    assert "tslearn" not in found["packages"] and "tslearn" not in sys.modules
    assert found["cores"] >= 1 and found["memory_bytes"] > 0


def test_the_state_of_a_checkout(tmp_path):
    package = tmp_path / "repository" / "package"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")

    def git(*arguments):
        who = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", "-C", package, *who, *arguments], check=True, capture_output=True)

    git("init")
    assert provenance.source(package) == {}  # not tracked: installed inside somebody's repository
    git("add", "__init__.py")
    git("commit", "-m", "first")
    clean = provenance.source(package)
    assert len(clean["commit"]) == 40 and clean["dirty"] is False
    (package / "__init__.py").write_text("changed")
    dirty = provenance.source(package)
    assert dirty["dirty"] is True and len(dirty["diff_sha256"]) == 64
    git("checkout", "__init__.py")
    (package / "new.py").write_text("")
    assert provenance.source(package)["dirty"] is True
