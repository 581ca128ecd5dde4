"""`TokenBatchSampler`: partitions within a budget, the same for all ranks."""

import inspect
import pickle

import numpy as np
import PIL.Image
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import BatchSampler, DataLoader
from torchvision.transforms import RandomCrop, ToTensor

import fastload
from fastload import BucketBatchSampler, PackBatchSampler, TokenBatchSampler, _lib
from fastload.batching import Filler
from fastload.columns import Image, Ragged, Rows
from tests.shared.compare import MANY_WORKERS
from tests.shared.sizes import SIZES

from .lengths import Samples, counted, of_ranks, tokens

pytestmark = MANY_WORKERS

COSTS = {
    "padded": lambda lengths: len(lengths) * max(lengths),
    "sum": sum,
    "quadratic:16": lambda lengths: len(lengths) * (max(lengths) + max(lengths) ** 2 / 16),
}


@given(
    lengths=st.lists(st.integers(1, 60), max_size=150),
    world=st.sampled_from([1, 2, 3, 8]),
    seed=st.integers(-(2**63), 2**64),
    cost=st.sampled_from(sorted(COSTS)),
    window=st.sampled_from([None, 1, 7, 64]),
    multiple=st.integers(1, 3),
    shuffle=st.booleans(),
    remainder=st.sampled_from(["drop", "repeat", "mask"]),
)
def test_a_plan_is_a_partition_and_never_over_budget(
    lengths, world, seed, cost, window, multiple, shuffle, remainder
):
    def make(rank):
        return TokenBatchSampler(
            lengths,
            max_tokens=300,
            cost=cost,
            window=window,
            shuffle=shuffle,
            seed=seed,
            batch_multiple=multiple,
            num_replicas=world,
            rank=rank,
            remainder=remainder,
        )

    ranks = of_ranks(make, world)
    assert all(COSTS[cost]([lengths[i] for i in b]) <= 300 for rank in ranks for b in rank)
    times = counted(ranks)
    if remainder == "mask" or world == 1:
        assert times == dict.fromkeys(range(len(lengths)), 1)
    elif remainder == "repeat":
        assert set(times) == set(range(len(lengths)))
    else:
        assert set(times.values()) <= {1}
        assert len(lengths) - len(times) < world
    if remainder != "mask":
        assert not any(isinstance(i, Filler) for rank in ranks for b in rank for i in b)


@pytest.mark.parametrize("world", [1, 2, 3, 8])
def test_every_sample_is_on_one_rank_once(world):
    lengths = tokens(10_007)

    def make(rank):
        return TokenBatchSampler(
            lengths, 4096, num_replicas=world, rank=rank, remainder="mask", seed=3
        )

    ranks = of_ranks(make, world)
    assert counted(ranks) == dict.fromkeys(range(10_007), 1)
    for step in zip(*ranks, strict=True):
        means = [lengths[batch].mean() for batch in step]
        assert max(means) < 2 * min(means) + 8


def test_epochs_follow_each_other_unless_one_is_chosen():
    sampler = TokenBatchSampler(tokens(500), 1024)
    assert sampler.epoch == 0
    first, second = list(sampler), list(sampler)
    assert first != second
    assert sampler.epoch == 2
    sampler.sampler.set_epoch(0)
    assert list(sampler) == first
    assert list(sampler) == second
    other = TokenBatchSampler(tokens(500), 1024)
    other.set_epoch(1)
    assert list(other) == second
    sampler.set_epoch(1)
    iter(sampler)  # torch makes an iterator that it does not use
    assert list(sampler) == second


def test_length_is_that_of_the_coming_epoch():
    sampler = TokenBatchSampler(tokens(3000, longest=512), 512)
    announced = [(len(sampler), len(list(sampler))) for _ in range(12)]
    assert all(before == found for before, found in announced)
    assert len({found for _, found in announced}) > 1


def test_order_depends_on_the_seed_alone():
    lengths = tokens(400)
    orders = [list(TokenBatchSampler(lengths, 1024, seed=seed)) for seed in (0, 0, 1, 2**64)]
    assert orders[0] == orders[1] == orders[3] != orders[2]
    torch.manual_seed(5)
    before = torch.get_rng_state()
    assert list(TokenBatchSampler(lengths, 1024)) == orders[0]
    assert torch.equal(torch.get_rng_state(), before)


