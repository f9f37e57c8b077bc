"""Work queues: one worker does each job; jobs after the death of workers and pushers."""

import asyncio
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import rnet
from conftest import LIMIT_S
from rnet.msgs import Vector3


@pytest.fixture
def pair(node):
    """The node of pushers and that of workers."""
    return node("planner"), node("sweeper")


class Back:
    """The undelivered jobs."""

    def __init__(self):
        self.jobs, self._came = [], threading.Event()

    def __call__(self, undelivered):
        self.jobs.append(undelivered)
        self._came.set()

    def only(self):
        assert self._came.wait(LIMIT_S)
        (back,) = self.jobs
        return back


def test_each_job_goes_to_one_worker(pair):
    planner, sweeper = pair
    done, lock = [], threading.Lock()

    def sweep(job, context):
        with lock:
            done.append((job, context.pusher, context.redelivered, context.cancelled))

    workers = [sweeper.pull("/jobs", on=sweep) for _ in range(3)]
    jobs = planner.push("/jobs")
    for n in range(100):
        jobs.push(b"%d" % n)
    jobs.wait_until_done(timeout=LIMIT_S)
    assert sorted(done) == sorted((b"%d" % n, "/planner", False, False) for n in range(100))
    assert jobs.stats() == rnet.events.PushStats(pushed=100, done=100, redelivered=0, undelivered=0, open=0)
    assert jobs.worker_count == 3 and jobs.name == "/jobs"
    assert sum(worker.stats().calls for worker in workers) == 100


def test_jobs_are_received_one_by_one_and_acknowledged(pair):
    planner, sweeper = pair
    jobs, worker = planner.push("/jobs", Vector3), sweeper.pull("/jobs", Vector3)
    jobs.push(Vector3(x=1.5))
    jobs.push(Vector3(x=2.5))
    job = worker.recv(timeout=LIMIT_S)
    assert job.message.x == 1.5 and job.pusher == "/planner"
    assert not job.redelivered and not job.cancelled and not job.done
    with pytest.raises(rnet.WaitTimeoutError, match="a job"):
        worker.recv(timeout=0.05)
    job.ack()
    assert job.done
    with pytest.raises(rnet.ClosedError):
        job.ack()
    with worker.recv(timeout=LIMIT_S) as vector:
        assert vector.x == 2.5
    jobs.wait_until_done(timeout=LIMIT_S)
    assert jobs.stats().done == 2


def test_jobs_of_numpy(pair):
    planner, sweeper = pair
    jobs, worker = planner.push("/jobs", "f8"), sweeper.pull("/jobs", "f8")
    jobs.push(2.5)
    with worker.recv(timeout=LIMIT_S) as number:
        assert number == np.float64(2.5)
    jobs.wait_until_done(timeout=LIMIT_S)


def test_what_fails_is_handed_back_and_not_repeated(pair):
    planner, sweeper = pair
    back = Back()
    jobs = planner.push("/jobs", on_undelivered=back)
    worker = sweeper.pull("/jobs")
    jobs.push(b"dust")
    with pytest.raises(ZeroDivisionError), worker.recv(timeout=LIMIT_S):
        _ = 1 / 0
    undelivered = back.only()
    assert undelivered.job == b"dust" and isinstance(undelivered.error, rnet.CallFailedError)
    assert undelivered.error.kind == "ZeroDivisionError" and undelivered.error.node == "/sweeper"
    jobs.push(b"mud")
    worker.recv(timeout=LIMIT_S).fail("no mop")
    jobs.wait_until_done(timeout=LIMIT_S)
    assert back.jobs[1].error.text == "no mop"
    jobs.push(b"sand")
    job = worker.recv(timeout=LIMIT_S)
    del job
    jobs.wait_until_done(timeout=LIMIT_S)
    assert back.jobs[2].error.kind == "not_acknowledged"
    assert jobs.stats().undelivered == 3 and jobs.stats().redelivered == 0


def test_a_handler_that_raises_fails_its_job(pair):
    planner, sweeper = pair
    back = Back()
    jobs = planner.push("/jobs", on_undelivered=back)

    def sweep(_job):
        raise ValueError("too dirty")

    worker = sweeper.pull("/jobs", on=sweep)
    jobs.push(b"hall")
    error = back.only().error
    assert (error.kind, error.text) == ("ValueError", "too dirty")
    worker.close()
    with pytest.raises(TypeError):
        sweeper.pull("/jobs", on=lambda: None)


def test_a_full_backlog_refuses_or_waits(pair):
    planner, sweeper = pair
    jobs = planner.push("/jobs", backlog=2)
    jobs.push(b"1")
    jobs.push(b"2")
    with pytest.raises(rnet.errors.LimitReachedError, match="open jobs of a pusher of /jobs"):
        jobs.push(b"3")
    waits = planner.push("/jobs", backlog=1, timeout=LIMIT_S)
    waits.push(b"4")
    pushed = threading.Thread(target=waits.push, args=(b"5",))
    pushed.start()
    done = []
    sweeper.pull("/jobs", on=done.append)
    pushed.join(LIMIT_S)
    for pusher in (jobs, waits):
        pusher.wait_until_done(timeout=LIMIT_S)
    assert sorted(done) == [b"1", b"2", b"4", b"5"]


