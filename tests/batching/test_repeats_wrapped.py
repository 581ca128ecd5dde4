"""`sample_mask=True` with the samplers that Lightning and ignite wrap around the user's."""

import warnings

import pytest
from torch.utils.data import SequentialSampler

from fastload import Loader
from tests.shared.compare import MANY_WORKERS

from .test_repeats import COUNT, columns, counted, runs

pytestmark = [MANY_WORKERS, pytest.mark.filterwarnings("ignore")]

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from ignite.distributed.auto import DistributedProxySampler
    from lightning.fabric.utilities.distributed import DistributedSamplerWrapper
    from lightning.pytorch.overrides.distributed import UnrepeatedDistributedSamplerWrapper


@pytest.mark.parametrize("kind", [DistributedSamplerWrapper, DistributedProxySampler])
def test_what_they_repeat_is_marked(kind):
    ranks = []
    for rank in range(3):
        sampler = kind(SequentialSampler(range(COUNT)), num_replicas=3, rank=rank)
        sampler.shuffle = False
        ranks.append(runs(Loader(columns(), 4, sampler=sampler, sample_mask=True)))
    assert counted(ranks) == list(range(COUNT))
    assert not all(ranks[2][-1][1])


def test_what_lightning_predicts_with_repeats_nothing():
    order = SequentialSampler(range(COUNT))
    sampler = UnrepeatedDistributedSamplerWrapper(order, num_replicas=3, rank=2, shuffle=False)
    loader = Loader(columns(), 4, sampler=sampler, sample_mask=True)
    assert [mask for _, mask in runs(loader)] == [[True] * 4, [True] * 3]
