"""The feature `Image` of Hugging Face `datasets`; torch's DataLoader over the same dataset is the oracle."""

import io
import warnings

import numpy as np
import PIL.Image
import pytest
import torch
from torch.utils.data import DataLoader

import fastload
from fastload import lanes
from tests.shared.compare import MANY_WORKERS, assert_same
from tests.shared.sizes import SIZES

pytestmark = MANY_WORKERS

datasets = pytest.importorskip("datasets", reason="Hugging Face datasets is not installed")

FORMATS = ["torch", "numpy"]
SIDE = 12
COUNT = 20
DRAW = np.random.default_rng(0)
XMP = b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:Description tiff:Orientation=%s/></x:xmpmeta>'


def encode(kind, mode="RGB", *, orientation=None, height=SIDE, **options):
    """Returns an encoded image that is different each time."""
    pixels = DRAW.integers(0, 256, (height, SIDE, 3), np.uint8)
    image = PIL.Image.fromarray(pixels).convert(mode)
    if orientation is not None:
        exif = PIL.Image.Exif()
        exif[0x010F] = "a maker"
        exif[PIL.Image.ExifTags.Base.Orientation] = orientation
        options["exif"] = exif
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def made(encoded, feature=None):
    """Returns a dataset of encoded images, and of their numbers."""
    features = {"image": feature or datasets.Image(), "number": datasets.Value("int64")}
    rows = {
        "image": [each and {"bytes": each, "path": None} for each in encoded],
        "number": list(range(len(encoded))),
    }
    return datasets.Dataset.from_dict(rows, features=datasets.Features(features))


def in_files(encoded, folder, feature=None):
    """Returns a dataset of files of images."""
    paths = [folder / f"{number}.image" for number in range(len(encoded))]
    for path, each in zip(paths, encoded, strict=True):
        path.write_bytes(each)
    features = datasets.Features({"image": feature or datasets.Image()})
    return datasets.Dataset.from_dict({"image": [str(path) for path in paths]}, features=features)


def theirs(dataset, **arguments):
    with warnings.catch_warnings():  # torch's, of arrays that are read-only
        warnings.simplefilter("ignore")
        return list(DataLoader(dataset, **arguments))


def fallbacks(loader):
    return sum(loader.stats().get("pillow_fallbacks", {}).values())


def same(dataset, asked=0, **arguments):
    """Compares an epoch, and how many files Pillow was asked for."""
    loader = fastload.Loader(dataset, lane="native", **arguments, **SIZES)
    iterator = iter(loader)
    assert_same(list(iterator), theirs(dataset, **arguments))
    assert fallbacks(loader) == asked


KINDS = ["JPEG", "PNG", "WEBP"]
VIEWS = {
    "whole": lambda dataset: dataset,
    "selected": lambda dataset: dataset.select([3, 3, 19, 0, 7]),
    "sliced": lambda dataset: dataset.select(range(4, 15)),
    "shuffled shard": lambda dataset: dataset.shuffle(seed=2).shard(3, 1),
    "chunks": lambda dataset: datasets.concatenate_datasets(
        [dataset.select(range(5)), dataset.select(range(5, COUNT))]
    ),
}


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("view", VIEWS)
def test_images_in_memory_are_those_of_torch(view, kind):
    dataset = VIEWS[view](made([encode(KINDS[number % 3]) for number in range(COUNT)]))
    same(dataset.with_format(kind), batch_size=4)


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("mode", ["RGB", "L"])
def test_single_images_are_those_of_torch_but_contiguous(mode, kind):
    dataset = made([encode("PNG", mode) for _ in range(3)]).with_format(kind)
    ours = list(fastload.Loader(dataset, lane="native", batch_size=None, **SIZES))
    expected = theirs(dataset, batch_size=None)
    for sample in expected:
        sample["image"] = sample["image"].contiguous()
    assert_same(ours, expected)


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("view", VIEWS)
def test_images_in_files_are_those_of_torch(view, kind, tmp_path):
    encoded = [encode(KINDS[number % 3]) for number in range(COUNT)]
    same(VIEWS[view](in_files(encoded, tmp_path)).with_format(kind), batch_size=3)


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("encoder", ["JPEG", "PNG"])
def test_grey_images_stay_grey(encoder, kind):
    dataset = made([encode(encoder, "L") for _ in range(6)]).with_format(kind)
    same(dataset, batch_size=3)


@pytest.mark.parametrize("mode", ["RGB", "L"])
@pytest.mark.parametrize("kind", FORMATS)
def test_images_are_converted_to_the_mode_of_the_feature(kind, mode):
    modes = ["RGB", "L", "P", "RGBA", "LA", "1"]
    encoded = [encode("PNG", each) for each in modes] + [encode("JPEG", "CMYK")]
    same(made(encoded, datasets.Image(mode=mode)).with_format(kind), batch_size=7)


@pytest.mark.parametrize("orientation", range(1, 10))
@pytest.mark.parametrize("encoder", KINDS)
def test_images_are_turned_as_exif_says(encoder, orientation):
    turned = encode(encoder, orientation=orientation)
    dataset = made([encode(encoder), turned]).with_format("torch")
    same(dataset, asked=int(orientation != 1), batch_size=2)
    dataset = made([turned], datasets.Image(mode="L")).with_format("numpy")
    same(dataset, asked=int(orientation != 1), batch_size=1)