def test_a_closed_worker_gives_its_job_to_another_and_a_closed_pusher_its_jobs_back(pair):
    planner, sweeper = pair
    back = Back()
    jobs = planner.push("/jobs", on_undelivered=back)
    first = sweeper.pull("/jobs")
    jobs.push(b"hall")
    held = first.recv(timeout=LIMIT_S)
    second = sweeper.pull("/jobs")
    first.close()
    assert held.cancelled and first.closed
    job = second.recv(timeout=LIMIT_S)
    assert job.message == b"hall" and job.redelivered
    assert jobs.stats().redelivered == 1
    jobs.close()
    assert isinstance(back.only().error, rnet.ClosedError)
    for closed in (lambda: jobs.push(b"x"), lambda: first.recv(timeout=0), jobs.wait_until_done, jobs.stats):
        with pytest.raises(rnet.ClosedError):
            closed()
    assert list(first) == []


WORKER = """
    import sys
    import rnet
    jobs = rnet.Node("victim" + sys.argv[1]).pull("/jobs")
    print("ready", flush=True)
    job = jobs.recv()
    print(job.message.decode(), job.redelivered, flush=True)
    sys.stdin.read()
"""


class Worker:
    """A process that takes a job and never acknowledges it."""

    def __init__(self, number):
        self.process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(WORKER), str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.hears() == "ready"

    def hears(self):
        return self.process.stdout.readline().strip()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()


def until(holds):
    limit = time.monotonic() + LIMIT_S
    while not holds():
        assert time.monotonic() < limit
        time.sleep(0.01)  # sleep: waits for another thread


def test_a_job_whose_worker_is_killed_goes_to_another_once(pair):
    planner, sweeper = pair
    back = Back()
    jobs = planner.push("/jobs", on_undelivered=back)
    with Worker(1) as worker:
        jobs.push(b"hall")
        assert worker.hears() == "hall False"
    with sweeper.pull("/jobs") as second:
        job = second.recv(timeout=LIMIT_S)
        assert job.redelivered and job.message == b"hall"
        job.ack()
        jobs.wait_until_done(timeout=LIMIT_S)
    assert jobs.stats() == rnet.events.PushStats(pushed=1, done=1, redelivered=1, undelivered=0, open=0)
    # A job sent to the closed worker would be redelivered.
    until(lambda: jobs.worker_count == 0)
    # Two workers get the job and are killed: it is undelivered, and a third one does not get it.
    jobs.push(b"lab")
    for number, again in ((2, False), (3, True)):
        with Worker(number) as worker:
            assert worker.hears() == f"lab {again}"
    undelivered = back.only()
    assert undelivered.job == b"lab" and isinstance(undelivered.error, rnet.ServerLostError)
    assert undelivered.error.node == "/victim3"
    jobs.wait_until_done(timeout=LIMIT_S)
    assert jobs.stats().redelivered == 2 and jobs.stats().undelivered == 1


def test_a_worker_that_does_not_acknowledge_in_time_is_lost(pair):
    planner, sweeper = pair
    jobs = planner.push("/jobs", ack_within=0.2)
    slow = sweeper.pull("/jobs")
    jobs.push(b"hall")
    held = slow.recv(timeout=LIMIT_S)
    with sweeper.pull("/jobs") as other, other.recv(timeout=LIMIT_S) as job:
        assert job == b"hall"
    jobs.wait_until_done(timeout=LIMIT_S)
    until(lambda: held.cancelled)
    assert jobs.stats().redelivered == 1


def test_tasks_push_and_pull(pair):
    planner, sweeper = pair
    jobs = planner.push("/jobs", backlog=4)
    done = []

    async def work(worker):
        async for job in worker:
            with job as message:
                await asyncio.sleep(0)
                done.append(message)

    async def main():
        workers = [sweeper.pull("/jobs") for _ in range(2)]
        tasks = [asyncio.create_task(work(worker)) for worker in workers]
        for n in range(50):
            await jobs.wait_for_capacity()
            jobs.push(b"%d" % n)
        await jobs.join()
        for worker in workers:
            worker.close()
        await asyncio.gather(*tasks)

    asyncio.run(asyncio.wait_for(main(), LIMIT_S))
    assert sorted(done) == sorted(b"%d" % n for n in range(50))
    assert jobs.stats().done == 50


def test_a_task_that_is_cancelled_takes_no_job(pair):
    planner, sweeper = pair
    jobs, worker = planner.push("/jobs"), sweeper.pull("/jobs")

    async def main():
        waits = asyncio.create_task(anext(worker))
        await asyncio.sleep(0.05)
        waits.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waits
        jobs.push(b"hall")
        with await asyncio.wait_for(anext(worker), LIMIT_S) as job:
            assert job == b"hall"
        await asyncio.wait_for(jobs.join(), LIMIT_S)

    asyncio.run(main())


def test_a_wait_for_a_job_ends_with_the_worker(pair):
    _, sweeper = pair
    worker = sweeper.pull("/jobs")
    got = []
    thread = threading.Thread(target=lambda: got.extend(worker))
    thread.start()
    worker.close()
    thread.join(LIMIT_S)
    assert not thread.is_alive() and got == []
    assert repr(worker) == "<rnet.Puller of /jobs, by node /sweeper>"


def test_workers_of_another_type_are_told_of(pair):
    planner, sweeper = pair
    back = Back()
    jobs = planner.push("/jobs", Vector3, on_undelivered=back)
    worker = sweeper.pull("/jobs", "f8")
    jobs.push(Vector3(x=1))
    undelivered = back.only()
    assert undelivered.job == Vector3(x=1) and isinstance(undelivered.error, rnet.IncompatibleTypeError)
    with pytest.raises(rnet.errors.BadValueError):
        planner.push("/jobs", backlog=0)
    worker.close()