def test_generator_draws_the_seed_once():
    lengths = tokens(400)
    generator = torch.Generator().manual_seed(11)
    sampler = TokenBatchSampler(lengths, 1024, generator=generator)
    state = generator.get_state()
    epochs = [list(sampler) for _ in range(2)]
    assert torch.equal(generator.get_state(), state)
    again = TokenBatchSampler(lengths, 1024, generator=torch.Generator().manual_seed(11))
    assert [list(again) for _ in range(2)] == epochs
    drawn = torch.empty((), dtype=torch.int64).random_(generator=generator.manual_seed(11))
    assert list(TokenBatchSampler(lengths, 1024, seed=int(drawn))) == epochs[0]
    with pytest.raises(ValueError, match="exclude each other"):
        TokenBatchSampler(lengths, 1024, seed=1, generator=generator)


def test_without_shuffle_and_sorting_batches_are_in_order():
    sampler = TokenBatchSampler([3, 3, 3, 9, 1, 1], 9, window=1, shuffle=False)
    assert list(sampler) == [[0, 1, 2], [3], [4, 5]] == list(sampler)


def test_lengths_come_from_anywhere():
    lengths = [4, 0, 7, 2, 2]
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    values = torch.zeros(offsets[-1])
    expected = list(TokenBatchSampler(lengths, 10))
    for source in (
        tuple(lengths),
        np.array(lengths, np.uint16),
        np.array(lengths, np.uint64)[::1],
        np.array(lengths * 2, np.int32)[:5],
        torch.tensor(lengths),
        torch.tensor(lengths, dtype=torch.uint8),
        Rows(torch.tensor(lengths, dtype=torch.int16)),
        Ragged(values, offsets),
        Ragged(values, offsets.astype(np.int32)),
        _selected(Ragged(values, offsets)),
    ):
        assert list(TokenBatchSampler(source, 10)) == expected, source


def _selected(column):
    """Returns a native column of the same samples, put together from two halves of them."""
    halves = [Rows(torch.arange(*span)) for span in ((0, 2), (2, 5))]
    return _lib.concat([_lib.select(column._core, half._core) for half in halves])


@pytest.mark.parametrize(
    ("lengths", "error", "words"),
    [
        ([1.5, 2.0], TypeError, "one integer per sample"),
        ([[1, 2]], TypeError, "2 dimensions"),
        ([True, False], TypeError, "bool"),
        (torch.ones(3), TypeError, "float32"),
        (Rows(torch.ones(3, 2, dtype=torch.int64)), TypeError, "2 dimensions"),
        ([3, -1], ValueError, "sample 1 has length -1"),
        ([3, 1 << 32], ValueError, "sample 1 has length 4294967296"),
        (np.array([1 << 63], np.uint64), ValueError, "length 9223372036854775808"),
        (torch.tensor([(1 << 64) - 1], dtype=torch.uint64), ValueError, "18446744073709551615"),
    ],
)
def test_what_is_no_length_is_refused(lengths, error, words):
    with pytest.raises(error, match=words):
        TokenBatchSampler(lengths, 10)


def test_overlong_samples():
    lengths = [3, 50, 3, 4, 70]

    def batches(overlong):
        sampler = TokenBatchSampler(lengths, 10, overlong=overlong, shuffle=False)
        return sampler, list(sampler)

    with pytest.raises(ValueError, match="sample 1 has length 50, and max_tokens=10 allows 10"):
        batches("error")
    assert batches("alone")[1] == [[0, 2], [3], [1], [4]]
    assert batches("drop")[1] == [[0, 2], [3]]
    sampler, found = batches("truncate")
    assert found == [[0, 2], [3], [1], [4]]
    assert sampler.max_length == 10
    assert sampler.plan_stats()["truncated"] == 2
    assert sampler.plan_stats()["tokens_max"] == 10
    quadratic = TokenBatchSampler([1], 1000, cost="quadratic:64")
    longest = quadratic.max_length
    assert longest + longest**2 / 64 <= 1000 < longest + 1 + (longest + 1) ** 2 / 64


