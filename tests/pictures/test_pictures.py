"""Pictures that wait: whatever is done to them, they are Pillow's to the bit."""

import copy
import io
import pickle
import struct
import sys
import time
import warnings
import zlib
from concurrent.futures import ThreadPoolExecutor

import hypothesis
import numpy as np
import pytest
import torch
from hypothesis import strategies as st
from PIL import (
    Image,
    ImageChops,
    ImageDraw,
    ImageEnhance,
    ImageFile,
    ImageFilter,
    ImageOps,
    ImageSequence,
)
from torchvision import transforms as v1t
from torchvision.transforms import functional as v1
from torchvision.transforms import v2
from torchvision.transforms.v2 import functional as v2f

from fastload.pictures import files, tensors
from fastload.pictures.source import Source, making
from fastload.pictures.swap import Swap
from fastload.pictures.waiting import Waiting


def encoded(mode, kind, size=(61, 43), **options):
    rng = np.random.default_rng(len(mode) + size[0])
    small = Image.fromarray(rng.integers(0, 256, (6, 8, 3), dtype=np.uint8))
    image = small.resize(size, Image.Resampling.BICUBIC)
    if mode == "I;16":
        image = Image.fromarray(np.asarray(image.convert("L")).astype(np.uint16) * 257)
    file = io.BytesIO()
    image.convert(mode).save(file, kind, **options)
    return file.getvalue()


def upright(kind="JPEG"):
    exif = Image.Exif()
    exif[0x0112] = 6
    return encoded("RGB", kind, exif=exif)


def described(png):
    """Puts a text between the pixels and the end of a PNG."""
    text = b"tEXtComment\0after"
    chunk = struct.pack(">I", len(text) - 4) + text + struct.pack(">I", zlib.crc32(text))
    return png[:-12] + chunk + png[-12:]


FILES = {
    "jpeg": encoded("RGB", "JPEG", quality=90),
    "jpeg progressive": encoded("RGB", "JPEG", (130, 97), progressive=True, subsampling=0),
    "jpeg grey": encoded("L", "JPEG"),
    "jpeg cmyk": encoded("CMYK", "JPEG"),
    "jpeg turned": upright(),
    "jpeg large": encoded("RGB", "JPEG", (501, 303), subsampling=2),
    "jpeg large grey": encoded("L", "JPEG", (301, 403)),
    "png": encoded("RGB", "PNG"),
    "png with text behind": described(encoded("RGB", "PNG")),
    "png transparent": encoded("RGB", "PNG", transparency=(0, 1, 2)),
    "png grey": encoded("L", "PNG"),
    "png large": encoded("RGB", "PNG", (101, 203)),
    "png palette": encoded("P", "PNG"),
    "png palette transparent": encoded("P", "PNG", transparency=3),
    "png rgba": encoded("RGBA", "PNG"),
    "png la": encoded("LA", "PNG"),
    "png bits": encoded("1", "PNG"),
    "png 16": encoded("I;16", "PNG"),
    "webp": encoded("RGB", "WEBP", lossless=True),
    "webp rgba": encoded("RGBA", "WEBP"),
    "gif": encoded("P", "GIF"),
    "bmp": encoded("RGB", "BMP"),
    "webp animated": encoded(
        "RGB", "WEBP", save_all=True, append_images=[Image.new("RGB", (61, 43))]
    ),
}


def rgb(image):
    return image.convert("RGB")


BILINEAR, BICUBIC = Image.Resampling.BILINEAR, Image.Resampling.BICUBIC


def within(image, share=0.25):
    width, height = image.size
    left, top = int(width * share), int(height * share / 2)
    return left, top, max(left + 1, width - left), max(top + 1, height - top)


def pasted(image):
    image = image.copy()
    image.paste(image.resize((5, 6)), (1, 2))
    return image


def drawn_on(image):
    ImageDraw.Draw(image).line((0, 0, 9, 9), fill=0)
    return image


def put(image):
    image.putpixel((1, 1), image.getpixel((3, 2)))
    return image


def written(image):
    access = image.load()
    access[2, 1] = access[0, 0]
    return image


