"""Accelerate, which builds a stateful loader of the class that torchdata names, and changes its state."""

import sys
import types

import pytest
import torch

from fastload import Loader
from tests.shared.compare import MANY_WORKERS
from tests.shared.state import carried, columns

pytestmark = [MANY_WORKERS, pytest.mark.filterwarnings("ignore")]

accelerate = pytest.importorskip("accelerate")


@pytest.fixture
def prepared(monkeypatch):
    """Returns a function that prepares a loader, whose batches ours then makes."""
    from accelerate import data_loader

    module = types.ModuleType("torchdata.stateful_dataloader")
    module.StatefulDataLoader = Loader
    monkeypatch.setitem(sys.modules, "torchdata", types.ModuleType("torchdata"))
    monkeypatch.setitem(sys.modules, "torchdata.stateful_dataloader", module)
    monkeypatch.setattr(data_loader, "is_torchdata_stateful_dataloader_available", lambda: True)
    monkeypatch.setattr(
        data_loader,
        "importlib",
        types.SimpleNamespace(metadata=types.SimpleNamespace(version=lambda _: "0.11.0")),
    )

    def prepare(count=30, batch_size=4, *, drop_last=False, **options):
        loader = Loader(
            columns(count), batch_size, shuffle=True, num_workers=2, drop_last=drop_last
        )
        return data_loader.prepare_data_loader(
            loader, use_stateful_dataloader=True, put_on_device=False, **options
        )

    return prepare


@pytest.mark.parametrize("stop", range(1, 9))
def test_the_rest_is_the_same(prepared, stop):
    torch.manual_seed(3)
    first, seen, state = prepared(), [], None
    for number, batch in enumerate(first, 1):
        seen.append(batch.tolist())
        if number == stop:
            state = carried(first.state_dict())
            assert state["_iterator_finished"] == (number == 8)
    torch.manual_seed(4)
    second = prepared()
    second.load_state_dict(state)
    rest = [batch.tolist() for batch in second]
    if stop < 8:
        assert rest == seen[stop:]
    else:
        assert sorted(index for batch in rest for index in batch) == list(range(30))


@pytest.mark.parametrize("stop", range(1, 4))
def test_each_process_goes_on_with_its_batches(prepared, stop):
    """Accelerate deals the batches of one order out to its processes."""
    for rank in range(2):
        options = {"num_processes": 2, "process_index": rank, "rng_types": []}
        torch.manual_seed(3)
        first, seen, state = prepared(64, **options), [], None
        for number, batch in enumerate(first, 1):
            seen.append(batch.tolist())
            if number == stop:
                state = carried(first.state_dict())
        second = prepared(64, **options)
        second.load_state_dict(state)
        assert [batch.tolist() for batch in second] == seen[stop:] != []


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"batch_size": 8}, "batch_size=4.*batch_size=8"),
        ({"drop_last": True}, "drop_last=False.*drop_last=True"),
        ({"split_batches": True}, "split_batches=False.*split_batches=True"),
        ({"even_batches": False}, "even_batches=True.*even_batches=False"),
    ],
    ids=str,
)
def test_what_deals_other_batches_is_refused(prepared, changed, named):
    options = {"num_processes": 2, "process_index": 0, "rng_types": []}
    first = prepared(64, **options)
    next(iter(first))
    state = carried(first.state_dict())
    with pytest.raises(ValueError, match=named):
        prepared(64, **options, **changed).load_state_dict(state)
