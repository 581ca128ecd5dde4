"""The three global generators are keyed by writing their states, and lent to samples in the training process."""

import itertools
import random
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

from fastload.draws import keyed
from fastload.draws.generators import Generators
from tests.shared.compare import assert_same
from tests.shared.threads import globals_now, seed_all

KEY = keyed.Key(11, 2, 3, None)


@pytest.fixture(autouse=True)
def _untouched() -> Iterator[None]:
    """Every test leaves the global generators to the next as it found them."""
    with keyed.borrowed():
        yield


def drawn() -> list[Any]:
    """Returns some of what each generator gives, with its halves of pairs and beyond a twist."""
    return [
        torch.initial_seed(),
        *(torch.randn(3), torch.rand(700), torch.randn(1, dtype=torch.double)),
        [*np.random.randn(3), *np.random.rand(700), *np.random.randint(9, size=5)],
        [random.gauss(0, 1), *(random.random() for _ in range(700)), random.randrange(2**70)],
    ]


def listed(state: Any) -> Any:
    """Returns a state of numpy's, of whatever kind, without arrays."""
    if isinstance(state, dict):
        return [listed(value) for value in state.values()]
    if isinstance(state, tuple):
        return [listed(value) for value in state]
    return state.tolist() if isinstance(state, np.ndarray) else state


def spoil(how: int) -> None:
    """Leaves the generators in one of many states."""
    seed_all()
    torch.randn(how), np.random.randn(how), [random.gauss(0, 1) for _ in range(how)]
    if how % 2:
        torch.rand(how), np.random.rand(how), [random.random() for _ in range(how)]


def test_a_key_gives_the_same_draws_whatever_was_drawn_before():
    draws = []
    for how in (0, 1, 2, 5, 623, 624, 625):
        spoil(how)
        keyed.begin_sample(KEY, 7)
        draws.append(drawn())
    assert_same(draws[1:], draws[:-1])


def test_states_are_ordinary_ones():
    """What the generators' own functions take out and put in goes on as the generators do."""
    keyed.begin_sample(KEY, 7)
    want = drawn()
    keyed.begin_sample(KEY, 7)
    states = torch.get_rng_state(), np.random.get_state(), random.getstate()
    spoil(5)
    torch.set_rng_state(states[0])
    np.random.set_state(states[1])
    random.setstate(states[2])
    assert_same(drawn(), want)


def test_draws_are_those_of_a_mersenne_twister_over_the_states():
    keyed.begin_sample(KEY, 7)
    torchs = torch.get_rng_state().view(torch.int64)
    states = {
        "torch": (torchs[3:627].numpy().astype(np.uint32), int(torchs[2])),
        "numpy": (np.random.get_state()[1], np.random.get_state()[2]),
        "python": (np.array(random.getstate()[1][:-1], np.uint32), random.getstate()[1][-1]),
    }
    draws = {
        "torch": [int(torch.empty((), dtype=torch.int64).random_(0, 2**20)) for _ in range(1300)],
        "numpy": np.random.randint(2**32, size=1300, dtype=np.uint32).tolist(),
        "python": [random.getrandbits(32) for _ in range(1300)],
    }
    for name, (words, taken) in states.items():
        twister = np.random.MT19937()
        state: Any = twister.state
        state["state"] = {"key": words, "pos": taken}
        twister.state = state
        want = twister.random_raw(1300)
        assert draws[name] == (want % 2**20 if name == "torch" else want).tolist(), name
    assert not np.isin(states["torch"][0], states["numpy"][0]).any()
    assert not np.isin(states["python"][0], states["numpy"][0]).any()


def test_seeds_of_a_sample_hold_to_its_end_and_no_longer():
    keyed.begin_sample(KEY, 8)
    want = drawn()
    keyed.begin_sample(KEY, 7)
    seed_all()
    seeded = drawn()
    torch.manual_seed(7), np.random.seed(7), random.seed(7)
    torch.randn(1), np.random.randn(), random.gauss(0, 1)
    assert_same(drawn(), seeded)
    torch.manual_seed(7), np.random.seed(7), random.seed(7)
    keyed.begin_sample(KEY, 8)
    assert_same(drawn(), want)


