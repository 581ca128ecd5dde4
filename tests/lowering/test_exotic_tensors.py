"""Tensors of every layout, dtype and wrapper in a dataset: lowered exactly, or left to Python."""

import collections
import warnings
from collections.abc import Callable
from typing import Any

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils.data import ConcatDataset, DataLoader, StackDataset, Subset, TensorDataset

import fastload
from fastload import lanes
from fastload.columns import Rows
from tests.shared.compare import MANY_WORKERS, Plain, assert_same
from tests.shared.sizes import SIZES

pytestmark = MANY_WORKERS

BASE = torch.arange(24, dtype=torch.float32).reshape(4, 6)
COMPLEX = torch.complex(BASE, -BASE)


class Sub(torch.Tensor):
    """A subclass without anything of its own."""


def nested(layout: Any) -> torch.Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "a prototype"
        return torch.nested.nested_tensor(
            [row[: n + 1] for n, row in enumerate(BASE)], layout=layout
        )


def quiet(make: Callable[[], torch.Tensor]) -> torch.Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # sparse and quantized tensors are announced as beta or old
        return make()


def fake() -> torch.Tensor:
    with FakeTensorMode():
        return torch.zeros(4, 6)


def inference() -> torch.Tensor:
    with torch.inference_mode():
        return BASE.clone()


DENSE: dict[str, Callable[[], torch.Tensor]] = {
    **{
        str(dtype): lambda dtype=dtype: BASE.to(dtype)  # type: ignore[misc]
        for dtype in (
            *(torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64),
            *(torch.uint16, torch.uint32, torch.uint64, torch.float16, torch.bfloat16),
            *(torch.float32, torch.float64, torch.complex64, torch.complex128),
        )
    },
    "transposed": lambda: torch.arange(24.0).reshape(6, 4).t(),
    "strided": lambda: torch.arange(200.0).reshape(20, 10)[::5, ::2],
    "expanded": lambda: torch.arange(6.0).expand(4, 6),
    "of one element": lambda: torch.ones(()).expand(4, 6),
    "overlapping": lambda: torch.arange(20.0).as_strided((4, 6), (2, 1)),
    "offset": lambda: torch.arange(30.0)[5:29].reshape(4, 6),
    "channels last": lambda: (
        torch.arange(240.0).reshape(4, 3, 4, 5).contiguous(memory_format=torch.channels_last)
    ),
    "empty": lambda: torch.zeros(0, 3),
    "empty rows": lambda: torch.zeros(4, 0),
    "vector": lambda: torch.arange(4),
    "inference": inference,
}
EXOTIC: dict[str, Callable[[], torch.Tensor]] = {
    **{
        str(dtype): lambda dtype=dtype: BASE.to(dtype)  # type: ignore[misc]
        for dtype in (torch.float8_e4m3fn, torch.float8_e5m2, torch.complex32)
    },
    "bits": lambda: torch.zeros(4, 6, dtype=torch.bits8),
    "conjugated": lambda: COMPLEX.conj(),
    "negated": lambda: COMPLEX.conj().imag,
    "zero": lambda: torch._efficientzerotensor((4, 6)),  # type: ignore[attr-defined]
    "nested": lambda: nested(torch.strided),
    "jagged": lambda: nested(torch.jagged),
    "COO": lambda: BASE.to_sparse(),
    "CSR": lambda: quiet(BASE.to_sparse_csr),
    "CSC": lambda: quiet(BASE.to_sparse_csc),
    "BSR": lambda: quiet(lambda: BASE.to_sparse_bsr((2, 2))),
    "quantized": lambda: quiet(lambda: torch.quantize_per_tensor(BASE, 0.5, 0, torch.quint8)),
    "meta": lambda: BASE.to("meta"),
    "mkldnn": lambda: BASE.to_mkldnn(),
    "fake": fake,
    "functional": lambda: torch._to_functional_tensor(BASE.clone()),  # type: ignore[attr-defined]
    "of vmap": lambda: torch._C._functorch._add_batch_dim(BASE.clone(), 1, 1),  # type: ignore[attr-defined]
    "with gradients": lambda: BASE.clone().requires_grad_(),
    "computed with gradients": lambda: BASE.clone().requires_grad_() * 2,
    "parameter": lambda: torch.nn.Parameter(BASE.clone()),
    "subclass": lambda: BASE.as_subclass(Sub),
    "scalar": lambda: torch.tensor(3.0),
}
Pair = collections.namedtuple("Pair", "x y")

