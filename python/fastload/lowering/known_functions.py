"""Functions of libraries, and attributes of their values: what they draw from, cost and change.

Owns the lists; what is not in them is unknown.
"""

import bisect
import builtins
import collections
import copy
import itertools
import json
import math
import os.path
import random
import re
from typing import Any

import numpy as np
import torch
from torch.utils.data import default_collate, default_convert

from fastload.collate import stacking

__all__ = [
    "ATTRIBUTES",
    "CHANGES",
    "CHANGING_FUNCTIONS",
    "COPYING",
    "DRAWING_ATTRIBUTES",
    "DRAWS",
    "FUNCTIONS",
    "MAKERS",
    "NUMBER_MAKERS",
    "QUICK_ATTRIBUTES",
    "QUICK_FUNCTIONS",
]

_QUICK = {
    builtins: "abs bool bytes dict divmod enumerate float frozenset int isinstance issubclass iter len list max "
    "min ord chr range reversed round set slice str sum tuple zip",
    bisect: "bisect bisect_left bisect_right",
    torch: "as_tensor from_numpy tensor",
    np: "array asarray ascontiguousarray",
}
_OTHERS = {
    builtins: "all any ascii bin complex filter hash hex map next pow repr sorted",
    torch: "BoolTensor FloatTensor IntTensor LongTensor arange cat clamp concat empty eye full full_like max mean "
    "min no_grad ones ones_like stack sum unsqueeze where zeros zeros_like",
    torch.nn.functional: "one_hot pad",
    torch.nn.utils.rnn: "pad_sequence",
    collections: "OrderedDict deque",
    copy: "copy deepcopy",
    itertools: "accumulate chain combinations compress islice pairwise permutations product repeat starmap "
    "takewhile zip_longest",
    json: "dumps loads",
    re: "escape findall fullmatch match search split sub",
    os.path: "basename dirname join splitext",
    np: "abs arange argmax argmin argsort clip concatenate copy cumsum diff empty exp expand_dims eye flip full "
    "full_like hstack isnan linspace log max maximum mean min minimum nan_to_num ones ones_like pad repeat "
    "reshape roll searchsorted sort split sqrt squeeze stack std sum tile transpose vstack where zeros zeros_like",
    math: " ".join(name for name in vars(math) if not name.startswith("_")),
}


def _found(names: dict[Any, str]) -> dict[int, Any]:
    """Returns functions by identity; this also keeps them."""
    found = [vars(module).get(name) for module, each in names.items() for name in each.split()]
    return {id(function): function for function in found if function is not None}


QUICK_FUNCTIONS = {
    **_found(_QUICK),
    id(tuple.__new__): tuple.__new__,  # which classes of named tuples call
}
"""Functions that cost next to nothing, by identity."""
_COLLATIONS = (default_collate, default_convert, stacking.default_collate)
_DRAWING = {
    torch: "bernoulli multinomial normal rand rand_like randint randint_like randn randn_like randperm",
    np.random: "beta binomial choice exponential gamma geometric normal permutation poisson rand randint "
    "randn random random_sample ranf sample shuffle standard_normal triangular uniform",
    random: "betavariate choice choices expovariate gammavariate gauss getrandbits normalvariate randint "
    "random randrange sample shuffle triangular uniform",
}
_GENERATORS = {torch: "torch", np.random: "numpy", random: "python"}
DRAWS = {
    function: _GENERATORS[module]
    for module, names in _DRAWING.items()
    for function in _found({module: names})
}
"""Functions that draw, by identity, and the generator of the process that they draw from."""
CHANGING_FUNCTIONS = _found({np.random: "shuffle", random: "shuffle"})
"""Functions that change what they are given, by identity."""
COPYING = _found({copy: "copy deepcopy"})
"""Functions that classes may have methods for, by identity."""
NUMBER_MAKERS = _found(
    {
        torch: "arange cat concat empty eye full full_like ones ones_like stack tensor zeros zeros_like",
        torch.nn.functional: "one_hot",
        np: "arange empty eye linspace ones zeros",
    }
)
"""Functions whose results are new arrays of numbers, by identity; numpy's, if not asked for objects."""
MAKERS = {
    **NUMBER_MAKERS,
    **_found(
        {
            builtins: "bool dict float int len list set sorted str",
            copy: "deepcopy",
            json: "loads",
            np: "array concatenate copy full full_like hstack ones_like repeat stack tile vstack zeros_like",
        }
    ),
}
"""Functions whose results are new, or cannot be changed, by identity; what those hold may not be new."""
FUNCTIONS = {
    **QUICK_FUNCTIONS,
    **_found(_OTHERS),
    **_found(_DRAWING),
    **{id(each): each for each in (*_COLLATIONS, super, object.__init__)},
}
"""All of them."""

_QUICK_ATTRIBUTES = (
    "T astype bfloat16 bool byte clone contiguous copy detach dim double dtype flatten float half int "
    "item long ndim numel numpy permute reshape shape short size squeeze swapaxes tolist transpose "
    "unsqueeze view count endswith get index items join keys lower rstrip lstrip split startswith strip "
    "upper values name value"
)
QUICK_ATTRIBUTES = frozenset(_QUICK_ATTRIBUTES.split())
"""Attributes of arrays, tensors, text, containers and enumerations that are quick, whichever of them has it."""
_OF_TENSORS = (
    "abs add argmax argmin clamp cumsum div eq expand expand_as flip ge gt index_select le lt masked_fill max mean "
    "min mul narrow ne new_tensor new_zeros norm prod roll softmax sort std sub sum t to type unbind unfold "
    "view_as where"
)
_IN_PLACE = "abs_ add_ clamp_ copy_ div_ fill_ index_add_ index_copy_ index_fill_ masked_fill_ mul_ neg_ scatter_ sub_ zero_"
_OF_OTHERS = "acquire locked release from_iterable"  # of locks and itertools.chain
_KINDS = (str, bytes, list, tuple, dict, set, int, float, np.ndarray, re.Match, re.Pattern)
ATTRIBUTES = QUICK_ATTRIBUTES.union(
    _OF_TENSORS.split(),
    _IN_PLACE.split(),
    _OF_OTHERS.split(),
    *((name for name in dir(kind) if not name.startswith("_")) for kind in _KINDS),
).difference(("dump", "tofile"))
"""All of them, but those that write files."""
_CHANGES = (
    "add append byteswap clear difference_update discard extend fill insert intersection_update itemset "
    "partition pop popitem put remove resize reverse setdefault setfield setflags sort "
    "symmetric_difference_update update"
)
CHANGES = frozenset([*_CHANGES.split(), *_IN_PLACE.split()])
"""Those that may change what they are taken from."""
_DRAWING_ATTRIBUTES = (
    "bernoulli bernoulli_ cauchy_ exponential_ geometric_ log_normal_ multinomial normal_ random_ "
    "uniform_"
)
DRAWING_ATTRIBUTES = frozenset(_DRAWING_ATTRIBUTES.split())
"""Those of tensors that draw from torch's generator."""
