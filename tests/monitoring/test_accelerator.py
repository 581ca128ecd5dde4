"""Whether an accelerator had work while the training waited: of a device that tests drive, and of a real one."""

import importlib.util
import math
import time

import pytest
import torch

import fastload
from fastload.columns import Rows
from fastload.monitoring.accelerator import Cuda
from fastload.monitoring.steps import Recorder
from tests.shared.processes import OUR_PROCESSES

from .lanes import Kept
from .real_runs import Numbers

pytestmark = OUR_PROCESSES

WAIT_S = 0.02


class Device:
    """An accelerator that had no work for some time of each wait."""

    def __init__(self, idle_s):
        self.without_work_s = idle_s
        self.begun = self.ended = 0

    def begin_wait(self):
        assert self.begun == self.ended
        self.begun += 1
        return True

    def end_wait(self):
        self.ended += 1

    def idle_s(self):
        assert self.begun == self.ended
        return self.without_work_s

    def read(self):
        return {"cuda_allocated_bytes": 5.0}


def monitored(loader, device, train=lambda _: None):
    """Runs an epoch; returns what the monitor kept."""
    kept = Kept()
    loader.monitor = fastload.Monitor(kept, accelerator=device, every_s=0.5)
    for batch in loader:
        train(batch)
    loader.monitor.close()
    return kept


@pytest.mark.parametrize(("idle_s", "share"), [(math.inf, 1.0), (WAIT_S / 4, 0.25), (0.0, 0.0)])
def test_an_accelerator_starves_while_it_has_no_work(idle_s, share):
    device = Device(idle_s)
    kept = monitored(fastload.Loader(Numbers(40, WAIT_S), num_workers=0), device)
    assert device.begun == device.ended == 40 // 17 + 1
    scalars = [window.scalars for window in kept.windows if "starved_share" in window.scalars]
    assert scalars
    for each in scalars:
        assert each["starved_share"] == pytest.approx(share * each["wait_share"], rel=0.3)
        assert each["cuda_allocated_bytes"] == 5


def test_a_device_that_is_behind_is_asked_until_the_next_mark():
    device, asked = Device(None), 17 * [None] + [math.inf]
    device.idle_s = lambda: asked.pop(0)
    recorder = Recorder(device)
    recorder.begin(0.0, 1, 40)
    for step in range(35):
        recorder.asked()
        recorder.returned(None)
        assert (recorder.probed_s > 0) is (step >= 17)  # and counted as busy
        assert (recorder.starved_s > 0) is (step >= 18)
    assert not asked
    assert device.begun == 3


def test_a_wait_in_which_an_epoch_ends_is_not_counted():
    device = Device(math.inf)
    recorder = Recorder(device)
    for epoch in range(2):
        recorder.begin(0.0, 1, 17)
        for _ in range(17):
            recorder.asked()
            recorder.returned(None)
        recorder.asked()
        recorder.failed(StopIteration())
        device.begun = device.ended  # begun at the end of the epoch, and dropped
        assert device.ended == epoch + 1
    assert recorder.starved_s == recorder.probed_s > 0


class Lost(Device):
    """A device that fails at one of its methods."""

    def __init__(self, method):
        super().__init__(0.0)
        self.calls = 0

        def fail():
            self.calls += 1
            raise RuntimeError

        setattr(self, method, fail)


@pytest.mark.parametrize("method", ["begin_wait", "end_wait", "idle_s"])
def test_a_lost_device_ends_no_training(method):
    lost = Lost(method)
    loader, kept = fastload.Loader(Rows(torch.arange(100))), Kept()
    loader.monitor = fastload.Monitor(kept, accelerator=lost)
    assert len(list(loader)) == 100
    loader.monitor.close()
    assert lost.calls == 1
    assert "starved_share" not in kept.names()


def test_a_wait_that_cannot_be_marked_is_not_counted():
    device = Device(math.inf)
    device.begin_wait = lambda: False
    recorder = Recorder(device)
    recorder.begin(0.0, 1, 10)
    for _ in range(2):
        recorder.asked()
        recorder.returned(None)
    assert device.ended == recorder.probed_s == 0


def test_cuda_is_not_initialised_by_the_monitor():
    cuda = Cuda()
    if torch.cuda.is_initialized():
        pytest.skip("another test uses CUDA")
    assert cuda.begin_wait() is False
    assert cuda.idle_s() is None
    assert cuda.read() == {}
    assert not torch.cuda.is_initialized()


def worked_s(cycles):
    """Returns how long the device works on so many cycles, in seconds."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for _ in range(2):  # it raises its clock in the first
        begin.record()
        torch.cuda._sleep(cycles)
        end.record()
        end.synchronize()
    return begin.elapsed_time(end) / 1e3


@pytest.mark.gpu
@pytest.mark.parametrize(("work", "idle"), [(0.0, 1.0), (0.5, 0.5), (3.0, 0.0)])
def test_cuda_tells_for_how_long_it_had_no_work(work, idle):
    cuda, cycles_per_s = Cuda(), 100_000_000 / worked_s(100_000_000)
    if work:
        torch.cuda._sleep(int(work * WAIT_S * cycles_per_s))
    assert cuda.begin_wait()
    time.sleep(WAIT_S)
    cuda.end_wait()
    if work > 1:
        assert cuda.idle_s() is None
    torch.cuda.synchronize()
    assert cuda.idle_s() == pytest.approx(idle * WAIT_S, abs=0.2 * WAIT_S)


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("work", "share"), [(0.0, 1.0), (0.5, 0.5), (2.0, 0.0)], ids=["idle", "half", "busy"]
)
def test_a_training_starves_its_device_only_while_that_has_no_work(work, share):
    """A wait costs nothing as long as earlier steps keep the device busy."""
    cycles = int(work * WAIT_S * 100_000_000 / worked_s(100_000_000))
    kept = monitored(
        fastload.Loader(Numbers(450, WAIT_S), num_workers=0, pin_memory=True),
        None,
        lambda batch: torch.cuda._sleep(cycles) if cycles else batch.to("cuda", non_blocking=True),
    )
    torch.cuda.synchronize()
    shares = [
        window.scalars["starved_share"]
        for window in kept.windows[2:]
        if "starved_share" in window.scalars
    ]
    assert len(shares) > 3
    assert shares == pytest.approx([share] * len(shares), abs=0.15)
    words = [finding.what for finding in kept.findings if finding.kind == "starvation"]
    assert all("the accelerator has no work" in each for each in words)
    assert bool(words) is (share > 0)


@pytest.mark.gpu
def test_the_figures_of_cuda():
    cuda = Cuda()
    matrix = torch.ones(4096, 4096, device="cuda")
    pinned = torch.ones(1 << 20).pin_memory()
    assert cuda.begin_wait()
    figures = cuda.read()
    assert figures["cuda_allocated_bytes"] >= matrix.nbytes
    assert figures["cuda_limit_bytes"] > figures["cuda_reserved_bytes"] > 0
    assert figures["pinned_bytes"] >= pinned.nbytes
    reasons = {"gpu_power_capped", "gpu_hardware_slowdown", "gpu_thermal_slowdown"}
    assert reasons <= figures.keys() or importlib.util.find_spec("pynvml") is None


@pytest.mark.gpu
def test_a_graph_that_is_captured_is_left_alone():
    cuda, graph = Cuda(), torch.cuda.CUDAGraph()
    ones = torch.ones(8, device="cuda")
    with torch.cuda.graph(graph):
        assert cuda.begin_wait() is False
        ones += 1
    graph.replay()