HOLDERS: dict[str, Callable[[torch.Tensor], Any]] = {
    "TensorDataset": TensorDataset,
    "tensor": lambda tensor: tensor,
    "rows": lambda tensor: [tensor[n] for n in range(len(tensor))],
    "items": lambda tensor: [tensor, tensor],
    "with a plain one": lambda tensor: [BASE[0], *(tensor[n] for n in range(len(tensor)))],
    "tuples": lambda tensor: [(tensor[n], n) for n in range(len(tensor))],
    "dicts": lambda tensor: [{"x": tensor[n]} for n in range(len(tensor))],
    "Subset": lambda tensor: Subset(TensorDataset(tensor), [1, 0, 1]),
    "ConcatDataset": lambda tensor: ConcatDataset([TensorDataset(tensor), TensorDataset(tensor)]),
    "StackDataset": lambda tensor: StackDataset(x=TensorDataset(tensor), y=tensor),
    "Python": lambda tensor: Plain(Pair(tensor, tensor)),
}


def outcome(make: Callable[[], Any]) -> list[Any]:
    """Returns batches and the types of errors, as an epoch of a loader gives them."""
    results: list[Any] = []
    batches = iter(make())
    for _ in range(12):
        try:
            results.append(next(batches))
        except StopIteration:
            break
        except Exception as error:
            results.append(type(error))
    return results


@hypothesis.settings(max_examples=300)
@hypothesis.given(
    make=st.sampled_from([*DENSE.values(), *EXOTIC.values()]),
    hold=st.sampled_from(list(HOLDERS.values())),
    batch_size=st.sampled_from([None, 1, 2, 3]),
    drop_last=st.booleans(),
)
def test_any_tensor_is_loaded_as_torch_loads_it(make, hold, batch_size, drop_last):
    try:
        dataset = hold(make())
        len(dataset)
    except Exception:  # no such dataset: of a scalar, or of parts that have no rows
        hypothesis.reject()
    arguments: dict[str, Any] = {"batch_size": batch_size}
    if batch_size is not None:
        arguments["drop_last"] = drop_last
    loader = fastload.Loader(dataset, **SIZES, **arguments)
    if lanes.choose(loader).lane != "native":  # Python's lane; here without the processes
        loader = fastload.Loader(dataset, num_workers=0, **arguments)
        assert len(outcome(lambda: loader)) == len(
            outcome(lambda: DataLoader(dataset, **arguments))
        )
        return
    want = outcome(lambda: DataLoader(dataset, **arguments))
    # Native batches are contiguous. torch's samples are views of the dataset's memory, with its strides,
    # and its stack may keep those of items that are channels last.
    assert_same(outcome(lambda: loader), [contiguous(sample) for sample in want])


def contiguous(sample: Any) -> Any:
    if isinstance(sample, torch.Tensor):
        return sample.contiguous()
    if isinstance(sample, dict):
        return {key: contiguous(value) for key, value in sample.items()}
    return [contiguous(value) for value in sample] if isinstance(sample, list) else sample


@pytest.mark.parametrize("name", DENSE)
def test_dense_tensors_are_native(name):
    assert lanes.choose(fastload.Loader(TensorDataset(DENSE[name]()))).lane == "native"


@pytest.mark.parametrize("hold", ["TensorDataset", "items"])
@pytest.mark.parametrize("name", ["conjugated", "fake", "functional", "nested", "meta", "of vmap"])
def test_a_tensor_that_is_no_plain_memory_is_named(name, hold):
    choice = lanes.choose(fastload.Loader(HOLDERS[hold](EXOTIC[name]())))
    assert choice.lane != "native"
    assert "tensor" in choice.why


@pytest.mark.parametrize("size", [0, 10])
@pytest.mark.parametrize("hold", ["TensorDataset", "items"])
def test_a_tensor_whose_storage_was_cut_short_is_not_read(hold, size):
    """As FSDP and some caches do to free memory beneath a tensor."""
    tensor = BASE.clone()
    tensor.untyped_storage().resize_(size)
    assert lanes.choose(fastload.Loader(HOLDERS[hold](tensor))).lane != "native"
    with pytest.raises(TypeError, match=f"storage, which has {size} in memory"):
        Rows(tensor)


def test_rows_of_arrays_beside_exotic_tensors():
    dataset = StackDataset(x=np.arange(4), y=COMPLEX.conj().resolve_conj())
    loader = fastload.Loader(dataset, 2, **SIZES)
    assert lanes.choose(loader).lane == "native"
    assert_same(list(loader), list(DataLoader(dataset, 2)))