@pytest.mark.parametrize("value", [b'"1"', b'"6"', b'"x"', b"'6'"])
@pytest.mark.parametrize("encoder", KINDS)
def test_images_are_turned_as_xmp_says(encoder, value):
    xmp = XMP % value
    if encoder == "PNG":
        from PIL.PngImagePlugin import PngInfo

        info = PngInfo()
        info.add_itxt("XML:com.adobe.xmp", xmp.decode())
        turned = encode(encoder, pnginfo=info)
    else:
        turned = encode(encoder, xmp=xmp)
    same(made([turned]).with_format("torch"), asked=int(value == b'"6"'), batch_size=1)


def test_files_with_a_turn_are_turned(tmp_path):
    encoded = [encode("JPEG", orientation=number % 2 * 5 + 1) for number in range(6)]
    same(in_files(encoded, tmp_path).with_format("torch"), asked=3, batch_size=2)


@pytest.mark.parametrize("head", [b"Exif\0\0", b"Exif\0\0MM\0*", b"Exif\0\0II*\0\x08\0\0\0\x05\0"])
def test_damaged_exif_is_left_to_pillow(head):
    dataset = made([encode("JPEG", exif=head)]).with_format("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pillow's
        loader = fastload.Loader(dataset, batch_size=1, lane="native", **SIZES)
        try:
            expected = next(iter(DataLoader(dataset, batch_size=1)))
        except Exception as error:
            with pytest.raises(type(error)):
                next(iter(loader))
        else:
            assert_same(next(iter(loader)), expected)
    assert fallbacks(loader) == 1


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("mode", ["RGBA", "P", "LA", "1", "I;16"])
def test_rare_modes_come_from_pillow(mode, kind):
    encoded = [encode("PNG") for _ in range(199)] + [encode("PNG", mode)]
    dataset = made(encoded).with_format(kind)
    assert_same(
        list(fastload.Loader(dataset, lane="native", batch_size=1, **SIZES)),
        theirs(dataset, batch_size=1),
    )


def test_images_of_different_sizes_are_torchs_error():
    dataset = made([encode("PNG"), encode("PNG", height=9)]).with_format("torch")
    errors = []
    for kind, more in ((DataLoader, {}), (fastload.Loader, {"lane": "native", **SIZES})):
        with pytest.raises(RuntimeError, match="stack expects each tensor") as caught:
            list(kind(dataset, batch_size=2, **more))
        errors.append(str(caught.value))
    assert errors[0] == errors[1]


def test_broken_images_are_pillows_error(tmp_path):
    whole = encode("JPEG")
    for dataset in (made([whole[:99]]), in_files([whole[:99]], tmp_path), made([whole[:4]])):
        dataset.set_format("torch")
        with pytest.raises(Exception) as expected:  # noqa: PT011 (any is the oracle)
            list(DataLoader(dataset))
        with pytest.raises(type(expected.value)):
            list(fastload.Loader(dataset, lane="native", **SIZES))


REFUSED = [
    (lambda: made([encode("PNG")]), "without a format, images are open Pillow files"),
    (lambda: made([encode("PNG")], datasets.Image(decode=False)), "in 'path', it holds nulls"),
    (lambda: made([encode("PNG")], datasets.Image(mode="HSV")), "Pillow's mode HSV"),
    (lambda: made([encode("PNG", "RGBA")]), "PNG of other pixels than grey or RGB"),
    (lambda: made([encode("GIF")]), "GIF, decoded by Pillow"),
    (lambda: made([encode("PNG"), None]), "holds nulls"),
]


@pytest.mark.parametrize(("make", "words"), REFUSED, ids=[words for _, words in REFUSED])
def test_other_images_are_made_in_python(make, words):
    dataset = make()
    dataset = dataset if words.startswith("without a format") else dataset.with_format("torch")
    choice = lanes.choose(fastload.Loader(dataset, num_workers=1))
    assert choice.lane == "process"
    assert "column 'image': " in choice.why
    assert words in choice.why


def test_mixed_places_and_urls_are_left_to_python(tmp_path):
    features = datasets.Features({"image": datasets.Image()})
    rows = [{"bytes": encode("PNG"), "path": None}, {"bytes": None, "path": "a.png"}]
    for images, words in ((rows, "some in files"), (["https://example.org/a.png"], "at URLs")):
        dataset = datasets.Dataset.from_dict({"image": images}, features=features)
        loader = fastload.Loader(dataset.with_format("torch"), num_workers=1)
        assert words in lanes.choose(loader).why


def test_a_new_mode_takes_effect():
    dataset = made([encode("PNG") for _ in range(4)]).with_format("torch")
    same(dataset, batch_size=2)
    grey = dataset.cast_column("image", datasets.Image(mode="L"))
    same(grey, batch_size=2)
    assert next(iter(fastload.Loader(grey, **SIZES)))["image"].dtype == torch.uint8


def test_a_pillow_that_is_replaced_after_an_epoch_is_asked(monkeypatch):
    dataset = made([encode("PNG") for _ in range(2)]).with_format("torch")
    loader = fastload.Loader(dataset, batch_size=2)
    assert lanes.choose(loader).lane == "native"
    original = PIL.Image.Image.convert
    monkeypatch.setattr(
        PIL.Image.Image, "convert", lambda *given, **named: original(*given, **named)
    )
    assert "PIL.Image.Image.convert was replaced by other code" in lanes.choose(loader).why
