//! WebP through libwebp, the library that Pillow uses: lossy, lossless, alpha dropped.
//!
//! Owns the calls into it. Refuses animations. Invariant: the checks of Pillow's reader before it decodes
//! (the chunks are consistent and complete) are made here by the same code, and nothing stays allocated.
#![allow(unsafe_code)]

use std::mem::MaybeUninit;

use libwebp_sys::{self as webp, VP8StatusCode};

use super::{Library, Mode, Reading, Switches, colour};
use crate::fork::undivided;
use crate::image::{Frame, Region, Shape};
use crate::{Error, Result};

/// The header of a WebP.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    height: i32,
    width: i32,
}

impl Header {
    /// Reads the header of `encoded`.
    pub(super) fn read(encoded: &[u8], reading: Reading, switches: Switches) -> Result<Self> {
        let mut features = MaybeUninit::<webp::WebPBitstreamFeatures>::zeroed();
        // SAFETY: the slice comes with its length, and `features` has room for the struct.
        let status = unsafe {
            webp::WebPGetFeatures(encoded.as_ptr(), encoded.len(), features.as_mut_ptr())
        };
        if status != VP8StatusCode::VP8_STATUS_OK {
            return Err(damaged(status));
        }
        // SAFETY: plain integers, all of which were zeroed.
        let features = unsafe { features.assume_init() };
        let (height, width) = (features.height, features.width);
        switches.admit(
            (height.unsigned_abs().into(), width.unsigned_abs().into()),
            encoded.len(),
        )?;
        if features.has_animation != 0 {
            return Err(Error::decode("it is an animated WebP"));
        }
        if reading.mode.keeps_kind() && features.has_alpha != 0 {
            return Err(Error::decode(
                "native code does not keep the alpha of a WebP",
            ));
        }
        if (reading.library, reading.mode) == (Library::Torchvision, Mode::Grey) {
            return Err(Error::decode("native code does not convert a WebP to grey"));
        }
        Ok(Self { height, width })
    }

    /// Returns the size of the image once decoded.
    pub(super) fn shape(self, mode: Mode) -> Shape {
        Shape {
            height: self.height.unsigned_abs() as usize,
            width: self.width.unsigned_abs() as usize,
            channels: if mode == Mode::Grey { 1 } else { 3 },
        }
    }

    /// Decodes the whole image into `frame`; returns its region.
    pub(super) fn decode(self, encoded: &[u8], mode: Mode, frame: &mut Frame) -> Result<Region> {
        let shape = self.shape(Mode::Rgb);
        let file = Demuxer::new(encoded)?;
        let image = file.only_image(self)?;
        frame.reset(shape)?;
        let stride = frame.stride();
        let pixels = frame.pixels_mut();
        let mut config = webp::WebPDecoderConfig::new()
            .map_err(|()| Error::decode("libwebp has another version than its header"))?;
        config.output.colorspace = webp::WEBP_CSP_MODE::MODE_RGB;
        config.output.is_external_memory = 1;
        config.output.u.RGBA = webp::WebPRGBABuffer {
            rgba: pixels.as_mut_ptr(),
            stride: i32::try_from(stride).map_err(|_| Error::decode("its rows are too long"))?,
            size: pixels.len(),
        };
        // SAFETY: `image` lies in `encoded`; the config's buffer is `pixels`, with its length, which the
        // library compares with the image before it writes.
        // Undivided: the library chooses its kernels under locks of its own, for each image anew.
        let decode = || unsafe { webp::WebPDecode(image.bytes, image.size, &raw mut config) };
        let status = undivided(decode);
        if status != VP8StatusCode::VP8_STATUS_OK {
            return Err(damaged(status));
        }
        if mode == Mode::Grey {
            colour::rgb_to_grey(frame);
        }
        Ok(Region::whole(shape))
    }
}

/// The parsed chunks of a file.
struct Demuxer<'a> {
    handle: *mut webp::WebPDemuxer,
    file: &'a [u8],
}

impl<'a> Demuxer<'a> {
    fn new(encoded: &'a [u8]) -> Result<Self> {
        let data = webp::WebPData {
            bytes: encoded.as_ptr(),
            size: encoded.len(),
        };
        let version = webp::WebPGetDemuxABIVersion();
        // SAFETY: the data outlive the demuxer, which borrows them; no state is requested.
        let handle =
            unsafe { webp::WebPDemuxInternal(&raw const data, 0, std::ptr::null_mut(), version) };
        if handle.is_null() {
            return Err(Error::decode(
                "broken WebP file: its chunks do not fit together",
            ));
        }
        Ok(Self {
            handle,
            file: encoded,
        })
    }

    /// Returns the bytes of the one image that the file holds.
    fn only_image(&self, header: Header) -> Result<webp::WebPData> {
        let mut frame = MaybeUninit::<webp::WebPIterator>::zeroed();
        // SAFETY: the demuxer is alive, and `frame` has room for the struct.
        let found = unsafe { webp::WebPDemuxGetFrame(self.handle, 1, frame.as_mut_ptr()) };
        // SAFETY: plain integers and pointers, all of which were zeroed.
        let mut frame = unsafe { frame.assume_init() };
        let (image, count) = (frame.fragment, frame.num_frames);
        let size = (frame.height, frame.width);
        // SAFETY: filled above; it points into the file's bytes, which stay.
        unsafe { webp::WebPDemuxReleaseIterator(&raw mut frame) };
        let inside = self.file.as_ptr_range();
        debug_assert!(found == 0 || inside.contains(&image.bytes));
        if found == 0 || count != 1 || size != (header.height, header.width) {
            return Err(Error::decode(
                "broken WebP file: it is not one image of its header's size",
            ));
        }
        Ok(image)
    }
}

impl Drop for Demuxer<'_> {
    fn drop(&mut self) {
        // SAFETY: made by `WebPDemux`, and not used again.
        unsafe { webp::WebPDemuxDelete(self.handle) };
    }
}

fn damaged(status: VP8StatusCode) -> Error {
    Error::decode(match status {
        VP8StatusCode::VP8_STATUS_NOT_ENOUGH_DATA | VP8StatusCode::VP8_STATUS_SUSPENDED => {
            "image file is truncated".to_owned()
        }
        other => format!("broken WebP file (status {})", other as i32),
    })
}
