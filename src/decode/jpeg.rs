//! JPEG to RGB through libjpeg-turbo: accurate integer transform, smooth chroma, as Pillow.
//!
//! Owns the calls into `jpeg.c`. Refuses four-channel images and sizes beyond Pillow's limit.
//! Invariant: nothing of one image, nor of an error, is left for the next.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_uchar, c_uint};
use std::path::PathBuf;

use turbojpeg_sys as _; // links libjpeg-turbo

use super::Format;
use crate::image::{Frame, Shape};
use crate::{Error, Result};

/// Most pixels of an image: twice `PIL.Image.MAX_IMAGE_PIXELS`, where Pillow raises
/// `DecompressionBombError`.
const MAX_PIXELS: u64 = 178_956_970;

/// Size of libjpeg's messages, in bytes: `JMSG_LENGTH_MAX`.
const MESSAGE_BYTES: usize = 200;

/// `struct fastload_jpeg_header`.
#[repr(C)]
#[derive(Default)]
struct Header {
    width: c_uint,
    height: c_uint,
    components: c_uint,
}

impl Header {
    fn shape(&self) -> Shape {
        Shape {
            height: self.height as usize,
            width: self.width as usize,
            channels: 3,
        }
    }
}

/// What became of an image.
enum Status {
    Decoded,
    Truncated,
    Broken(String),
    Stopped,
}

unsafe extern "C" {
    fn fastload_jpeg_decode(
        data: *const c_uchar,
        length: usize,
        pixels: *mut c_uchar,
        capacity: usize,
        header: *mut Header,
        message: *mut c_char,
    ) -> c_int;
}

/// Decodes `encoded` into `frame`, as rows of RGB; grey becomes equal red, green and blue.
///
/// # Errors
///
/// [`Error::Decode`] without a path: cut short, or broken beyond what Pillow tolerates.
pub(super) fn decode(encoded: &[u8], frame: &mut Frame) -> Result<()> {
    let mut header = Header::default();
    let mut status = call(encoded, frame.room(), &mut header);
    if matches!(status, Status::Stopped) {
        check(&header)?;
        frame.reset(header.shape())?;
        status = call(encoded, frame.room(), &mut header);
    }
    match status {
        Status::Decoded => frame.reset(header.shape()),
        Status::Truncated => Err(error("image file is truncated".into())),
        Status::Broken(message) => Err(error(format!("broken data stream: {message}"))),
        Status::Stopped => Err(error("its header changed while it was read".into())),
    }
}

/// Returns the size of the image, in RGB.
///
/// # Errors
///
/// [`Error::Decode`] without a path: not a JPEG, not grey or three colours, too large, or broken.
pub(super) fn shape(encoded: &[u8]) -> Result<Shape> {
    match Format::of(encoded) {
        Some(Format::Jpeg) => {}
        Some(other) => return Err(error(format!("it is {other}; only JPEG is decoded here"))),
        None if encoded.is_empty() => return Err(error("the file is empty".into())),
        None => {
            return Err(error(
                "it is no JPEG, nor any image format known here".into(),
            ));
        }
    }
    let mut header = Header::default();
    match call(encoded, &mut [], &mut header) {
        Status::Truncated => Err(error("image file is truncated".into())),
        Status::Broken(message) => Err(error(format!("broken data stream: {message}"))),
        Status::Decoded | Status::Stopped => check(&header).map(|()| header.shape()),
    }
}

/// Refuses what is not to be decoded.
fn check(header: &Header) -> Result<()> {
    let pixels = u64::from(header.width) * u64::from(header.height);
    match header.components {
        1 | 3 if pixels <= MAX_PIXELS => Ok(()),
        1 | 3 => Err(error(format!(
            "image size ({pixels} pixels) exceeds the limit of {MAX_PIXELS} pixels, could be a \
             decompression bomb"
        ))),
        4 => Err(error(
            "CMYK JPEG is not supported yet; convert it to RGB".into(),
        )),
        several => Err(error(format!(
            "a JPEG of {several} channels is not supported"
        ))),
    }
}

fn error(reason: String) -> Error {
    Error::Decode {
        path: PathBuf::new(),
        reason,
    }
}

/// Decodes into `pixels` as far as they reach.
fn call(encoded: &[u8], pixels: &mut [u8], header: &mut Header) -> Status {
    let mut message = [0_u8; MESSAGE_BYTES];
    // SAFETY: both slices outlive the call and come with their lengths; `header` has the layout of
    // the C struct; `message` has libjpeg's size of a message. The function keeps no pointer, uses
    // no state of other calls, and leaves fatal errors by its own setjmp: it does not unwind.
    let status = unsafe {
        fastload_jpeg_decode(
            encoded.as_ptr(),
            encoded.len(),
            pixels.as_mut_ptr(),
            pixels.len(),
            header,
            message.as_mut_ptr().cast(),
        )
    };
    match status {
        0 => Status::Decoded,
        1 => Status::Truncated,
        2 => Status::Broken(CStr::from_bytes_until_nul(&message).map_or_else(
            |_| "libjpeg gave no message".into(),
            |text| text.to_string_lossy().into_owned(),
        )),
        _ => Status::Stopped,
    }
}
