"""The form of operations on images for the native core: tuples of a name and arguments.

Nothing is checked here; `fastload._lib.Image` reads them, and raises `ValueError` for those of no known
form. An interpolation is `"nearest"`, `"bilinear"` or `"bicubic"`; a fill is the value of red, green and blue;
points are `(x, y)`; sizes are `(height, width)`; ranges are `(least, most)`.
"""

from typing import Any

__all__ = ["Action", "Op", "Output"]

Op = tuple[Any, ...]
"""An operation. Of fixed parameters:

* `("resize", size | (height, width), longest | None, kernel)`: a kernel is `("pillow" | "pillow12.2" |
  "pillow13", filter)` or `("torch" | "torch_aliased", filter)`: the pixels of Pillow's images, or of torch's uint8
  tensors with and without antialiasing;
* `("resize_part", (height, width), kernel, (left, top, right, bottom))`: a kernel of Pillow's, and sides
  that may lie within pixels; `("reduce", (rows, columns))`: one pixel for each block of so many;
* `("crop", (top, left, height, width))`; `("flip_fixed", vertical)`; `("turn", quarters to the left)`;
* `("center_crop", height, width)`; `("pad", (left, top, right, bottom), fill, padding_mode)`;
* `("affine_fixed", angle, translate, scale, shear, center | None, interpolation, fill | None)`;
  `("rotate_fixed", angle, interpolation, expand, center | None, fill | None)`;
* `("brightness", factor)`, and so `"contrast"`, `"saturation"`, `"hue"` and `"sharpness"`;
* `("grayscale", channels, "pillow" | "torch" | "torch_fused")`; `("invert",)`; `("autocontrast",)`;
  `("equalize",)`; `("posterize", bits)`; `("solarize", threshold)`;
* `("gaussian_blur", weights across, weights down)`.

Of parameters that are drawn, as torchvision's classes of these names draw them:

* `("flip", p, vertical)`; `("random_grayscale", p, "pillow" | "torch" | "torch_fused")`;
* `("random_crop", size, (left, top, right, bottom) | None, pad_if_needed, fill, padding_mode,
  version)`: the version is `"v1"`, or `"v2"` for the words of `torchvision.transforms.v2`;
* `("random_resized_crop", size, scale, ratio, kernel | [kernel, ...])`: with several, one as likely as
  another;
* `("color_jitter", brightness, contrast, saturation, hue)`, each a range or None;
* `("random_gaussian_blur", [(weights across, weights down), ...])`: one as likely as another;
* `("random_rotation", degrees, interpolation, expand, center | None, fill | None)`;
* `("random_affine", degrees, (part of width, part of height) | None, scale | None, (least x, most x,
  least y, most y) | None, interpolation, fill | None, center | None, version)`: how far the image is moved,
  scaled and sheared; the version is `"v1"`, or `"v2"` for the rounding of `torchvision.transforms.v2`;
* `("rand_augment", num_ops, magnitude, bins, interpolation, fill | None, version)`,
  `("trivial_augment_wide", bins, interpolation, fill | None, version)`, `("auto_augment", "imagenet" |
  "cifar10" | "svhn", interpolation, fill | None, version)`: the version is `"v1"`, or `"v2"` for the
  magnitudes of `torchvision.transforms.v2`;
* `("apply", p, [op, ...])`: all or none; `("choice", [weight, ...], [[op, ...], ...])`: one list;
  `("order", [op, ...])`: all, in any order. What an operation draws does not depend on what is drawn for
  others;
* `("random_erasing", p, scale, ratio, value)`: behind all others, into `(C, H, W)`. The value is the bytes
  of one element, or of one for each channel; or `"random"` for noise, in float32.
"""

Output = tuple[Any, ...]
"""The output of a chain: `("bytes", layout)`, or `("table", layout, dtype, channels, elements)` with
the element of each of 256 bytes, for one channel after the other or one channel for all. A layout is
`"hwc"`, `"chw"`, or `"array"`: as `"hwc"`, but `(H, W)` of one channel.
"""

Action = tuple[Any, ...]
"""An operation with its draws made, for one image. Those on colours, `"resize_part"` and `"reduce"` are written as
operations are; besides there are

* `("crop", (top, left, height, width))`; `("resize", size, kernel)`; `("flip", vertical)`;
* `("pad", (left, top, right, bottom), fill, padding_mode)`; `("turn", quarters to the left)`;
* `("affine", matrix, size, interpolation, fill)`, with Pillow's matrix;
* `("erase", (top, left, height, width), value)`, behind all others.
"""
