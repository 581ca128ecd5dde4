"""Few samples, none of which is compared with the dataset's, are unlike the rest: read exactly, or refused."""

import collections
import dataclasses
from unittest import mock

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import DataLoader

from fastload import Loader, lanes
from fastload.lowering import NotNative, lower
from fastload.lowering.reading import compared
from tests.shared.compare import MANY_WORKERS, assert_same, outcomes_by_type
from tests.shared.sizes import SIZES

from .classes import N, made

pytestmark = MANY_WORKERS

RARE = (3, 13)


@dataclasses.dataclass
class Record:
    box: list | None


Point = collections.namedtuple("Point", "box place")


def some(rare, usual):
    return [rare if place in RARE else usual for place in range(N)]


def attributes():
    return {
        "x": torch.arange(float(N)),
        "longer": torch.arange(N + 2) * 10,
        "a": list(range(N)),
        "fine": [None if place in RARE else place for place in range(N)],
        "flag": some(False, True),
        "number": some(0, 3),
        "ones": [1] * N,
        "which": ["fine"] * N,
        "rest": [[1, 2]] * N,
        "pairs": [(1, 2)] * N,
        "records": some(Record(None), Record([0, 1])),
        "points": some(Point(None, 1), Point([0], 1)),
        "dicts": some({"n": 1}, {"n": 1, "box": 2}),
        "arrays": some(np.ones(2), torch.ones(2)),
        "parameters": [torch.nn.Parameter(torch.ones(2), requires_grad=False)] * N,
        "by_floats": [{1.5: 2}] * N,
        "columns": torch.arange(3.0 * N).reshape(3, N),
        "grid": np.arange(3.0 * N).reshape(3, N),
        "blocks": torch.arange(60.0 * N).reshape(3, N, 4, 5),
        "names": {"fine": 1},
        "far": np.array(some(2**64 - 1, 1), np.uint64),
        "nothing": None,
        "three": 3,
    }


OF_OBJECTS = "the attribute box of"
CHOICE = "a choice between values that differ from sample to sample is not known"
OF_DICTS = "get of values that differ from sample to sample is not known"
CHANGES = "changes something for a part of the samples"

REFUSED = {
    "self.records[i].box is None": OF_OBJECTS,
    "self.records[i].box is not None": OF_OBJECTS,
    "isinstance(self.records[i].box, list)": OF_OBJECTS,
    "torch.is_tensor(self.points[i].box)": OF_OBJECTS,
    "f'{self.records[i].box}'": OF_OBJECTS,
    "[self.points[i].box][0] is None": OF_OBJECTS,
    "self.records[i].__class__ is None": "the attribute __class__ of",
    "self.x[i].grad is None": "the attribute grad of a tensor",
    "torch.is_tensor(self.arrays[i])": "isinstance() differs from sample to sample",
    "isinstance(self.helped, tuple)": "isinstance() of",
    "hasattr(self.helped, 'cache')": "by its name is not known",
    "(self.a[i], self.fine[i])[self.ones[i]] is None": CHOICE,
    "[self.a[i], self.fine[i]][self.ones[i]] is None": CHOICE,
    "([self.a[i]], [self.fine[i]])[self.ones[i]][0] is None": CHOICE,
    "[self.a[i], self.fine[i]][self.ones[i]:][0] is None": CHOICE,
    "([self.fine[i]] * 40)[i] is None": CHOICE,
    "{'a': self.a[i], 'fine': self.fine[i]}[self.which[i]] is None": CHOICE,
    "{'fine': self.fine[i]}.get(self.which[i]) is None": OF_DICTS,
    "{'fine': self.fine[i]}.get('fine', self.a[i]) is None": OF_DICTS,
    "self.names.get(self.which[i], [self.fine[i]])": OF_DICTS,
    "([self.fine[i]] + self.rest[i])[0] is None": "+ of list and list is not known",
    "(([self.fine[i]],) + self.pairs[i])[0][0] is None": "+ of tuple and tuple is not known",
    "([self.fine[i]] * self.ones[i])[0] is None": "* of list and int is not known",
    "'%s' % ([self.fine[i]],)": "the text of values of str and list is not known",
    "'%s' % (self.records[0],)": "is not known",
    "out.append(1) if self.flag[i] else None": CHANGES,
    "out.append()": "out.append with these arguments is not known",
    "out.append(1, 2)": "out.append with these arguments is not known",
    "out.extend([1]) if self.flag[i] else None": CHANGES,
    "named.update(b=1) if self.flag[i] else None": "changes an object that __getitem__ did not create",
    "named.update({'b': 1}) if self.flag[i] else None": CHANGES,
    "self.mark(named) if self.flag[i] else 1": CHANGES,
    "(j := 1.0) if self.flag[i] else 0.0": CHANGES,
    "0.0 if self.flag[i] else [j := 1.0][0]": CHANGES,
    "self.blocks[(i, 0), :]": "an index by several values",
    "len(self.by_floats[i].items())": "its dicts do not all have the same keys",
    "self.which[0] is str(self.three)": "`is` of numbers, texts or containers",
    "self.three is self.ones[0] + 2": "`is` of numbers, texts or containers",
    "self.pairs[0] is tuple(self.rest[0])": "`is` of numbers, texts or containers",
    "self.x[self.far[i]]": "an index of more than 63 bits",
    "isinstance(self.blocks[0][i].shape, torch.Size)": "isinstance() with such classes",
    "self.grid[:, i].squeeze(0)": "squeeze() of an axis that is longer",
    "int(self.grid[:, i][:1])": "int() of an array with dimensions",
    "named.keys()[0]": "indexing",
    "named.keys() + named.keys()": "+ of",
    "named.keys() == ['a']": "== of",
    "[named.update({'z': 1}) for _ in named.items()]": "dictionary changed size during iteration",
    "[named.update({'z': 1}) for _ in zip(named.values(), [1, 2])]": "changed size during iteration",
    "[(z := zip([1], [2])), len([*z]) if self.flag[i] else 0][1:], len([*z])": "for a part of the samples",
    "[named.keys()][0][self.ones[i]]": "indexing",
}