def shrunk(*arguments, **named):
    def shrink(image):
        assert image.thumbnail(*arguments, **named) is None
        return image

    return shrink


def drafted(mode, size):
    def draft(image):
        image.info["draft"] = image.draft(mode, size)
        return image

    return draft


def coloured(image):
    image.putpalette([0, 0, 0, 128, 0, 0, 0, 128, 0] + [7] * 759)
    return image


def without_info(image):
    image.info.clear()
    return image


def stated(image):
    """Returns what else can be seen of an image; of one that was loaded, where Pillow loads it."""
    return (
        image.size,
        image.mode,
        image.readonly,
        getattr(image, "tile", None),
        getattr(image, "decoderconfig", None),
        sorted(map(str, image.info.items())),
    )


STEPS = {
    "rgb": lambda i: i.convert("RGB"),
    "grey": lambda i: i.convert("L"),
    "rgba": lambda i: i.convert("RGBA"),
    "bits": lambda i: i.convert("1"),
    "same": lambda i: i.convert(i.mode),
    "named": lambda i: i.convert(mode="RGB", dither=Image.Dither.NONE),
    "matrix": lambda i: i.convert("RGB").convert("L", (0.2, 0.5, 0.3, 0)),
    "crop": lambda i: i.crop(within(i)),
    "crop of floats": lambda i: i.crop((0.5, 1.5, i.width - 0.6, i.height - 0.4)),
    "crop beyond": lambda i: i.crop((-3, -2, i.width + 4, 5)),
    "crop of nothing": lambda i: i.crop(),
    "resize": lambda i: i.resize((19, 23), BILINEAR),
    "resize, default": lambda i: i.resize([33, 17]),
    "resize, nearest": lambda i: i.resize((50, 71), Image.Resampling.NEAREST),
    "resize, lanczos": lambda i: i.resize((np.int64(9), 9), Image.Resampling.LANCZOS),
    "resize, same": lambda i: i.resize(i.size),
    "resize a box": lambda i: i.resize((9, 8), BICUBIC, (0.5, 0, i.width, i.height)),
    "reduce": lambda i: i.reduce(2),
    "rotate 90": lambda i: i.rotate(90, expand=True),
    "rotate 180": lambda i: i.rotate(-180),
    "rotate 7": lambda i: i.rotate(7, BILINEAR),
    "flip": lambda i: i.transpose(Image.Transpose.FLIP_LEFT_RIGHT),
    "flop": lambda i: i.transpose(1),
    "transpose": lambda i: i.transpose(Image.Transpose.TRANSPOSE),
    "transverse": lambda i: i.transpose(Image.Transpose.TRANSVERSE),
    "turn": lambda i: i.transpose(Image.Transpose.ROTATE_270),
    "copy": lambda i: i.copy(),
    "deep": copy.deepcopy,
    "pickled": lambda i: pickle.loads(pickle.dumps(i)),
    "thumbnail": shrunk((20, 30)),
    "draft": drafted("RGB", (30, 20)),
    "first frame, then thumbnail": lambda i: (i.seek(0), shrunk((20, 30))(i))[1],
    "frames, then draft": lambda i: drafted("L", (30, 20))(next(ImageSequence.Iterator(i))),
    "first frame, then verify": lambda i: (i.seek(0), i.verify(), i)[2],
    "load": lambda i: (i.load(), i)[1],
    "load and verify": lambda i: (i.load(), i.verify(), i)[2],
    "upright": ImageOps.exif_transpose,
    "mirror": ImageOps.mirror,
    "fit": lambda i: ImageOps.fit(i, (20, 21)),
    "pasted": pasted,
    "drawn": drawn_on,
    "put": put,
    "coloured": coloured,
    "without info": without_info,
    "without info, small": lambda i: shrunk((20, 30))(without_info(i)),
    "written": written,
    "blur": lambda i: i.filter(ImageFilter.BoxBlur(1)) if i.mode in ("RGB", "L") else i,
    "bright": lambda i: ImageEnhance.Brightness(i.convert("RGB")).enhance(0.7),
    "colour": lambda i: ImageEnhance.Color(i.convert("RGB")).enhance(0.3),
    "inverted": lambda i: ImageChops.invert(i.convert("RGB")),
    "split": lambda i: i.split()[0],
    "v1 crop": lambda i: v1.resized_crop(i, 3, 4, 20, 25, [12, 13]),
    "v1 pad": lambda i: v1.pad(i.convert("RGB"), 3),
    "v1 centre": lambda i: v1.center_crop(i, [20, 100]),
    "v2 resize": lambda i: v2f.resize(i, [15], antialias=True),
    "v2 flip": v2f.vertical_flip,
    "contain": lambda i: ImageOps.contain(i, (20, 21)),
}

