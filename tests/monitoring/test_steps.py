"""What a monitor records of the steps: in every lane the same, and nothing about the batches changes."""

import gc
import threading
import time
import weakref

import numpy as np
import pytest
import torch
from torch.utils.data import BatchSampler, DataLoader, IterableDataset, Sampler

import fastload
from fastload.batching import TokenBatchSampler
from fastload.columns import Rows
from fastload.monitoring.steps import Recorder
from fastload.sizes import rows_of
from tests.shared.compare import assert_same
from tests.shared.processes import OUR_PROCESSES

from .lanes import BATCH, BATCHES, LANES, ROWS, Kept
from .monitored import until

pytestmark = OUR_PROCESSES

EPOCHS = 3
SLEEP_S = 0.002


@pytest.fixture
def kept():
    return Kept()


def loader_of(lane, **arguments):
    dataset, settings = LANES[lane]
    return fastload.Loader(dataset(), **{"batch_size": BATCH, **settings, **arguments})


@pytest.mark.parametrize("lane", LANES)
def test_every_lane_is_recorded(lane, kept):
    loader = loader_of(lane)
    expected = [list(loader_of(lane)) for _ in range(EPOCHS)]
    began_s = time.monotonic()
    with fastload.monitor(loader, kept, every_s=0.05) as monitor:
        for epoch in range(EPOCHS):
            batches = []
            for batch in loader:
                batches.append(batch)
                time.sleep(SLEEP_S)
            assert_same(batches, expected[epoch])
    passed_s = time.monotonic() - began_s
    assert kept.column("number").tolist() == list(range(EPOCHS * BATCHES))
    assert kept.column("epoch").tolist() == sorted([*range(EPOCHS)] * BATCHES)
    assert kept.column("rows").tolist() == ([BATCH] * (BATCHES - 1) + [ROWS % BATCH]) * EPOCHS
    own_s, wait_s, end_s = (kept.column(name) for name in ("own_s", "wait_s", "end_s"))
    assert own_s.min() >= SLEEP_S
    assert wait_s.min() > 0
    assert own_s.sum() + wait_s.sum() <= passed_s
    assert (np.diff(end_s) >= own_s[1:] + wait_s[1:] - 1e-6).all()
    assert kept.windows[-1].step == EPOCHS * BATCHES - 1
    assert monitor.scalars() == kept.windows[-1].scalars
    del loader
    gc.collect()


def test_an_iterator_without_a_monitor_is_not_recorded():
    loader = loader_of("native")
    list(loader)
    with fastload.monitor(loader) as monitor:
        assert monitor._run.recorder.count == 0
        list(loader)
        assert monitor._run.recorder.count == BATCHES
    list(loader)
    assert monitor._run.recorder.count == BATCHES


def test_the_end_of_a_monitor_frees_its_iterator():
    loader = loader_of("native")
    with fastload.monitor(loader) as monitor:
        batches = iter(loader)
        for _ in range(3):
            next(batches)
    assert len(list(batches)) == BATCHES - 3
    assert monitor._run.recorder.count == 2  # the third step was not over


def test_an_iterator_holds_its_recorder_in_no_cycle_that_stays():
    batches = iter(loader_of("native"))
    recorder = Recorder()
    recorder.batches = batches
    batches._record_steps(recorder)
    next(batches)
    is_gone = weakref.ref(batches)
    del batches, recorder
    gc.collect()
    assert is_gone() is None


def test_what_a_recorder_raises_is_raised_and_the_next_step_is_whole():
    class Failing(Recorder):
        def _look(self, batch):
            super()._look(batch)
            if self.count == 1:
                self._looks = True
                raise ZeroDivisionError
            self._looks = True

    batches = iter(loader_of("native"))
    recorder = Failing()
    recorder.begin(0.0, BATCH, ROWS)
    batches._record_steps(recorder)
    next(batches)
    with pytest.raises(ZeroDivisionError):
        next(batches)
    assert len(list(batches)) == BATCHES - 2


