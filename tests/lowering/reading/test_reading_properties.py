"""Classes whose code is drawn from a grammar: whatever is read of one, its batches are torch's, bit for bit."""

import random

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import DataLoader

from fastload import Loader, lanes
from fastload.lowering import NotNative, lower
from tests.shared.compare import MANY_WORKERS, assert_same, outcomes_by_type
from tests.shared.sizes import SIZES

from .classes import made

pytestmark = MANY_WORKERS

N = 17


def attributes():
    draw = np.random.default_rng(5)
    return {
        "t": torch.from_numpy(draw.normal(size=(N, 4)).astype(np.float32)),
        "strided": torch.from_numpy(draw.normal(size=(4, 2 * N)).astype(np.float32)).T[::2],
        "whole": torch.arange(3 * N * 2).reshape(3 * N, 2),
        "a": draw.normal(size=(N, 3, 2)),
        "u8": draw.integers(0, 256, (N, 4)).astype(np.uint8),
        "i16": draw.integers(-300, 300, 4 * N).astype(np.int16),
        "backwards": draw.normal(size=(N, 2))[::-1],
        "flags": draw.integers(0, 2, N).astype(bool),
        "scalars": draw.normal(size=N).astype(np.float32),
        "labels": draw.integers(0, 9, N).tolist(),
        "floats": [value / 3 for value in range(N)],
        "bools": [value % 3 == 0 for value in range(N)],
        "texts": [f"t{value}é" for value in range(N)],
        "tokens": [[value, value + 1, -value] for value in range(N)],
        "ragged": [[value] * (value % 3 + 1) for value in range(N)],
        "records": [{"x": value, "y": str(value), "z": [value / 7, 1.0]} for value in range(N)],
        "pairs": [(f"p{value}", value, value / 2) for value in range(N)],
        "order": list(range(N))[::-1],
        "places": draw.permutation(N),
        "names": {f"t{value}é": value for value in range(N)},
        "mean": 0.25,
        "k": 2,
        "window": 3,
        "flag": True,
        "nothing": None,
    }