SMALLER = {
    "resize a box, nearest": lambda i: i.resize((50, 31), 0, [2.25, 1, i.width / 2, i.height - 1]),
    "resize a box of its size": lambda i: i.resize((5, 6), BILINEAR, (1, 2, 6, 8)),
    "resize a sliver": lambda i: i.resize((5, 6), BILINEAR, (1, 2, 1.25, 8)),
    "resize beyond": lambda i: i.resize((5, 6), BILINEAR, (1, 2, i.width + 1, 8)),
    "resize, tall": lambda i: i.resize((i.width - 1, 5), BICUBIC, (0.25, 0, i.width, i.height)),
    "resize with a gap": lambda i: i.resize((3, 2), BICUBIC, reducing_gap=1.5),
    "resize a box with a gap": lambda i: i.resize((4, 5), 4, (1.5, 2, 40, 41), 1.25),
    "resize with a gap, nearest": lambda i: i.resize((3, 2), 0, reducing_gap=1.5),
    "resize with a gap too small": lambda i: i.resize((3, 2), BICUBIC, reducing_gap=0.9),
    "reduce by a pair": lambda i: i.reduce((3, 1)),
    "reduce a box": lambda i: i.reduce((4, 5), (1, 2, 40, 41)),
    "reduce by one": lambda i: i.reduce(1, (1, 2, 6, 7)),
    "reduce to a pixel": lambda i: i.reduce((1000, 60)),
    "reduce by one, all": lambda i: i.reduce(1),
    "reduce by one, beyond": lambda i: i.reduce(1, (0, 0, i.width + 1, 9)),
    "reduce by nothing": lambda i: i.reduce(0),
    "reduce beyond": lambda i: i.reduce(2, (0, 0, i.width + 1, 9)),
    "thumbnail, large": shrunk((1000, 1000)),
    "thumbnail of floats": shrunk((31.5, 40.2), BILINEAR),
    "thumbnail, close": shrunk((24, 24), resample=Image.Resampling.BOX, reducing_gap=1.0),
    "thumbnail, fair": shrunk((24, 24), reducing_gap=None),
    "thumbnail, nearest": shrunk((17, 19), Image.Resampling.NEAREST),
    "thumbnail of nothing": shrunk((0.5, 20)),
    "draft, half": drafted(None, (150, 150)),
    "draft, grey": drafted("L", None),
    "draft, grey and small": drafted("L", (60, 50)),
    "draft, luma and chroma": drafted("YCbCr", (60, 50)),
    "draft, too large": drafted("RGB", (1000, 1000)),
}

MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)

ENDS = {
    "image": lambda i: (i.mode, i.size, i.format, sorted(map(str, i.info)), i.tobytes()),
    "array": lambda i: np.array(i),
    "view": lambda i: np.asarray(i.convert("L")),
    "tensor": lambda i: v1.to_tensor(i.convert("RGB")),
    "grey tensor": lambda i: v1.to_tensor(i.convert("L")),
    "bytes": lambda i: v1.pil_to_tensor(i.convert("RGB")),
    "v2": lambda i: v2.ToImage()(i.convert("RGB")),
    "pixel": lambda i: i.getpixel((0, 0)),
    "equal": lambda i: i == i.copy(),
    "extrema": lambda i: i.convert("RGB").getextrema(),
    "state": stated,
    "normalized": v1t.Compose(
        [v1t.CenterCrop(12), v1t.Lambda(rgb), v1t.ToTensor(), v1t.Normalize(MEAN, DEVIATION)]
    ),
    "class": lambda i: (isinstance(i, Image.Image), str(i).split(" at ")[0]),
}


