"""What worker processes cannot do, AUTO does in this process: nothing is lost, and one line says why."""

import errno
import logging
import re
import textwrap
import threading
import time
import warnings

import pytest
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

import fastload
from fastload.iterators.consumer import ConsumerIter
from tests.shared import interpreter
from tests.shared.compare import assert_same
from tests.shared.keyed import Noisy, auto, loaded
from tests.shared.processes import OUR_PROCESSES, in_a_daemon

pytestmark = OUR_PROCESSES


class Numbers(Dataset):
    """Fails in a worker from one index on, if at all; a loop makes its code unread."""

    def __init__(self, first=0):
        self.first = first

    def __len__(self):
        return 41

    def __getitem__(self, index):
        for _ in range(1):
            value = torch.full((3,), float(index))
        return self.made(value) if index >= self.first else {"value": value}

    def made(self, value):
        raise NotImplementedError


class Function(Numbers):
    def made(self, value):
        return {"value": value, "fn": [lambda: 1]}


class Locked(Numbers):
    def made(self, value):
        return {"value": value, "lock": threading.Lock()}


class Graph(Numbers):
    def made(self, value):
        return {"value": value.requires_grad_() * 2}


class Leaf(Numbers):
    def made(self, value):
        return {"value": value.requires_grad_()}


class Quantised(Numbers):
    def made(self, value):
        with warnings.catch_warnings(action="ignore"):  # torch will drop them
            return {"value": torch.quantize_per_tensor(value, 0.5, 0, torch.quint8)}


class Device(Numbers):
    """Says what torch says where CUDA is used in a fork of a process that has used it."""

    def made(self, value):
        if get_worker_info() is not None:
            msg = (
                "Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, "
                "you must use the 'spawn' start method"
            )
            raise RuntimeError(msg)
        return {"value": value}


class Unloadable(Numbers):
    """Gives what pickles and does not come back."""

    def made(self, value):
        return {"value": value, "bad": Broken()}


class Broken:
    def __reduce__(self):
        return _here_only, (get_worker_info() is None,)


def _here_only(made_here):
    if not made_here:
        msg = "it was made elsewhere"
        raise ValueError(msg)
    return Broken()


def values(batches):
    return [[sample["value"] for sample in batch] for batch in batches]


def as_list(samples):
    return samples


def lines(caplog):
    return [record.message for record in caplog.records if record.name == "fastload"]


FAILURES = {
    Function: r"batch\[\d\]\['fn'\]\[0\]: Can't pickle local object",
    Locked: r"batch\[\d\]\['lock'\]: cannot pickle '_thread.lock'",
    Graph: r"batch\[\d\]\['value'\]: a tensor that requires grad",
    Leaf: r"batch\[\d\]\['value'\]: a tensor that requires grad",
    Quantised: r"batch\[\d\]\['value'\]: torch does not send the scale",
    Device: "Cannot re-initialize CUDA in forked subprocess",
    Unloadable: "it was made elsewhere",
}


@pytest.mark.parametrize("first", [0, 18])
@pytest.mark.parametrize(("kind", "words"), FAILURES.items())
def test_what_workers_cannot_hand_over_is_made_here(kind, words, first, caplog):
    want = values(DataLoader(kind(first), 4, collate_fn=as_list))
    dataset = kind(first)
    loader = auto(dataset, 2, collate_fn=as_list)
    assert_same(values(loader), want, "first epoch")
    (line,) = lines(caplog)
    assert line.startswith("loading in this process from here on: ")
    assert re.search(words, line)
    assert_same(values(loader), want, "second epoch")
    assert_same(values(auto(dataset, 3, collate_fn=as_list)), want, "another loader")
    assert "lane: consumer" in loader.explain()
    assert lines(caplog) == [line]


@pytest.mark.parametrize("kind", FAILURES)
def test_persistent_workers_fail_over_too(kind, caplog):
    want = values(DataLoader(kind(9), 4, collate_fn=as_list))
    loader = auto(kind(9), 2, collate_fn=as_list, persistent_workers=True)
    assert_same([values(loader) for _ in range(3)], [want] * 3, "epochs")
    assert len(lines(caplog)) == 1


def test_a_graph_reaches_the_datasets_own_parameter():
    class Scaled(Numbers):
        def __init__(self):
            super().__init__()
            self.scale = torch.nn.Parameter(torch.ones(3))

        def made(self, value):
            return value * self.scale

    dataset = Scaled()
    for batch in auto(dataset, 2):
        batch.sum().backward()
    assert dataset.scale.grad.tolist() == [sum(range(41))] * 3


class NoisyFunction(Noisy):
    """Keyed samples of which some cannot be handed over."""

    def __init__(self, first):
        self.first = first

    def __getitem__(self, index):
        sample = super().__getitem__(index)
        sample["fn"] = len if index < self.first else (lambda: 1)
        return sample


def without_functions(samples):
    first, *rest = [{k: v for k, v in sample.items() if k != "fn"} for sample in samples]
    batch = torch.utils.data.default_collate([first, *rest])
    return batch | {"held": [sample["fn"] for sample in samples]}


def test_draws_are_the_workers_from_the_failed_batch_on(caplog):
    arguments = {"shuffle": True, "collate_fn": without_functions}
    want = loaded(NoisyFunction(41), 2, lane="process", **arguments)
    got = loaded(NoisyFunction(20), 2, **arguments)
    for batch in [batch for results in (want, got) for epoch in results[0] for batch in epoch]:
        del batch["held"]
    assert_same(got, want, "batches")
    assert len(lines(caplog)) == 1


