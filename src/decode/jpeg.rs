//! JPEG through libjpeg-turbo: accurate integer transform, smooth chroma, as Pillow.
//!
//! Owns the calls into `jpeg.c`, and the choice of the region that is decoded for a window. Refuses
//! arithmetic coding, two components and five or more.
//!
//! Invariant: no state of one image, nor of an error, remains for the next; and the pixels of a window equal
//! those of the whole image. Smooth chroma reads one sample to each side, so a window is decoded with a
//! margin, to the edges of blocks. What follows the window is not decoded, only searched for the end of the
//! image: a decoder of one scan stops at each marker, so if the first one is that end, decoding everything
//! would have found neither truncation nor an error. In any other case, and after any error, the file is
//! decoded as a whole, and that decides.
#![allow(unsafe_code)]

mod markers;

use std::ffi::{CStr, c_char, c_int, c_uchar, c_uint};
use std::path::PathBuf;

use turbojpeg_sys as _; // links libjpeg-turbo

use super::{Library, Mode, Reading, Switches, colour};
use crate::image::{Frame, Region, Shape};
use crate::{Error, Result, wanted};

/// Size of libjpeg's messages, in bytes: `JMSG_LENGTH_MAX`.
const MESSAGE_BYTES: usize = 200;

/// Pixels to each side of a window on which its own pixels may depend.
const MARGIN: usize = 2;

/// The header of a file, and how much of it is decoded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    file: FileHeader,
    draft: Draft,
}

/// A smaller or grey version of a JPEG that its decoder makes by itself: Pillow's `draft`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Draft {
    /// Divides both sides, rounded up: 1, 2, 4 or 8.
    scale: c_uint,
    /// True for grey that is the luma of the file, without its colours.
    luma: bool,
}

impl Draft {
    /// Makes a draft; None if libjpeg cannot divide by `scale` as Pillow does.
    pub fn new(scale: u32, luma: bool) -> Option<Self> {
        matches!(scale, 1 | 2 | 4 | 8).then_some(Self { scale, luma })
    }
}

/// The contents of a file's header: `struct fastload_jpeg_header`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct FileHeader {
    width: c_uint,
    height: c_uint,
    components: c_uint,
    block_width: c_uint,
    arithmetic: c_int,
}

/// `struct fastload_jpeg_window`.
#[repr(C)]
struct Window {
    top: c_uint,
    left: c_uint,
    height: c_uint,
    width: c_uint,
    scale: c_uint,
}

/// The outcome of a call.
#[derive(Debug, PartialEq, Eq)]
enum Status {
    Decoded,
    Endless,
    Truncated,
    Broken(String),
    Stopped,
    TooManyScans,
    Cancelled,
}

unsafe extern "C" {
    fn fastload_jpeg_header(
        data: *const c_uchar,
        length: usize,
        header: *mut FileHeader,
        message: *mut c_char,
    ) -> c_int;

    fn fastload_jpeg_decode(
        data: *const c_uchar,
        length: usize,
        window: *const Window,
        channels: c_uint,
        pixels: *mut c_uchar,
        capacity: usize,
        is_wanted: extern "C" fn() -> c_int,
        message: *mut c_char,
    ) -> c_int;
}

/// Tells C whether to continue.
extern "C" fn is_wanted() -> c_int {
    c_int::from(wanted::is_wanted())
}

impl Header {
    /// Reads the header of `encoded`.
    pub(super) fn read(encoded: &[u8], reading: Reading, switches: Switches) -> Result<Self> {
        let mut header = FileHeader::default();
        let status = with_message(|message| {
            // SAFETY: the slice outlives the call and comes with its length; `header` has the layout
            // of the C struct; `message` has libjpeg's size of a message. The function keeps no
            // pointer, uses no state of other calls, and leaves fatal errors by its own setjmp: it
            // does not unwind.
            unsafe {
                fastload_jpeg_header(encoded.as_ptr(), encoded.len(), &raw mut header, message)
            }
        });
        if status != Status::Decoded {
            return Err(status.refusal());
        }
        let size = (u64::from(header.height), u64::from(header.width));
        switches.admit(size, encoded.len())?;
        if reading.library == Library::Pillow && !markers::are_taken(encoded) {
            return Err(Error::decode("Pillow refuses its segments"));
        }
        if header.arithmetic != 0 {
            return Err(Error::decode(
                "native code does not decode a JPEG with arithmetic coding",
            ));
        }
        match (header.components, reading.library, reading.mode) {
            (1 | 3, ..) | (4, _, Mode::Rgb) | (4, Library::Pillow, Mode::Grey) => Ok(Self {
                file: header,
                draft: Draft {
                    scale: 1,
                    luma: reading.library == Library::Torchvision,
                },
            }),
            (several, ..) => Err(Error::decode(format!(
                "native code does not decode a JPEG of {several} components"
            ))),
        }
    }

    /// Returns the header of a draft.
    pub(super) fn drafted(self, draft: Draft) -> Self {
        Self { draft, ..self }
    }