@pytest.fixture(autouse=True, scope="module")
def installed():
    assert files.install()
    tensors.install()
    yield
    files.uninstall()
    tensors.uninstall()


def outcome(file, steps, end, *, waits):
    """Returns what comes of an image, or how it fails; `end` is a function, or the name of one."""
    making().is_on = waits
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            image = Image.open(io.BytesIO(file))
            waited = isinstance(image, Waiting)
            for step in steps:
                image = (STEPS | SMALLER)[step](image)
            return (ENDS[end] if isinstance(end, str) else end)(image), waited
    except Exception as error:
        return (type(error), str(error)), waits
    finally:
        making().is_on = False
        making().sources.clear()


def same(one, other):
    if isinstance(one, torch.Tensor):
        alike = type(one) is type(other) and one.stride() == other.stride()
        return alike and one.dtype == other.dtype and torch.equal(one, other)
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other)
    return one == other


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("step", STEPS)
def test_a_step_is_pillows(file, step):
    for end in ENDS:
        eager, _ = outcome(FILES[file], [step], end, waits=False)
        waited, _ = outcome(FILES[file], [step], end, waits=True)
        assert same(eager, waited), end


@pytest.mark.parametrize("file", [name for name in FILES if name.startswith(("jpeg", "png"))])
@pytest.mark.parametrize("step", SMALLER)
def test_a_smaller_image_is_pillows(file, step):
    for end in ("image", "state", "tensor"):
        eager, _ = outcome(FILES[file], [step], end, waits=False)
        waited, _ = outcome(FILES[file], [step], end, waits=True)
        assert same(eager, waited), end


@hypothesis.settings(max_examples=200)
@hypothesis.given(st.data())
def test_parts_are_scaled_as_pillow_scales_them(data):
    width, height = data.draw(st.tuples(st.integers(2, 60), st.integers(2, 400)))
    quarters = st.integers(0, 4 * width - 4), st.integers(0, 4 * height - 4)
    left, top = (data.draw(each) / 4 for each in quarters)
    right = data.draw(st.integers(int(4 * left) + 4, 4 * width)) / 4
    bottom = data.draw(st.integers(int(4 * top) + 4, 4 * height)) / 4
    size = data.draw(st.tuples(st.integers(1, 70), st.integers(1, 300)))
    resample = data.draw(st.sampled_from(Image.Resampling))
    gap = data.draw(st.none() | st.sampled_from([1, 1.1, 2.0, 3.0]))
    factor = data.draw(st.tuples(st.integers(1, 9), st.integers(1, 500)))
    file = encoded(data.draw(st.sampled_from(["RGB", "L"])), "PNG", (width, height))
    window = data.draw(st.sampled_from([None, (0, 0, 1, 1), (0, 0, *size)]))

    def scaled(image):
        made = image.resize(size, resample, (left, top, right, bottom), gap)
        return made.crop(window).tobytes(), image.reduce(factor).tobytes()

    eager = scaled(Image.open(io.BytesIO(file)))
    making().is_on = True
    try:
        assert scaled(Image.open(io.BytesIO(file))) == eager
    finally:
        making().is_on = False
        making().sources.clear()


@hypothesis.settings(max_examples=300)
@hypothesis.given(
    st.sampled_from(sorted(FILES)),
    st.lists(st.sampled_from(sorted(STEPS | SMALLER)), max_size=6),
    st.sampled_from(sorted(ENDS)),
)
def test_steps_are_pillows(file, steps, end):
    eager, _ = outcome(FILES[file], steps, end, waits=False)
    waited, _ = outcome(FILES[file], steps, end, waits=True)
    assert same(eager, waited)


def loaded(image):
    image.load()
    return image