@pytest.mark.parametrize("kind", [Function, Graph, Leaf])
def test_a_chosen_number_and_a_chosen_lane_keep_their_errors(kind):
    for arguments in ({"num_workers": 2}, {"lane": "process"}):
        iterator = iter(fastload.Loader(kind(), 4, collate_fn=as_list, **arguments))
        if kind is Leaf:  # of which workers hand over copies
            assert next(iterator)[0]["value"].requires_grad
            continue
        with pytest.raises(Exception, match=r"pickle|requires_grad"):
            next(iterator)


class Reader(Dataset):
    """Reads a file that is open when workers would be forked."""

    def __init__(self, path):
        self.file = path.open("rb")

    def __len__(self):
        return 200

    def __getitem__(self, index):
        self.file.seek(index * 8)
        return int.from_bytes(self.file.read(8), "little")


def test_an_open_file_is_read_here(tmp_path, caplog):
    path = tmp_path / "file"
    path.write_bytes(b"".join(index.to_bytes(8, "little") for index in range(200)))
    dataset = Reader(path)
    try:
        loader = auto(dataset, 2, batch_size=16, shuffle=True)
        assert type(iter(loader)) is ConsumerIter
        assert sorted(torch.cat(list(loader)).tolist()) == list(range(200))
        assert lines(caplog) == [
            "loading in this process: dataset.file is an open file, whose position workers would share"
        ]
        assert "dataset.file is an open file" in loader.explain()
    finally:
        dataset.file.close()


class Streaming(Dataset):
    def __init__(self):
        self.numbers = iter(range(40))

    def __len__(self):
        return 40

    def __getitem__(self, index):
        return next(self.numbers)


def test_an_iterator_in_the_dataset_goes_on_here():
    assert torch.cat(list(auto(Streaming(), 2))).tolist() == list(range(40))


def test_an_order_without_a_length_is_iterated():
    loader = auto(Numbers(41), 2, sampler=(index for index in [3, 1, 2] * 3), collate_fn=as_list)
    got = [sample["value"][0].item() for batch in loader for sample in batch]
    assert got == [3, 1, 2] * 3


def test_a_dataset_that_does_not_pickle_is_not_sent(caplog):
    dataset = Numbers(41)
    dataset.fn = lambda: 1
    loader = auto(dataset, 2, multiprocessing_context="spawn", collate_fn=as_list)
    assert_same(values(loader), values(DataLoader(dataset, 4, collate_fn=as_list)), "batches")
    assert type(iter(loader)) is ConsumerIter
    (line,) = lines(caplog)
    assert "dataset.fn: " in line


class Waiting(Numbers):
    def made(self, value):
        time.sleep(0.001)
        return {"value": value}


def refused():
    raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")


@pytest.mark.parametrize("kind", ["no fork", "no pickle"])
def test_without_workers_a_shuffled_order_is_torchs(kind, monkeypatch, caplog):
    def shuffled(made, **arguments):
        torch.manual_seed(5)
        loader = made(dataset, shuffle=True, collate_fn=as_list, **arguments)
        return [values(loader) for _ in range(2)]

    dataset, options = Waiting(), {}
    if kind == "no fork":
        monkeypatch.setattr("os.fork", refused)
    else:
        dataset.fn, options = (lambda: 1), {"multiprocessing_context": "spawn"}
    got = shuffled(lambda data, **more: auto(data, 2, **more), **options)
    assert_same(got, shuffled(lambda data, **more: DataLoader(data, 4, **more)), "batches")
    (line,) = lines(caplog)
    assert kind == "no pickle" or "no worker process can be started: [Errno 11]" in line


class Lines(IterableDataset):
    """Elements that cannot be handed over from one on."""

    def __init__(self, first):
        self.first = first

    def __iter__(self):
        for index in range(41):
            value = torch.rand(2)
            yield {"value": value, "fn": len if index < self.first else (lambda: 1)}


@pytest.mark.parametrize("first", [0, 18])
def test_an_iterable_dataset_goes_on_where_its_worker_failed(first, caplog):
    def run(dataset, **arguments):
        torch.manual_seed(3)
        loader = fastload.Loader(dataset, 4, collate_fn=as_list, **arguments)
        return [values(loader) for _ in range(2)], torch.get_rng_state()

    want = run(Lines(41), lane="process")
    assert_same(run(Lines(first)), want, "batches")
    assert len(lines(caplog)) == 1


SESSION = """
    import logging, multiprocessing, sys
    logging.basicConfig(format="%(message)s")
    multiprocessing.set_start_method("spawn")
    from fastload import Loader

    class Squares:
        def __len__(self):
            return 4
        def __getitem__(self, index):
            for _ in range(1):
                return index ** 2

    print([batch.tolist() for batch in Loader(Squares(), 2)])
"""


def test_an_interactive_session_loads_here_and_says_so():
    done = interpreter.run("-c", textwrap.dedent(SESSION))
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[[0, 1], [4, 9]]\n"
    assert (
        "loading in this process: __main__.Squares is defined in an interactive session"
        in done.stderr
    )


def test_logging_of_the_dataset_is_no_hindrance():
    dataset = Locked(41)
    dataset.log = logging.getLogger("fastload")
    assert type(iter(auto(dataset, 2, collate_fn=as_list))) is not ConsumerIter


def test_a_daemonic_process_loads_here_and_says_so():
    def load():
        loader = auto(Numbers(41), 2, collate_fn=as_list)
        return [len(values(loader)) for _ in range(2)], type(iter(loader)).__name__

    (lengths, kind), records = in_a_daemon(load)
    assert lengths == [11, 11]
    assert kind == "ConsumerIter"
    assert records == [
        "loading in this process: this process is daemonic and may not have children"
    ]