def test_the_step_of_a_loop_that_is_left_is_dropped(kept):
    loader = loader_of("native")
    with fastload.monitor(loader, kept):
        for number, _ in enumerate(loader):
            if number == 3:
                break
        time.sleep(0.2)  # an evaluation, of which nobody knows that it is no step
        list(loader)
    assert kept.column("epoch").tolist() == [0] * 3 + [1] * BATCHES
    assert kept.column("own_s").max() < 0.2


def test_work_between_two_epochs_is_no_step(kept):
    loader = loader_of("native")
    with fastload.monitor(loader, kept):
        list(loader)
        time.sleep(0.2)
        list(loader)
    assert len(kept.column("number")) == 2 * BATCHES
    assert kept.column("own_s").max() < 0.2
    assert kept.column("wait_s").max() < 0.2


def test_a_second_iterator_takes_over(kept):
    loader = loader_of("native")
    with fastload.monitor(loader, kept):
        first, second = iter(loader), iter(loader)
        assert len(list(zip(first, second, strict=True))) == BATCHES
    assert len(kept.column("number")) == BATCHES


def test_a_second_loader_is_not_mixed_in(kept, caplog):
    one, other = loader_of("native"), loader_of("native")
    with fastload.monitor(one, kept) as monitor:
        other.monitor = monitor
        for _ in one:
            list(other)
    assert len(kept.column("number")) == BATCHES
    assert caplog.text.count("follows one loader at a time") == 1


def test_a_batch_that_fails_is_no_step(kept):
    class Damaged(torch.utils.data.Dataset):
        def __len__(self):
            return 8

        def __getitem__(self, index):
            if index == 5:
                raise OSError
            return index

    loader = fastload.Loader(Damaged(), num_workers=0)
    with fastload.monitor(loader, kept):
        batches, taken = iter(loader), 0
        while True:
            try:
                next(batches)
            except StopIteration:
                break
            except OSError:
                time.sleep(0.1)
            else:
                taken += 1
    assert taken == len(kept.column("number")) == 7
    assert kept.column("own_s").max() < 0.1


class Stream(IterableDataset):
    def __iter__(self):
        return iter(range(10))


def test_rows_of_every_way_of_batching(kept):
    lengths = [3, 9, 4, 4, 8, 2]
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    ragged = fastload.Dataset(fastload.columns.Ragged(np.arange(offsets[-1]), offsets))
    cases = [
        (fastload.Loader(Stream(), num_workers=0, batch_size=4), [4, 4, 4]),
        (fastload.Loader(Rows(torch.arange(3)), batch_size=None), [0, 0, 0]),  # unknown
        (fastload.Loader(Rows(torch.arange(7)), batch_size=3, drop_last=True), [3, 3]),
        (fastload.Loader(Rows(torch.arange(5)), batch_sampler=[[0], [1, 2, 3, 4]]), [1, 4]),
        (fastload.Loader(Rows(torch.arange(9)), batch_size=4, sampler=[1, 2, 3, 4, 5]), [4, 1]),
    ]
    planned = TokenBatchSampler(lengths, 16, shuffle=False)
    cases.append(
        (
            fastload.Loader(ragged, batch_sampler=planned, collate_fn=fastload.PadCollate()),
            [len(batch) for batch in planned],
        )
    )
    for loader, rows in cases:
        kept.windows.clear()
        with fastload.monitor(loader, kept):
            list(loader)
        assert kept.column("rows").tolist() == rows


def test_rows_go_on_after_a_resumed_batch(kept):
    loader = loader_of("native")
    batches = iter(loader)
    for _ in range(BATCHES - 2):
        next(batches)
    resumed = loader_of("native", monitor=kept)
    resumed.load_state_dict(loader.state_dict())
    list(resumed)
    resumed.monitor.close()
    assert kept.column("rows").tolist() == [BATCH, ROWS % BATCH]