def test_sizes_are_bounded_and_multiples():
    sampler = TokenBatchSampler([2] * 100, 64, max_batch_size=15, batch_multiple=4)
    sizes = [len(batch) for batch in sampler]
    assert sizes == [12] * 8 + [4]
    with pytest.raises(ValueError, match="raise max_batch_size"):
        TokenBatchSampler([2], 64, max_batch_size=3, batch_multiple=4)


def test_the_longest_sample_comes_first_on_demand():
    lengths = tokens(2000)
    longest = int(lengths.argmax())
    for seed in range(5):
        sampler = TokenBatchSampler(lengths, 4096, longest_first=True, seed=seed)
        assert longest in next(iter(sampler))


@pytest.mark.parametrize("kind", [TokenBatchSampler, BucketBatchSampler, PackBatchSampler])
def test_options_are_attributes(kind):
    sampler = kind([3, 1, 2], 8)
    hidden = {"lengths", "generator", "drop_last", "num_replicas", "rank"}
    options = inspect.signature(kind).parameters.keys() - hidden
    assert [name for name in options if not hasattr(sampler, name)] == []


def test_stats_say_what_the_plan_is():
    lengths = tokens(5000)
    samplers = [TokenBatchSampler(lengths, 4096, num_replicas=3, rank=r) for r in range(3)]
    stats = samplers[0].plan_stats()
    assert stats == samplers[2].plan_stats()
    batches = [lengths[batch] for sampler in samplers for batch in sampler]
    padded = np.sort([len(batch) * batch.max() for batch in batches])
    samples = sum(len(batch) for batch in batches)
    assert stats == {
        "steps": len(batches) // 3,
        "batches": len(batches),
        "samples": samples,
        "dropped": 5000 - samples,
        "repeated": 0,
        "fillers": 0,
        "truncated": 0,
        "samples_max": max(len(batch) for batch in batches),
        "waste": pytest.approx(1 - sum(b.sum() for b in batches) / padded.sum()),
        "tokens_p50": np.percentile(padded, 50, method="inverted_cdf"),
        "tokens_p99": np.percentile(padded, 99, method="inverted_cdf"),
        "tokens_max": padded[-1],
    }
    assert stats["waste"] < 0.1
    assert TokenBatchSampler(lengths, 4096, cost="sum").plan_stats()["waste"] == 0


def test_it_is_a_batch_sampler_that_can_be_pickled():
    sampler = TokenBatchSampler(tokens(300), 1024, seed=4)
    assert isinstance(sampler, BatchSampler)
    assert (sampler.batch_size, sampler._drop_last) == (None, False)
    first = list(sampler)
    copy = pickle.loads(pickle.dumps(sampler))
    assert copy.epoch == 1
    assert list(copy) == list(sampler) != first
    assert list(TokenBatchSampler(tokens(300), 1024, seed=4).sampler) == [
        i for batch in first for i in batch
    ]
    assert len(copy.sampler) == 300


def test_fillers_are_integers_that_say_so():
    filler = pickle.loads(pickle.dumps(Filler(7)))
    assert isinstance(filler, Filler)
    assert filler == 7
    assert [10, 20][Filler(1)] == 20
    ranks = of_ranks(
        lambda rank: TokenBatchSampler([5, 5], 5, num_replicas=3, rank=rank, remainder="mask"),
        3,
    )
    assert sorted(isinstance(i, Filler) for [[i]] in ranks) == [False, False, True]


@pytest.mark.parametrize("workers", [fastload.AUTO, 0, 2])
@pytest.mark.parametrize("persistent", [False, True])
def test_within_an_epoch_a_loader_has_its_length(workers, persistent):
    sampler = TokenBatchSampler(tokens(3000, longest=512), 512)
    lengths = [len(list(sampler)) for _ in range(4)]
    assert len(set(lengths)) > 1
    sampler.set_epoch(0)
    loader = fastload.Loader(
        Samples(3000),
        batch_sampler=sampler,
        num_workers=workers,
        persistent_workers=persistent and workers == 2,
    )
    for length in lengths[:3]:
        assert len(loader) == length
        assert {len(loader) for _ in loader} == {length}
    for _ in loader:
        sampler.set_epoch(1)
        assert len(loader) == lengths[3]
        break
    assert len(pickle.loads(pickle.dumps(loader))) == lengths[1]


