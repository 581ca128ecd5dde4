"""Pictures that wait: in worker processes Pillow's images are decoded when their pixels are needed.

A user's own code opens an image, cuts and scales it step by step, and each step of Pillow's makes pixels of which
the next one throws most away. Here `PIL.Image.open` gives the image that Pillow makes of the file's header, and what
Pillow would do to its pixels is recorded. Once something needs pixels, all of it is done natively in one go: only
the part that is wanted is decoded.

`files` are the images that are opened, `waiting` what is made of them, `steps` what is recorded, `source` the encoded
image. `tensors` and `chains` are what torchvision makes tensors of them by. `samples` makes a user's samples so that a
file that turns out to be damaged fails where it would have failed. Invariant: a sample is, bit for bit, what it is
without all this.
"""

from fastload.pictures.samples import ready, waited, waits_in

__all__ = ["ready", "waited", "waits_in"]
