"""An update of several processes is that of one with the whole batch."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("horovod", reason="docker/install_horovod.sh installs Horovod")

from tests.integration import update_process as process  # noqa: E402
from tests.integration.workers import Workers  # noqa: E402

pytestmark = pytest.mark.alone

# Five updates move a weight by 0.05 in all. In 16 bits a gradient is rounded twice on
# its way, by 2^-11 in float16 and 2^-8 in bfloat16 at most: 5e-5 and 4e-4 of a weight.
TOLERANCES = {"float32": 1e-6, "float16": 1e-4, "bfloat16": 8e-4}
Found = list[dict[str, np.ndarray]]  # by rank


class Job:
    """What the workers left: their arrays, by way, and Horovod's timeline."""

    def __init__(self, folder: Path, size: int, *ways: str):
        self.size = size
        self.ways = [
            way for way in ways if way in process.WAYS.keys() - {process.ALONE}
        ]
        self._folder = folder
        with Workers(
            size,
            *("-m", process.__name__, folder, *ways),
            environment={
                "HOROVOD_TIMELINE": str(folder / "timeline.json"),
                "HOROVOD_TIMELINE_MARK_CYCLES": "1",
            },
        ) as workers:
            outcomes = workers.finish(seconds=240)
        assert [outcome.code for outcome in outcomes] == [0] * size, outcomes

    def found(self, way: str) -> Found:
        files = sorted(self._folder.glob(f"{way}.*.npz"))
        return [dict(np.load(file)) for file in files]

    def timeline(self) -> list[dict[str, Any]]:
        """Returns the begins of what Horovod did, each with the name of its tensor."""
        events = self._events()
        names = {
            event["pid"]: event["args"]["name"]
            for event in events
            if "name" in event.get("args", {})
        }
        begins = [event for event in events if event["ph"] == "B"]
        return [{**event, "tensor": names[event["pid"]]} for event in begins]

    def cycles(self) -> list[float]:
        """Returns when workers told each other what they have, in microseconds."""
        events = self._events()
        return [event["ts"] for event in events if event.get("name") == "CYCLE_START"]

    def _events(self) -> list[dict[str, Any]]:
        text = (self._folder / "timeline.json").read_text()
        # Horovod does not close the list that it writes to.
        return json.loads(text.rstrip().removesuffix("]").rstrip(",\n") + "]")


@pytest.fixture(scope="module")
def two(tmp_path_factory) -> Job:
    folder = tmp_path_factory.mktemp("two")
    ways = ["float32-iter4", "float32-groups-empty", "float16-groups", "bfloat16-iter4"]
    return Job(folder, 2, process.ALONE, *ways, process.OVERFLOW, process.OVERLAP)


@pytest.fixture(scope="module")
def three(tmp_path_factory) -> Job:
    folder = tmp_path_factory.mktemp("three")
    return Job(folder, 3, "float32-groups-iter4", "bfloat16-groups-empty")


@pytest.fixture(params=["two", "three"])
def job(request) -> Job:
    return request.getfixturevalue(request.param)


def test_many_workers_move_weights_as_one_with_the_whole_batch_does(two, job):
    alone = two.found(process.ALONE)[0]
    for way in job.ways:
        tolerance = TOLERANCES[process.WAYS[way].dtype]
        (chief, *_) = job.found(way)
        assert chief.keys() == alone.keys()
        for name, value in alone.items():
            np.testing.assert_allclose(
                chief[name], value, tolerance, tolerance, err_msg=f"{way}: {name}"
            )


def test_masters_and_moments_are_the_same_on_all_workers_to_the_bit(job):
    for way in job.ways:
        chief, *others = job.found(way)
        assert len(others) == job.size - 1
        for other in others:
            assert other.keys() == chief.keys()
            for name, value in chief.items():
                np.testing.assert_array_equal(other[name], value, f"{way}: {name}")


def test_an_overflow_of_one_worker_skips_the_update_on_all(two):
    for found in two.found(process.OVERFLOW):
        before, after, later = (
            {
                name.removeprefix(f"{moment}/"): value
                for name, value in found.items()
                if name.startswith(f"{moment}/")
            }
            for moment in ("before", "after", "later")
        )

        assert not found["applied"]
        assert before.pop("scale") == 1024
        assert after.pop("scale") == later.pop("scale") == 512
        assert before
        for name, value in before.items():
            np.testing.assert_array_equal(after[name], value, name)
        assert before["optimizer/iterations"] == 3
        assert later["optimizer/iterations"] == 6
        assert (np.diff(found["losses"]) < 0).all()


def test_workers_agree_after_an_overflow_of_one(two):
    chief, other = two.found(process.OVERFLOW)
    for name, value in chief.items():
        np.testing.assert_array_equal(other[name], value, name)


def test_the_first_group_is_on_its_way_before_the_last_gradient_is_ready(two):
    (*_, last_ready) = [
        event for event in two.timeline() if event["name"] == "NEGOTIATE_ALLREDUCE"
    ]
    (*_, first_sent) = [
        event
        for event in two.timeline()
        if event["name"] == "GLOO_ALLREDUCE" and event["tensor"] != last_ready["tensor"]
    ]

    # The backward pass takes a tenth of a second between the two.
    assert last_ready["ts"] - first_sent["ts"] > 50_000  # microseconds


def test_workers_that_have_nothing_to_exchange_seldom_tell_each_other_so(two):
    events = sorted(two.timeline(), key=lambda event: event["ts"])
    # While the next way's functions are traced: all is exchanged, nothing announced.
    pause, end = max(
        (after["ts"] - before["ts"], after["ts"])
        for before, after in itertools.pairwise(events)
        if not before["name"].startswith("NEGOTIATE")
    )
    cycles = [moment for moment in two.cycles() if end - pause < moment < end]

    assert pause > 500_000  # microseconds
    # In every cycle of Horovod's it would be a thousand times a second.
    assert 5e-6 * pause < len(cycles) < 15e-6 * pause