class Drawing(Sampler):
    """Draws when it is asked for its length."""

    def __len__(self):
        return int(torch.randint(6, ()))

    def __iter__(self):
        return iter(torch.randperm(12).tolist())


class Raising(Drawing):
    def __len__(self):
        raise ZeroDivisionError


@pytest.mark.parametrize("sampler", [Drawing(), Raising()])
def test_a_sampler_of_the_users_is_not_asked_for_its_length(sampler, kept):
    batches = BatchSampler(sampler, 4, drop_last=False)
    for options in ({"sampler": sampler, "batch_size": 4}, {"batch_sampler": batches}):
        data = torch.arange(12)
        kept.windows.clear()
        loader = fastload.Loader(Rows(data), num_workers=0, **options)
        with fastload.monitor(loader, kept):
            torch.manual_seed(3)
            ours = list(map(torch.clone, loader))  # which asks for no length
        torch.manual_seed(3)
        assert_same(ours, list(map(torch.clone, DataLoader(data, **options))))
        assert kept.column("rows").tolist() == [4, 4, 4]


class Odd:
    @property
    def shape(self):
        raise RuntimeError


@pytest.mark.parametrize(
    ("batch", "rows"),
    [
        (torch.zeros(3, 2), 3),
        ([torch.zeros(4, 2), torch.zeros(9)], 4),
        ({"a": (np.zeros((5, 1)),)}, 5),
        ({"text": ["a", "b"]}, 2),
        (("a",), 1),
        (torch.tensor(3), 0),
        ({}, 0),
        ([], 0),
        (None, 0),
        (object(), 0),
        (Odd(), 0),
    ],
)
def test_rows_of_a_batch(batch, rows):
    assert rows_of(batch) == rows


def test_long_runs_keep_the_latest_steps():
    recorder = Recorder()
    recorder.begin(0.0, 1, 1 << 40)
    number = 40_000
    for _ in range(number):
        recorder.asked()
        recorder.returned(None)
    recorder.asked()
    steps = recorder.read(0)
    assert recorder.count == number
    assert steps.number.tolist() == list(range(number - len(steps), number))
    assert len(steps) > 10_000
    assert (steps.wait_s >= 0).all()
    assert (steps.own_s >= 0).all()
    asked_s = steps.end_s - steps.own_s - steps.wait_s
    np.testing.assert_allclose(
        asked_s[1:], steps.end_s[:-1], rtol=0, atol=5e-10
    )  # equal: the clock's unit is 1e-9
    assert len(recorder.read(number)) == 0


def test_the_thread_that_takes_batches_is_known():
    loader = loader_of("native")
    recorder = Recorder()
    batches = iter(loader)
    batches._record_steps(recorder)
    recorder.begin(0.0, BATCH, ROWS)
    taking = threading.Thread(target=lambda: list(batches))
    taking.start()
    taking.join()
    assert recorder.thread == taking.ident
    assert recorder.count == BATCHES
    assert not recorder.is_running


def test_only_our_loader_is_monitored():
    with pytest.raises(TypeError, match=r"takes a fastload\.Loader, found DataLoader"):
        fastload.monitor(DataLoader(Rows(torch.arange(3))))


def test_a_batch_that_does_not_come_is_seen_while_it_is_waited_for():
    class Waiting(torch.utils.data.Dataset):
        def __len__(self):
            return 8

        def __getitem__(self, index):
            if index == 1:  # one of the first two: workers may still start
                time.sleep(0.2)
                assert "open_wait_s" not in monitor.scalars()
            if index == 5:
                until(lambda: monitor.scalars().get("open_wait_s", 0) > 0.1)
            if index == 7:
                raise ValueError(index)
            return index

    loader = fastload.Loader(Waiting(), num_workers=0)
    with fastload.monitor(loader, every_s=0.02) as monitor:
        with pytest.raises(ValueError, match="7"):
            list(loader)
        until(lambda: "open_wait_s" not in monitor.scalars())