@pytest.mark.parametrize("ready", [rgb, loaded, shrunk((20, 20))])
def test_several_threads_use_an_image_at_once(monkeypatch, ready):
    make = Source.pixels
    monkeypatch.setattr(Source, "pixels", lambda *values: (time.sleep(0.01), make(*values))[1])
    uses = [
        lambda i: i.filter(ImageFilter.BoxBlur(2)).tobytes(),
        lambda i: i.load()[3, 4],
        lambda i: np.asarray(i).tobytes(),
        lambda i: i.convert("L").resize((9, 9)).tobytes(),
        lambda i: i.crop((1, 2, 9, 9)).tobytes(),
        lambda i: v1.to_tensor(i).tolist(),
        lambda i: i == i.copy(),
    ] * 2

    def used(image):
        with ThreadPoolExecutor(len(uses)) as threads:
            return list(threads.map(lambda use: use(image), uses))

    eager, _ = outcome(FILES["jpeg"], [], lambda image: used(ready(image)), waits=False)
    waited, _ = outcome(FILES["jpeg"], [], lambda image: used(ready(image)), waits=True)
    assert waited == eager


@pytest.mark.parametrize("kind", ["jpeg", "png"])
def test_what_is_noted_down_has_no_pixels(kind):
    making().is_on = True
    try:
        image = Image.open(io.BytesIO(FILES[kind])).convert("RGB")
        image = image.crop((3, 4, 40, 30)).resize((9, 9)).rotate(90)
        assert isinstance(image, Waiting)
        assert image._im is None
        assert (image.size, image.mode, image.getbands()) == ((9, 9), "RGB", ("R", "G", "B"))
        image.getpixel((0, 0))
        assert type(image) is Image.Image
    finally:
        making().is_on = False
        making().sources.clear()


def test_nothing_waits_where_no_sample_is_made():
    assert type(Image.open(io.BytesIO(FILES["jpeg"]))).__name__ == "JpegImageFile"
    assert not isinstance(Image.open(io.BytesIO(FILES["jpeg"])), Waiting)


def test_several_views_of_an_image_decode_it_twice_at_most(monkeypatch):
    made = []
    make = Source._keeps
    monkeypatch.setattr(Source, "_keeps", lambda self: made.append(make(self)) or made[-1])
    making().is_on = True
    try:
        image = Image.open(io.BytesIO(FILES["jpeg"])).convert("RGB")
        views = [v1.to_tensor(image.crop((n, n, n + 20, n + 20))) for n in range(5)]
    finally:
        making().is_on = False
        making().sources.clear()
    assert made[1:] == [True] * 4
    whole = v1.to_tensor(Image.open(io.BytesIO(FILES["jpeg"])))
    for n, view in enumerate(views):
        assert torch.equal(view, whole[:, n : n + 20, n : n + 20])


def test_single_pixels_ask_the_image_once(monkeypatch):
    making().is_on = True
    try:
        image = Image.open(io.BytesIO(FILES["jpeg"]))
        pixels, loads = image.load(), []
        pixels[0, 0] = (1, 2, 3)
        monkeypatch.setattr(type(image), "load", loads.append)
        assert pixels[0, 0] == (1, 2, 3)
    finally:
        making().is_on = False
        making().sources.clear()
    assert not loads


def test_pillows_switches_are_kept(monkeypatch):
    cut = FILES["jpeg"][:-200]
    eager, _ = outcome(cut, ["rgb"], "array", waits=False)
    assert eager[0] is OSError
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True)
    eager, _ = outcome(cut, ["rgb"], "array", waits=False)
    waited, _ = outcome(cut, ["rgb"], "array", waits=True)
    assert same(eager, waited)


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("share", [0.6, 1])
def test_frames_are_counted_by_pillow(kind, share):
    """It finds that a damaged file has no further one without a look at its pixels."""

    def counted(image):
        number = 0
        while True:
            number += 1
            try:
                image.seek(number)
            except EOFError:
                return number

    file = FILES[kind][: int(share * len(FILES[kind]))]
    eager, waited = (outcome(file, [], counted, waits=waits)[0] for waits in (False, True))
    assert eager == waited