@pytest.mark.parametrize("kind", [DataLoader, fastload.Loader])
@pytest.mark.parametrize("workers", [0, 2])
def test_loaders_take_it(kind, workers):
    lengths = tokens(200)
    loader = kind(Samples(200), batch_sampler=TokenBatchSampler(lengths, 1024), num_workers=workers)
    expected = TokenBatchSampler(lengths, 1024)
    for _ in range(2):
        assert len(loader) == len(expected)
        assert [batch.tolist() for batch in loader] == list(expected)


def test_native_batches_follow_the_plan():
    lengths = tokens(200)
    dataset = fastload.Dataset({"length": Rows(torch.from_numpy(lengths))})
    sampler = TokenBatchSampler(lengths, 1024)
    loader = fastload.Loader(dataset, batch_sampler=sampler, lane="native", **SIZES)
    expected = TokenBatchSampler(lengths, 1024)
    for _ in range(2):
        plan = [lengths[batch].tolist() for batch in expected]
        assert [batch["length"].tolist() for batch in loader] == plan


@pytest.mark.parametrize("lane", ["native", "process"])
def test_fillers_are_loaded_like_the_samples_that_they_repeat(lane):
    dataset = fastload.Dataset(Rows(torch.tensor([5, 6])))
    found = []
    for rank in range(3):
        sampler = TokenBatchSampler([5, 5], 5, num_replicas=3, rank=rank, remainder="mask")
        loader = fastload.Loader(dataset, batch_sampler=sampler, lane=lane, **SIZES)
        found += [batch.tolist() for batch, _ in loader]
    assert sorted(found) in ([[5], [5], [6]], [[5], [6], [6]])


@pytest.mark.parametrize("world", [2, 3])
def test_random_operations_do_not_depend_on_the_number_of_ranks(world, tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (40, 20, 30, 3), np.uint8)
    for number, image in enumerate(pixels):
        PIL.Image.fromarray(image).save(tmp_path / f"{number:02}.png")
    images = Image(str(tmp_path / "*.png"), [RandomCrop(8), ToTensor()])
    dataset = fastload.Dataset((images, Rows(torch.arange(40))))

    def cropped(world, rank):
        sampler = TokenBatchSampler([3] * 40, 12, num_replicas=world, rank=rank)
        loader = fastload.Loader(
            dataset,
            batch_sampler=sampler,
            generator=torch.Generator().manual_seed(1),
            lane="native",
            **SIZES,
        )
        pairs = (pair for batch in loader for pair in zip(*batch, strict=True))
        return {int(index): image for image, index in pairs}

    whole = cropped(1, 0)
    for rank in range(world):
        for index, image in cropped(world, rank).items():
            assert torch.equal(image, whole[index])


def test_arguments_are_checked():
    for arguments, words in [
        ({"max_tokens": 0}, "max_tokens should be a positive"),
        ({"max_tokens": None}, "max_tokens should be a positive integer, but got None"),
        ({"batch_multiple": None}, "batch_multiple should be a positive"),
        ({"max_tokens": 1e4}, "max_tokens should be a positive integer, but got 10000.0"),
        ({"window": 0}, "window should be a positive"),
        ({"cost": "cubic"}, "cost is 'padded', 'sum' or"),
        ({"cost": "quadratic:0"}, "integer q above 0"),
        (
            {"overlong": "cut"},
            r"overlong should be one of \('error', 'truncate', 'alone', 'drop'\), but got 'cut'",
        ),
        ({"remainder": "pad"}, r"remainder should be one of \('drop', 'repeat', 'mask'\)"),
        ({"num_replicas": 0}, "num_replicas is a number from 1"),
        ({"num_replicas": 2, "rank": 2}, r"Invalid rank 2, rank should be in .* \[0, 1\]"),
        ({"drop_last": 1}, "drop_last should be a boolean"),
    ]:
        with pytest.raises(ValueError, match=words):
            TokenBatchSampler([1], **({"max_tokens": 5} | arguments))
    with pytest.raises(ValueError, match="epoch should be at least 0"):
        TokenBatchSampler([1], 5).set_epoch(-1)


def test_no_samples_are_no_batches():
    sampler = TokenBatchSampler([], 5)
    assert (len(sampler), list(sampler)) == (0, [])
    assert sampler.plan_stats()["waste"] == 0