    /// Returns the size of the image once decoded.
    pub(super) fn shape(&self, mode: Mode) -> Shape {
        let Self { file, draft } = self;
        Shape {
            height: file.height.div_ceil(draft.scale) as usize,
            width: file.width.div_ceil(draft.scale) as usize,
            channels: match mode {
                Mode::Rgb | Mode::Spread => 3,
                Mode::Grey => 1,
                Mode::Unchanged => file.components as usize,
            },
        }
    }

    /// Decodes at least `wanted` into `frame`; returns the region that it holds.
    pub(super) fn decode(
        &self,
        encoded: &[u8],
        reading: Reading,
        wanted: Region,
        frame: &mut Frame,
    ) -> Result<Region> {
        let whole = Region::whole(self.shape(reading.mode));
        let mut held = match self.draft.scale {
            1 => self.around(wanted),
            _ => whole, // small, and its blocks have fewer pixels
        };
        let mut status = self.call(encoded, reading, held, frame)?;
        let is_doubtful = matches!(
            status,
            Status::Endless | Status::Truncated | Status::Broken(_) | Status::Stopped
        );
        if is_doubtful && held != whole {
            held = whole;
            status = self.call(encoded, reading, held, frame)?;
        }
        match status {
            Status::Decoded => {}
            Status::Endless if reading.library == Library::Pillow => {}
            other => return Err(other.refusal()),
        }
        if self.file.components == 4 {
            colour::inverted_cmyk_to_rgb(frame);
        }
        if reading.mode == Mode::Grey && frame.shape().channels != 1 {
            colour::rgb_to_grey(frame);
        }
        Ok(held)
    }

    /// Returns the region to decode for `wanted`.
    fn around(&self, wanted: Region) -> Region {
        let (image_width, unit) = (self.file.width as usize, self.file.block_width as usize);
        let right = (wanted.left + wanted.width + MARGIN).next_multiple_of(unit);
        let right = right.min(image_width);
        let mut left = wanted.left.saturating_sub(MARGIN) / unit * unit;
        if right - left < unit {
            // libjpeg upscales chroma differently for one or two samples.
            left = left.saturating_sub(unit);
        }
        Region {
            left,
            width: right - left,
            ..wanted
        }
    }

    /// Decodes `held`, and converts colours as far as libjpeg does.
    fn call(
        &self,
        encoded: &[u8],
        reading: Reading,
        held: Region,
        frame: &mut Frame,
    ) -> Result<Status> {
        let channels = match (self.file.components, reading.mode) {
            (1, Mode::Grey | Mode::Unchanged) => 1,
            // libjpeg's own grey: the luma that the file holds.
            (3, Mode::Grey) if self.draft.luma => 1,
            (4, _) => 4,
            _ => 3,
        };
        frame.reset(Shape::new(held.height, held.width, channels))?;
        let pixels = frame.pixels_mut();
        let window = Window {
            top: held.top as c_uint,
            left: held.left as c_uint,
            height: held.height as c_uint,
            width: held.width as c_uint,
            scale: self.draft.scale,
        };
        Ok(with_message(|message| {
            // SAFETY: as in `read`; `window` has the layout of the C struct, and `pixels` comes with
            // its length, which is not exceeded. `is_wanted` does not unwind.
            unsafe {
                fastload_jpeg_decode(
                    encoded.as_ptr(),
                    encoded.len(),
                    &raw const window,
                    channels as c_uint,
                    pixels.as_mut_ptr(),
                    pixels.len(),
                    is_wanted,
                    message,
                )
            }
        }))
    }
}

impl Status {
    fn refusal(self) -> Error {
        match self {
            Self::Truncated | Self::Endless => Error::decode("image file is truncated"),
            Self::Broken(message) => Error::decode(format!("broken data stream: {message}")),
            Self::Decoded | Self::Stopped => Error::decode("its header changed while it was read"),
            Self::TooManyScans => Error::TooSlow {
                path: PathBuf::new(),
                reason: "it has more than 500 progressive scans, where encoders write ten, and \
                         decoding it may take hours; write it anew"
                    .into(),
            },
            Self::Cancelled => Error::Closed, // discarded: the stream was cancelled
        }
    }
}

/// Calls C with a buffer for a message, which [`Status::Broken`] takes.
fn with_message(call: impl FnOnce(*mut c_char) -> c_int) -> Status {
    let mut message = [0_u8; MESSAGE_BYTES];
    match call(message.as_mut_ptr().cast()) {
        0 => Status::Decoded,
        1 => Status::Endless,
        2 => Status::Truncated,
        3 => Status::Broken(CStr::from_bytes_until_nul(&message).map_or_else(
            |_| "libjpeg gave no message".into(),
            |text| text.to_string_lossy().into_owned(),
        )),
        5 => Status::TooManyScans,
        6 => Status::Cancelled,
        _ => Status::Stopped,
    }
}

#[cfg(test)]
mod tests;
