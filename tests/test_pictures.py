"""Pictures that wait: whatever is done to them, they are Pillow's to the bit."""

import copy
import io
import pickle
import struct
import warnings
import zlib

import hypothesis
import numpy as np
import pytest
import torch
from hypothesis import strategies as st
from PIL import Image, ImageChops, ImageDraw, ImageEnhance, ImageFile, ImageFilter, ImageOps
from torchvision.transforms import functional as v1
from torchvision.transforms import v2
from torchvision.transforms.v2 import functional as v2f

from fastload.pictures import tensors, waiting
from fastload.pictures.waiting import Waiting, making


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
    "png": encoded("RGB", "PNG"),
    "png with text behind": described(encoded("RGB", "PNG")),
    "png transparent": encoded("RGB", "PNG", transparency=(0, 1, 2)),
    "png grey": encoded("L", "PNG"),
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


def shrunk(image):
    image.thumbnail((20, 30))
    return image


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
    "resize with a gap": lambda i: i.resize((3, 2), BICUBIC, reducing_gap=1.5),
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
    "thumbnail": shrunk,
    "load": lambda i: (i.load(), i)[1],
    "upright": ImageOps.exif_transpose,
    "mirror": ImageOps.mirror,
    "fit": lambda i: ImageOps.fit(i, (20, 21)),
    "pasted": pasted,
    "drawn": drawn_on,
    "put": put,
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
}

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
    "class": lambda i: (isinstance(i, Image.Image), str(i).split(" at ")[0]),
}


@pytest.fixture(autouse=True, scope="module")
def installed():
    assert waiting.install()
    assert tensors.install()
    yield
    waiting.uninstall()
    tensors.uninstall()


def outcome(file, steps, end, *, waits):
    """Returns what comes of an image, or how it fails."""
    making.is_on = waits
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            image = Image.open(io.BytesIO(file))
            waited = isinstance(image, Waiting)
            for step in steps:
                image = STEPS[step](image)
            return ENDS[end](image), waited
    except Exception as error:
        return (type(error), str(error)), waits
    finally:
        making.is_on = False
        making.sources.clear()


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


@hypothesis.settings(max_examples=300)
@hypothesis.given(
    st.sampled_from(sorted(FILES)),
    st.lists(st.sampled_from(sorted(STEPS)), max_size=6),
    st.sampled_from(sorted(ENDS)),
)
def test_steps_are_pillows(file, steps, end):
    eager, _ = outcome(FILES[file], steps, end, waits=False)
    waited, _ = outcome(FILES[file], steps, end, waits=True)
    assert same(eager, waited)


@pytest.mark.parametrize("kind", ["jpeg", "png"])
def test_what_is_noted_down_has_no_pixels(kind):
    making.is_on = True
    try:
        image = Image.open(io.BytesIO(FILES[kind])).convert("RGB")
        image = image.crop((3, 4, 40, 30)).resize((9, 9)).rotate(90)
        assert isinstance(image, Waiting)
        assert image._im is None
        assert (image.size, image.mode, image.getbands()) == ((9, 9), "RGB", ("R", "G", "B"))
        image.getpixel((0, 0))
        assert type(image) is Image.Image
    finally:
        making.is_on = False
        making.sources.clear()


def test_nothing_waits_where_no_sample_is_made():
    assert type(Image.open(io.BytesIO(FILES["jpeg"]))).__name__ == "JpegImageFile"
    assert not isinstance(Image.open(io.BytesIO(FILES["jpeg"])), Waiting)


def test_several_views_of_an_image_decode_it_twice_at_most(monkeypatch):
    made = []
    make = waiting._Source._keeps
    monkeypatch.setattr(waiting._Source, "_keeps", lambda self: made.append(make(self)) or made[-1])
    making.is_on = True
    try:
        image = Image.open(io.BytesIO(FILES["jpeg"])).convert("RGB")
        views = [v1.to_tensor(image.crop((n, n, n + 20, n + 20))) for n in range(5)]
    finally:
        making.is_on = False
        making.sources.clear()
    assert made[1:] == [True] * 4
    whole = v1.to_tensor(Image.open(io.BytesIO(FILES["jpeg"])))
    for n, view in enumerate(views):
        assert torch.equal(view, whole[:, n : n + 20, n : n + 20])


def test_pillows_switches_are_kept(monkeypatch):
    cut = FILES["jpeg"][:-200]
    eager, _ = outcome(cut, ["rgb"], "array", waits=False)
    assert eager[0] is OSError
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True)
    eager, _ = outcome(cut, ["rgb"], "array", waits=False)
    waited, _ = outcome(cut, ["rgb"], "array", waits=True)
    assert same(eager, waited)