READ = [
    "torch.is_tensor(self.parameters[i])",
    "self.columns[:, i], self.blocks[:, i, 0], self.blocks[:, :, i % 4, 1:]",
    "self.grid[:, i], self.grid[:, i, ..., None]",
    "self.fine[i] is None",
    "self.dicts[i].get('box') is None, self.dicts[i].get('box', self.a[i])",
    "(7, 8)[self.ones[i]], [7, None][self.number[i] // 3] is None",
    "{0: 'no', 3: 'yes'}[self.number[i]], {0: None}.get(self.number[i], 1) is None",
    "(None, self.fine[i])[1] is None, [self.fine[i]] + [1, 2] == 3 if 0 else 1",
    "'%s %d' % (self.fine[i], i), '%s' % self.fine[i]",
    "self.a[i] if self.flag[i] else -1, self.helped(i) if self.flag[i] else 0",
    "{(j := 'a'): j}",
    "isinstance(self.blocks[0][i].numpy(), np.ndarray), torch.is_tensor(self.blocks[0][i].numpy())",
    "self.flag[0] is True, self.three is not None, self.x.dtype is torch.float32, self.a is None",
    "self.grid[:, i, None].squeeze(1), self.grid[:, i, None].squeeze(axis=-1)",
    "self.blocks[1][i].dim(), self.x[i].dim(), self.blocks[2][i].numel(), self.x[i].numel()",
    "len((keys := named.keys(), named.update({'b': 1}))), len(keys), [key for key in keys]",
    "[v for v in (named.values(), named.update({'a': 5}))[0]]",
    "[(named.update({'b': self.a[i]}), v)[1] for _, v in [*{'a': 1, 'b': 2}.items()]], named['b']",
    "[(out.append(1), v)[1] if len(out) < 4 else v for _, v in enumerate(out)]",
    "[(out.append(2), a + b)[1] if len(out) < 3 else a for a, b in zip(out, [1, 2, 3, 4])]",
    "len((out.extend(zip([1], [2])), out.extend(enumerate([5])), named.update(zip(['b'], [3])))), out",
    "len([a + b for a, b in zip([1, 2], [3, 4])]) if self.flag[i] else 7",
    "'a' in named.keys(), 0 in named.values(), len(named.items()), ','.join(named.keys())",
    "list(zip([1, 2], (3, 4))), [*enumerate('ab' and [5], 2)], len(list((z := zip([1])))), len(tuple(z)), [*z, 0]",
    "self.x[i] if hasattr(self, 'x') and not hasattr(self, 'y') else 1, getattr(self, 'three', 4)",
]


def body(value):
    """Returns a body of `__getitem__` that returns a value, and what it may have changed."""
    names = "out, named, j, keys, z = [0], {'a': 0}, 1, 0, 0"
    return f"{names}\nvalue = {value}\nreturn self.x[i], value, len(out), named, j"


def assert_torchs(dataset, **arguments):
    sizes = {} if "num_workers" in arguments else SIZES
    ours = outcomes_by_type(Loader(dataset, **arguments, **sizes))
    assert_same(ours, outcomes_by_type(DataLoader(dataset, **arguments)))