def chains():
    """Chains that end in numbers, and one that does not."""
    floats, half = v2.ToDtype(torch.float32, scale=True), v2.ToDtype(torch.float16, scale=True)
    normal = v1t.Normalize(MEAN, DEVIATION), v2.Normalize(MEAN, DEVIATION)
    grey = v1t.Normalize([0.5], [0.25]), v2.Normalize([0.5], [0.25])
    crop = v1t.CenterCrop(12), v2.CenterCrop([11, 13])
    return {
        "normalized": v1t.Compose([crop[0], v1t.ToTensor(), normal[0]]),
        "in place": v1t.Compose([v1t.ToTensor(), v1t.Normalize(MEAN, DEVIATION, inplace=True)]),
        "by one number": v1t.Compose([v1t.ToTensor(), grey[0]]),
        "converted": v1t.Compose([v1t.PILToTensor(), v1t.ConvertImageDtype(torch.float64)]),
        "integers": v1t.Compose([v1t.PILToTensor(), v1t.ConvertImageDtype(torch.int32)]),
        "and erased": v1t.Compose([v1t.ToTensor(), normal[0], v1t.RandomErasing(0.0)]),
        "and flipped": v1t.Compose([v1t.ToTensor(), normal[0], v1t.RandomHorizontalFlip(1.0)]),
        "v2": v2.Compose([crop[1], v2.ToImage(), floats, normal[1]]),
        "v2, pure": v2.Compose([v2.ToImage(), floats, normal[1], v2.ToPureTensor()]),
        "v2, grey": v2.Compose([v2.Grayscale(), v2.PILToTensor(), floats, grey[1]]),
        "v2, half": v2.Compose([v2.PILToTensor(), half]),
        "v2, not scaled": v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32)]),
        "nested": v2.Compose(
            [v2.Compose([crop[1], v2.ToImage()]), v2.Compose([floats, normal[1]])]
        ),
        "refused": v2.Compose([v2.ToImage(), normal[1]]),
        "by an array": v1t.Compose([v1t.CenterCrop(np.array([12, 9])), v1t.ToTensor(), normal[0]]),
        "divided by nothing": v1t.Compose([v1t.ToTensor(), v1t.Normalize(MEAN, (0.1, 0.2, 0.0))]),
    }


@pytest.mark.parametrize("file", ["jpeg", "jpeg grey", "png", "png palette", "png rgba", "png 16"])
@pytest.mark.parametrize("name", chains())
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_end_of_a_chain_is_torchvisions(monkeypatch, file, name, dtype):
    chain = chains()[name]
    monkeypatch.setitem(STEPS, "pixel", lambda i: i.crop((3, 4, 4, 5)))
    torch.set_default_dtype(dtype)
    try:
        for steps in ([], ["grey"], ["rgb", "crop", "flip"], ["rgb", "pixel"]):
            eager, _ = outcome(FILES[file], steps, chain, waits=False)
            for _ in range(2):
                waited, _ = outcome(FILES[file], steps, chain, waits=True)
                assert same(eager, waited)
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("name", ["normalized", "converted", "v2", "v2, half"])
def test_a_default_device_is_torchvisions(name):
    tensors._shares.cache_clear()
    chain = chains()[name]
    outcome(FILES["jpeg"], ["rgb"], chain, waits=True)
    with torch.device("meta"):
        eager, waited = (
            outcome(FILES["jpeg"], ["rgb"], chain, waits=waits)[0] for waits in (False, True)
        )
    assert waited.device == eager.device
    assert eager.is_meta or torch.equal(waited, eager)