INDEX = st.recursive(
    st.sampled_from(["i", "i", "i", "self.order[i]", "self.places[i]"]),
    lambda inner: st.builds(
        str.format,
        st.sampled_from(
            [
                "({0} + 1)",
                "({0} * 2)",
                "({0} // 2)",
                "({0} % 5)",
                "(-{0} - 1)",
                "(len(self) - 1 - {0})",
            ]
        ),
        inner,
    ),
    max_leaves=3,
)
ARRAYS = ["t", "strided", "whole", "a", "u8", "backwards"]
SLICES = [
    "[i:i + self.window]",
    "[i * 2:i * 2 + 4]",
    "[i + 1:i + 4:2]",
    "[i:]",
    "[:-1][i]",
    "[i - 1:i + 1]",
]
ROW = st.one_of(
    st.builds("self.{}[{}]".format, st.sampled_from(ARRAYS), INDEX),
    st.builds(
        "self.{}[{}, {}]".format,
        st.sampled_from(ARRAYS),
        INDEX,
        st.sampled_from(["0", "1:", "..., None"]),
    ),
    st.builds(
        "self.{}{}".format, st.sampled_from([*ARRAYS, "i16", "tokens"]), st.sampled_from(SLICES)
    ),
    st.builds("self.{}[:, {}]".format, st.sampled_from(ARRAYS), INDEX),
)
NUMBER = st.one_of(
    st.builds(
        "self.{}[{}]".format,
        st.sampled_from(["labels", "floats", "bools", "scalars", "flags"]),
        INDEX,
    ),
    st.builds("self.records[{}]['x']".format, INDEX),
    st.builds("self.pairs[{}][{}]".format, INDEX, st.sampled_from(["1", "2"])),
    st.just("self.names[self.texts[i]]"),
    st.just("len(self.ragged[i])"),
    INDEX,
)
SCALAR = st.builds(
    str.format,
    st.sampled_from(
        [
            "{0}",
            "{0} + 1",
            "{0} * 2",
            "{0} / 3",
            "{0} // 2",
            "{0} % 3",
            "int({0})",
            "float({0})",
            "-{0}",
            "max({0}, 2)",
        ]
    ),
    NUMBER,
)
TEXT = st.sampled_from(
    [
        "self.texts[i]",
        "self.records[i]['y']",
        "self.pairs[i][0].upper()",
        "f'{i:03d}-{self.texts[i]}'",
        "'a/' + self.texts[i]",
        "'%s_%d' % (self.texts[i], i)",
        "str(self.labels[i])",
        "self.texts[i][1:]",
    ]
)
LIST = st.sampled_from(
    [
        "self.tokens[i]",
        "self.records[i]['z']",
        "[0] + self.tokens[i]",
        "self.ragged[i]",
        "self.tokens[i][:2]",
    ]
)
TENSOR = st.one_of(
    st.builds("torch.tensor({})".format, st.one_of(SCALAR, LIST, ROW)),
    st.builds(
        "torch.tensor({}, dtype={})".format,
        st.one_of(SCALAR, LIST, ROW),
        st.sampled_from(["torch.float32", "torch.long", "torch.uint8"]),
    ),
    st.builds("torch.as_tensor({})".format, ROW),
    st.builds("torch.from_numpy({})".format, ROW),
    st.builds("torch.tensor([{}, {}])".format, SCALAR, SCALAR),
    ROW,
)
AFTER = st.lists(
    st.sampled_from(
        [
            *(
                ".float()",
                ".long()",
                ".clone()",
                "[:-1]",
                "[1:]",
                "[0]",
                ".unsqueeze(0)",
                ".numpy()",
            ),
            *(
                ".astype(np.float32)",
                ".astype('int64')",
                ".copy()",
                ".reshape(-1)",
                ".T",
                ".item()",
            ),
            *(
                " / 255.0",
                " * 2",
                " - self.mean",
                " + 1",
                " > 0.5",
                ".to(torch.float64)",
                ".view(-1)",
            ),
            *(".permute(1, 0)", ".squeeze()", ".flatten()", ".tolist()"),
        ]
    ),
    max_size=3,
)
VALUE = st.one_of(
    st.builds(
        lambda row, after: "(" * len(after) + row + "".join(f"{each})" for each in after),
        TENSOR,
        AFTER,
    ),
    SCALAR,
    TEXT,
    LIST,
    st.sampled_from(
        ["self.pairs[i]", "self.records[i]", "self.mean", "'constant'", "3", "self.nothing"]
    ),
)
SAMPLE = st.one_of(
    VALUE,
    st.builds("{}, {}".format, VALUE, VALUE),
    st.builds("[{}, ({}, {})]".format, VALUE, VALUE, VALUE),
    st.builds("{{'x': {}, 'y': {}}}".format, VALUE, VALUE),
    st.builds(
        "{{name: getattr for name in ('a', 'b')}} if self.nothing else {{'v': {}}}".format, VALUE
    ),
)
BODY = st.builds(
    str.format,
    st.sampled_from(
        [
            "return {0}",
            "x = {1}\nreturn x, {0}",
            "if self.flag:\n    return {0}\nreturn {1}",
            "x = {1}\nif self.nothing is not None:\n    x = self.nothing(x)\nreturn {{'x': x}}",
            "if i >= len(self):\n    raise IndexError\nreturn {0}",
            "a, b, c = self.pairs[i]\nreturn a, b * 2, {0}",
            "item = {{key: value for key, value in zip(('p', 'q'), ({0}, {1}))}}\nitem['n'] = i\nreturn item",
            "x = self.helped({1})\nreturn x, {0}",
            "x = {1}\nx += 1\nreturn x",
            "x = []\nfor j in range(2):\n    x.append({1})\nreturn x",
        ]
    ),
    SAMPLE,
    VALUE,
)


@given(
    BODY,
    st.sampled_from(
        [
            {"batch_size": 4},
            {"batch_size": 3, "sampler": [5, 2, -1, 7, 40, 0]},
            {"batch_size": None},
        ]
    ),
)
def test_what_is_read_is_torchs(body, arguments):
    dataset = made(body, attributes(), N)
    try:
        lower(dataset)
    except NotNative:
        return
    loader = Loader(dataset, **arguments, **SIZES)
    if lanes.choose(loader).lane == "native":
        assert_same(outcomes_by_type(loader), outcomes_by_type(DataLoader(dataset, **arguments)))


def test_most_of_what_works_is_read():
    """So that the test above compares something."""
    bodies = [
        "return self.t[i], self.labels[i]",
        "return self.i16[i * 2:i * 2 + 4], i",
        "return {'x': torch.tensor(self.tokens[i]), 'y': float(self.scalars[i])}",
        "return torch.from_numpy(self.u8[i]).float() / 255.0, f'{i}-{self.texts[i]}'",
        "return self.a[self.order[i]].astype(np.float32)[0], self.records[i]['z']",
    ]
    random.Random(1).shuffle(bodies)
    for body in bodies:
        lower(made(body, attributes(), N))