@pytest.mark.parametrize(("value", "why"), REFUSED.items(), ids=REFUSED)
def test_what_may_differ_is_refused(value, why):
    dataset = made(body(value), attributes())
    with pytest.raises(NotNative) as refused:
        lower(dataset)
    assert why in refused.value.why
    assert_torchs(dataset, batch_size=4, num_workers=0)


@pytest.mark.parametrize("value", READ)
def test_what_differs_is_read(value):
    dataset = made(body(value), attributes())
    loader = Loader(dataset, batch_size=4, **SIZES)
    assert lanes.choose(loader).lane == "native", loader.explain()
    assert_torchs(dataset, batch_size=4)


@pytest.mark.parametrize(
    "change", ["i += 1", "i -= -1", "i %= 22", "i //= 2", "i *= 1", "j = i + 1"]
)
def test_an_index_from_the_end_that_is_calculated_with_is_pythons(change):
    dataset = made(f"x = self.x[i]\n{change}\nreturn x, self.longer[i]", attributes())
    given = {"batch_size": 2, "sampler": [-1, 5, -7, 0]}
    assert lanes.choose(Loader(dataset, **given, **SIZES)).lane == "native"
    assert_torchs(dataset, **given)


@pytest.mark.parametrize("change", ["total = 1", "total += 1", "for total in (1, 2): pass"])
def test_what_may_be_a_global_is_not_set(change):
    code = f"if self.nothing:\n    global total\n{change}\nreturn self.x[i]"
    with pytest.raises(NotNative, match="total is not"):
        lower(made(code, attributes()))


def test_what_was_taken_from_a_list_stays():
    for change in ("own[3] = -1", "own.append(-1)"):
        code = f"own = list(self.a)\nvalue = own[i]\n{change}\nreturn self.x[i], value, own[3]"
        dataset = made(code, attributes())
        lower(dataset)
        assert_torchs(dataset, batch_size=4)


def test_a_loop_sees_what_it_changes():
    for change in ("own[2] = 10", "if len(own) < 5:\n        own.append(each)"):
        code = f"own, total = [1, 2, 3], 0\nfor each in own:\n    total += each\n    {change}"
        dataset = made(f"{code}\nreturn self.x[i], total", attributes())
        lower(dataset)
        assert_torchs(dataset, batch_size=4)


@pytest.mark.parametrize(
    ("rare", "dtype"),
    [
        (np.int64(300), "uint8"),
        (np.int64(1 << 40), "int32"),
        (np.uint64(1 << 63), "int64"),
        (np.float64(-0.5), "uint8"),
    ],
)
def test_scalars_that_do_not_fit_raise_as_torchs_do(rare, dtype):
    numbers = np.array(some(rare, 7), rare.dtype)
    dataset = made(f"return torch.tensor(self.x[i], dtype=torch.{dtype})", {"x": numbers})
    assert_torchs(dataset, batch_size=4)


VALUES = """i self.nothing self.three j out[0] self.a[i] self.number[i] self.fine[i] self.x[i] self.rest[i]
self.pairs[i] self.which[i] self.dicts[i].get('box') self.records[i].box self.points[i] self.points[0].box"""
FORMS = """[{0}, {1}]
({0}, {1})
{0}[self.ones[i]]
{0}[0]
({0}, {1})[self.number[i] // 3]
{{'a': {0}, 'fine': {1}}}[self.which[i]]
self.names.get({0}, {1})
({0} + {1})
({0} * {1})
({0} or {1})
({0} if {1} is None else 2)
({0} if self.flag[i] else {1})
(j := {0})
str({0})
('%s' % ({0},))
list({0})
[*{0}]
self.mark(named)"""
LEAF, FORM = st.sampled_from(VALUES.split()), st.sampled_from(FORMS.splitlines())
MADE = st.builds(str.format, FORM, LEAF, LEAF)
VALUE = st.one_of(
    MADE, st.builds(str.format, FORM, MADE, LEAF), st.builds(str.format, FORM, LEAF, MADE)
)
ASKED = [
    "{} is None",
    "isinstance({}, (int, list))",
    "torch.is_tensor({})",
    "{} in (None, 3)",
    "{}",
]


@settings(max_examples=300)
@given(st.sampled_from(ASKED), VALUE, st.sampled_from(["out.append({})", "i += 1", "{}"]), VALUE)
def test_what_is_read_uncompared_is_torchs(asked, value, change, other):
    before = "y, out, named, j = self.x[i], [0], {'a': 0}, 1"
    after = "return y, asked, j is None, named, len(out)"
    code = [before, change.format(other), f"asked = {asked.format(value)}", after]
    dataset = made("\n".join(code), attributes())
    with mock.patch.object(compared, "check"):
        try:
            lower(dataset)
        except NotNative:
            return
        assert_torchs(dataset, batch_size=4, sampler=[*range(N), -1, -N])
