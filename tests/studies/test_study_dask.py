"""Studies on a Dask cluster: the same bits as threads, and nothing lost with workers or the scheduler."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest
from study_cases import arm, four_bar, same

from spanloop.errors import InputError, SpanloopWarning
from spanloop.studies.execution import StudyError

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cluster():
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        yield cluster


def test_processes_give_the_bits_of_threads(cluster):
    with distributed.Client(cluster) as client:
        for make in (four_bar, arm):
            same(make(chunk=5).run(client=client).results(), make().run(threads=2).results())


def test_a_study_outlives_its_workers(cluster, tmp_path):
    study = four_bar(runs=3000, chunk=50, duration=1.0, store=tmp_path / "s")
    killed, words = [], []

    def kill():
        for _ in range(3):
            time.sleep(0.5)
            pid = next(iter(cluster.workers.values())).pid
            if pid is not None:
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)

    with distributed.Client(cluster) as client:
        killer = threading.Thread(target=kill)
        killer.start()
        try:
            study.run(client=client)
        except StudyError as error:  # of three kills all may hit one chunk
            words.append(str(error))
        killer.join()
    assert killed
    assert all("run() continues from there" in x for x in words)
    same(study.run().results(), four_bar(runs=3000, duration=1.0).run().results())


def test_workers_that_join_later_get_chunks_too():
    """A study that begins with no worker, as on a cluster that adapts, waits with a warning; then all have work."""
    given = {"n_workers": 0, "threads_per_worker": 1, "processes": False, "dashboard_address": None}
    with distributed.LocalCluster(**given) as cluster, distributed.Client(cluster) as client:
        study, most = four_bar(runs=1500, chunk=10, duration=0.5), 0
        joining = threading.Timer(0.5, cluster.scale, args=(4,))
        done = threading.Event()

        def watch():
            nonlocal most
            while not done.wait(0.02):
                most = max(most, sum(map(len, client.processing().values())))

        watcher = threading.Thread(target=watch)
        watcher.start()
        joining.start()
        try:
            with pytest.warns(SpanloopWarning, match="the cluster has no workers; the study waits until one joins"):
                study.run(client=client)
        finally:
            done.set()
            watcher.join()
    assert most > 4  # 2 for each of 4 threads
    same(study.results(), four_bar(runs=1500, duration=0.5).run().results())


def test_a_lost_scheduler_is_an_error_that_says_what_is_stored(tmp_path):
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster:
        client = distributed.Client(cluster, timeout=5)
        study = four_bar(runs=4000, chunk=20, duration=1.0, store=tmp_path / "s")
        stop = threading.Timer(1.0, lambda: cluster.close(timeout=5))
        stop.start()
        with pytest.raises(StudyError, match=r"the cluster was lost .* of 4000 runs are finished"):
            study.run(client=client)
        stop.join()
        client.close(timeout=1)
    same(study.run().results(), four_bar(runs=4000, duration=1.0).run().results())


def test_what_a_chunk_raises_on_a_worker_comes_as_it_is(cluster, monkeypatch):
    def fail(data, rows):
        raise ZeroDivisionError("of a chunk")

    monkeypatch.setattr("spanloop.studies.execution._on_worker", fail)
    with distributed.Client(cluster) as client, pytest.raises(ZeroDivisionError, match="of a chunk"):
        four_bar().run(client=client)


def test_a_function_that_cannot_be_sent_is_no_loss_of_the_cluster(cluster):
    lock = threading.Lock()

    def law(t, q, v):
        assert lock is not None
        return {"crank_hinge": -q["crank_hinge"]}

    with distributed.Client(cluster) as client, pytest.raises(InputError, match="controller cannot be sent to workers"):
        four_bar(controller=law).run(client=client)