def test_indices_are_followed():
    indices = [3, -1, True, 2**70, np.int64(5), "a"]
    followed = keyed.follow(indices, key := keyed.Key(11, 2, 3, 40))
    assert (len(followed), followed.current) == (6, None)
    for place, index in enumerate(followed):
        got = drawn()
        assert followed.current == (indices[place],)
        assert index is indices[place]
        key.begin_sample(
            Generators(torch.default_generator, np.random.mtrand._rand, random._inst), index, place
        )
        assert_same(drawn(), got)
    got = drawn()
    assert followed.current is None
    keyed.begin_batch(key)
    assert_same(drawn(), got)


def test_indices_that_are_not_keyed_are_only_followed():
    seed_all()
    want = globals_now()
    seed_all()
    assert list(keyed.follow([1, 2], None)) == [1, 2]
    assert_same(globals_now(), want)


def test_what_is_no_batch_is_told_where_it_is_iterated():
    assert keyed.follow(3, KEY) == 3


@pytest.mark.parametrize("how", [0, 1, 2, 624])
def test_generators_that_were_borrowed_are_as_they_were(how: int):
    def state() -> list[Any]:
        return [torch.get_rng_state(), listed(np.random.get_state()), random.getstate()]

    spoil(how)
    want = state()
    with keyed.borrowed():
        for index in keyed.follow([1, 2, 3], KEY):
            drawn()
            if index == 2:
                with keyed.borrowed():  # a dataset that loads another
                    inside = list(keyed.follow([1], KEY))
                    spoil(5)
                assert inside == [1]
        np.random.set_bit_generator(np.random.PCG64(3))
        list(keyed.follow([1], KEY))
    assert_same(state(), want)
    with pytest.raises(ZeroDivisionError), keyed.borrowed():
        [len(drawn()) / 0 for _ in keyed.follow([3], KEY)]
    assert_same(state(), want)


def test_numpys_generator_over_other_bits_is_keyed_and_given_back():
    before = np.random.mtrand._rand._bit_generator
    np.random.set_bit_generator(np.random.PCG64(3))
    try:
        want = listed(np.random.get_state(legacy=False))
        draws = []
        for skipped in (0, 5):
            with keyed.borrowed():
                np.random.randn(skipped)
                keyed.begin_sample(KEY, 3)
                draws.append(drawn())
        assert_same(*draws)
        assert_same(listed(np.random.get_state(legacy=False)), want)
    finally:
        np.random.set_bit_generator(before)


def test_keys_give_draws_that_have_nothing_to_do_with_each_other():
    """Neighbours in every part of the key, and the three generators of one key."""
    rows = []
    for epoch, index, place in itertools.product(range(3), range(12), range(3)):
        key = keyed.Key(11, epoch, 0, 0)
        key.begin_sample(
            Generators(torch.default_generator, np.random.mtrand._rand, random._inst), index, place
        )
        rows.append(torch.rand(1500, dtype=torch.double).tolist())
        rows.append(np.random.rand(1500).tolist())
        rows.append([random.random() for _ in range(1500)])
    table = np.array(rows)
    # of 52,326 pairs, one in a hundred tables of independent numbers has one beyond 5.3 / sqrt(1500)
    correlated = np.corrcoef(table) - np.eye(len(table))
    assert np.abs(correlated).max() < 0.15
    shifted = np.corrcoef(table[:, 1:], table[:, :-1])[: len(table), len(table) :]
    assert np.abs(shifted).max() < 0.15
    assert stats.kstest(table[:, :20].ravel(), "uniform").pvalue > 1e-4
    assert stats.kstest(table[:, 600:700].ravel(), "uniform").pvalue > 1e-4
    assert (
        stats.kstest(table.mean(1) * np.sqrt(12 * 1500), "norm", (np.sqrt(3 * 1500), 1)).pvalue
        > 1e-4
    )


def test_other_threads_may_draw_meanwhile():
    stop = threading.Event()
    problems: list[BaseException] = []

    def draw() -> None:
        try:
            while not stop.is_set():
                assert 0 <= float(torch.rand(50).sum()) <= 50
                assert 0 <= np.random.rand(50).sum() <= 50
                assert 0 <= random.random() < 1
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=draw) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(300):
        with keyed.borrowed():
            list(keyed.follow(range(8), KEY))
    stop.set()
    for thread in threads:
        thread.join()
    assert not problems
