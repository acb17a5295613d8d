"""Settings of a launch that cost time are named, and good ones are not."""

from fedmpi.comm.settings import advice, shared_cores, shared_devices

GOOD = {
    "OMP_NUM_THREADS": "1",
    "OMP_WAIT_POLICY": "PASSIVE",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_MCA_btl": "self,sm,tcp",
}


def ranks(*cores, host="a"):
    return [{"rank": number, "host": host, "cores": list(mine)} for number, mine in enumerate(cores)]


def test_good_settings_need_no_advice():
    for library in ("MPICH 5.0", "Open MPI v5.0", ""):
        assert advice(GOOD, library, ranks([0], [1])) == []


def test_each_bad_setting_is_named_with_the_better_value():
    places = ranks([0], [1])
    for name, value, library, words in (
        ("OMP_NUM_THREADS", "4", "MPICH", "OMP_NUM_THREADS: set 1"),
        ("OMP_WAIT_POLICY", "ACTIVE", "MPICH", "OMP_WAIT_POLICY: set PASSIVE"),
        ("OMPI_MCA_mpi_yield_when_idle", "0", "Open MPI", "OMPI_MCA_mpi_yield_when_idle: set 1"),
    ):
        said = advice({**GOOD, name: value}, library, places)
        assert any(words in line for line in said), (name, said)


def test_heavy_yield_is_wanted_only_where_ranks_outnumber_cores():
    crowd = ranks([0, 1], [0, 1], [0, 1])
    wanted = "MPIR_CVAR_ENABLE_HEAVY_YIELD: set 1, since ranks outnumber cores on a"
    assert wanted in advice(GOOD, "MPICH", crowd)
    eased = advice({**GOOD, "MPIR_CVAR_ENABLE_HEAVY_YIELD": "1"}, "MPICH", crowd)
    assert len(eased) == 1
    assert eased[0].startswith("a: 3 ranks of 1 thread share 2 cores")


def test_open_mpis_quick_start_is_for_one_machine():
    without = {name: value for name, value in GOOD.items() if name != "OMPI_MCA_btl"}
    assert advice(without, "Open MPI", ranks([0], [1]))[0].startswith("OMPI_MCA_btl: set self,sm,tcp")
    several = ranks([0]) + ranks([0], host="b")
    assert advice(without, "Open MPI", several) == []


def test_ranks_that_share_cores_are_found_per_host():
    assert shared_cores(ranks([0, 1], [0, 1]), 1) == []  # two ranks, two cores
    assert shared_cores(ranks([0], [0]), 1)[0].startswith("a: 2 ranks of 1 thread share 1 core:")
    assert shared_cores(ranks([0, 1], [0, 1]), 2)[0].startswith("a: 2 ranks of 2 threads share 2 cores")
    assert shared_cores(ranks([0], [1], [1]), 1)[0].startswith("a: 3 ranks")  # the binding is uneven
    assert shared_cores(ranks([0]) + ranks([0], host="b"), 1) == []


def test_ranks_that_share_a_gpu_are_named():
    first, second = "cuda:0: H200", "cuda:1: H200"
    places = [{**rank, "device": first} for rank in ranks([0], [1], [2])]
    assert shared_devices(places)[0].startswith("a: ranks 0, 1, 2 share cuda:0: H200")
    places[1]["device"], places[2]["host"] = second, "b"
    assert shared_devices(places) == []
    assert shared_devices([{**rank, "device": "cpu"} for rank in ranks([0], [0])]) == []