@pytest.mark.parametrize("kind", [v1t, v2])
def test_a_chain_that_is_changed_is_read_again(monkeypatch, kind):
    normal = kind.Normalize([0.5, 0.5, 0.5], [0.5, 0.5, 0.5])
    floats = [kind.ToImage(), kind.ToDtype(torch.float32)] if kind is v2 else [kind.ToTensor()]
    chain = kind.Compose([*floats, normal])
    changes = [
        lambda: normal.mean.__setitem__(1, 0.25),
        lambda: setattr(normal, "std", torch.tensor([0.5, 0.25, 0.125])),
        lambda: chain.transforms.append(kind.RandomVerticalFlip(1.0)),
        lambda: chain.transforms.pop(),
        lambda: setattr(normal, "forward", lambda tensor: tensor * 2),
        lambda: delattr(normal, "forward"),
        lambda: monkeypatch.setattr(kind.Normalize, "forward", lambda _, tensor: tensor * 3),
        monkeypatch.undo,
        lambda: monkeypatch.setattr(v1, "normalize", lambda tensor, *_: tensor - tensor.mean()),
        monkeypatch.undo,
        lambda: normal.register_forward_hook(lambda module, given, made: made + 1),
    ]
    for change in [lambda: None, *changes]:
        change()
        eager, *waited = (
            outcome(FILES["png"], [], chain, waits=waits)[0] for waits in (False, True, True)
        )
        assert all(same(eager, each) for each in waited)


@pytest.mark.parametrize("kind", [v1t, v2])
@pytest.mark.parametrize("register", ["forward_hook", "forward_pre_hook"])
def test_a_hook_on_all_modules_is_called_for_a_chain_that_was_read(register, kind):
    """Its steps are modules, but for the first of v1."""
    floats = [kind.ToImage(), kind.ToDtype(torch.float32)] if kind is v2 else [kind.ToTensor()]
    chain = kind.Compose([*floats, kind.Normalize(MEAN, DEVIATION)])
    before, _ = outcome(FILES["png"], [], chain, waits=True)

    def changed(_module, given, made=None):
        if made is not None:
            return made + 1
        return tuple(each + 1 if isinstance(each, torch.Tensor) else each for each in given)

    hook = getattr(torch.nn.modules.module, f"register_module_{register}")(changed)
    try:
        eager, *waited = (
            outcome(FILES["png"], [], chain, waits=waits)[0] for waits in (False, True, True)
        )
    finally:
        hook.remove()
    assert not same(eager, before)
    assert all(same(eager, each) for each in waited)
    assert same(outcome(FILES["png"], [], chain, waits=True)[0], before)


@pytest.mark.parametrize("first", [[], ["rgb"]])
@pytest.mark.parametrize("change", ["thumbnail", "settled", "paste"])
def test_single_pixels_are_those_that_were_loaded(first, change):
    def read(image):
        pixels = image.load()
        if change == "settled":
            image.tobytes()
        if change == "paste":
            image.paste(7, (0, 0, 2, 2))
        image.thumbnail((9, 9))
        pixels[1, 1] = pixels[0, 0]
        again = image.load()
        return pixels[0, 0], pixels[1, 1], again[1, 1], image.size, image.tobytes()

    eager, waited = (outcome(FILES["jpeg"], first, read, waits=waits) for waits in (False, True))
    assert waited == (eager[0], True)


def test_two_threads_swap_a_function():
    """One puts the stub in while the other is about to; either takes it out."""

    def function():
        return "own"

    swap = Swap(function, lambda: "stub")
    copied = swap._copy

    def interrupted(*code):
        swap._copy = copied
        swap.install()
        return copied(*code)

    swap._copy = interrupted
    swap.install()
    assert (function(), swap.original()) == ("stub", "own")
    swap.uninstall()
    swap._is_in = True  # the other thread's
    swap.uninstall()
    swap.install()
    assert (function(), swap.original()) == ("stub", "own")
    swap.uninstall()
    assert function() == "own"


def test_the_end_of_a_chain_makes_no_tensor_between():
    normal = v1t.Normalize(MEAN, DEVIATION)
    chain = v1t.Compose([v1t.ToTensor(), normal])
    first, _ = outcome(FILES["jpeg"], ["rgb"], chain, waits=True)
    called = []

    def note(frame, event, _):
        if event == "call" and frame.f_code is v1.normalize.__code__:
            called.append(1)

    sys.setprofile(note)
    try:
        again, _ = outcome(FILES["jpeg"], ["rgb"], chain, waits=True)
        assert not called
        eager, _ = outcome(FILES["jpeg"], ["rgb"], chain, waits=False)
        assert called
    finally:
        sys.setprofile(None)
    assert same(first, again)
    assert same(first, eager)
