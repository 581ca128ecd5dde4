"""The column of pictures that a method opens.

Owns how transforms are followed: a sample is native where all of them are.
"""

from dataclasses import replace
from typing import Any

from fastload import _lib
from fastload.images.chain import Chain, follow
from fastload.lowering.formats import check_files
from fastload.lowering.leaf import Leaf
from fastload.lowering.reading.pictures import Picture
from fastload.lowering.reading.stored import Stored, column_of, memory_of
from fastload.lowering.reading.values import Rows
from fastload.lowering.torchvision_containers import flat
from fastload.registry import NotNative, refuse

__all__ = ["picture_leaf"]


def picture_leaf(stored: Stored, picture: Picture, *, from_zero: bool) -> Leaf:
    """Returns the leaf of pictures.

    Args:
        stored: Keeps the column.
        picture: The pictures, with their transforms.
        from_zero: As of the leaf.

    Raises:
        NotNative: A transform is Python, or no transform makes a tensor.
    """
    in_memory = picture.source if isinstance(picture.source, Rows) else None
    paths = [] if isinstance(picture.source, Rows) else picture.source.values
    source: Any = [] if in_memory is None else column_of(in_memory.view)
    least = (0, 0) if in_memory is None else (in_memory.shape[0], in_memory.shape[1])
    chain = Chain(1 if picture.mode == "L" else 3, source, least=least)
    several = [step for each in picture.transforms for step in flat(each)]
    done, stop = follow(chain, several)
    if stop is not None:
        refuse(f"{stop.why}, at position {done} of the transforms", stop.change)
    if picture.mode is None or chain.on_pillow:
        refuse("a sample has a picture in it", "end with a transform that makes a tensor")
    settings: Any = ("RGB", chain.ops, chain.output())
    exact = "bit for bit what Pillow and torch make of them"
    if chain.random:
        exact += ", given equal random parameters; these are drawn by Philox from the same ranges"
    leaf = Leaf(
        None,
        "",
        transforms=tuple(chain.names),
        exact=exact,
        wrap=chain.wrap,
        is_read=True,
        draws=chain.random,
        from_zero=from_zero,
    )
    if in_memory is not None:
        use = "pictures", memory_of(in_memory.view)[:-1]
        native = stored.memo.of_objects(use, (), lambda: _lib.Image(source, *settings), settings)
        found = leaf.over(native, f"{len(native)} images in memory")
        return replace(found, heavy=len(chain.ops) > 1)
    return _of_files(stored, leaf, paths, settings)


def _of_files(stored: Stored, leaf: Leaf, paths: list[str], settings: Any) -> Leaf:
    def make() -> Any:
        foreign = check_files(paths)
        return foreign if foreign is not None else _lib.Image(paths, *settings)

    native = stored.memo.of_values(stored.place("images"), paths, make, settings)
    if isinstance(native, NotNative):
        raise native.again()
    exact = f"{leaf.exact}; not compared with the dataset, which would open files"
    found = replace(leaf, decode="JPEG, PNG and WebP files to RGB", heavy=True, exact=exact)
    return found.over(native, f"{len(paths)} files")
