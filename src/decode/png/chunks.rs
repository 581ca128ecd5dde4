//! The chunks of a PNG, and whether Pillow would read them without complaint.
//!
//! Owns no pixels: it reads lengths and names. Refuses animations, and everything that Pillow refuses or
//! fails at: Pillow parses every chunk before the pixels, and raises for one that is too short or unpacks to
//! too much. Invariant: Pillow decodes the same image from every file that is accepted.

use std::ops::Range;

use crate::{Error, Result};

/// `PngImagePlugin.MAX_TEXT_CHUNK`: maximum size of an unpacked text or colour profile, in bytes.
const MAX_UNPACKED_BYTES: usize = 1 << 20;

/// `PngImagePlugin.MAX_TEXT_MEMORY`: maximum size of all texts, in bytes.
const MAX_TEXT_BYTES: usize = 64 << 20;

/// Upper bound of deflate's compression ratio.
const MAX_RATIO: usize = 1032;

/// Keywords of texts that Pillow would confuse with its own entries in `info`.
const MISLEADING: [&[u8]; 4] = [b"bbox", b"default_image", b"interlace", b"transparency"];

/// The contents of the chunks before the pixels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Chunks {
    pub(super) width: u32,
    pub(super) height: u32,
    /// Bits of a sample.
    pub(super) depth: u8,
    /// 0 grey, 2 RGB, 3 palette, 4 grey and alpha, 6 RGBA.
    pub(super) colour: u8,
    /// The range of the palette's colours.
    pub(super) palette: Range<usize>,
    /// True if single colours, or palette entries, are transparent.
    pub(super) has_transparency: bool,
}

/// The position of a walk over the chunks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    Before,
    Pixels,
    After,
}

impl Chunks {
    /// Walks over all chunks of `encoded`, which begins with the signature.
    pub(super) fn read(encoded: &[u8]) -> Result<Self> {
        let mut chunks = Self::default();
        let mut section = Section::Before;
        let mut text_bytes = 0;
        let mut at = 8;
        loop {
            let (name, data) = chunk(encoded, at)?;
            let body = &encoded[data.clone()];
            if (at == 8) != (name == *b"IHDR") {
                return Err(Error::decode("its first chunk, and no other, must be IHDR"));
            }
            if section == Section::Pixels && name != *b"IDAT" {
                section = Section::After;
            }
            at = data.end + 4; // the checksum
            match &name {
                b"IHDR" => chunks.head(body)?,
                b"IDAT" if section == Section::After => {
                    return Err(Error::decode("its IDAT chunks are not consecutive"));
                }
                b"IDAT" => section = Section::Pixels,
                b"IEND" if section == Section::After => return Ok(chunks),
                b"PLTE" if section == Section::Before && chunks.palette.is_empty() => {
                    if body.is_empty() || !body.len().is_multiple_of(3) || body.len() > 768 {
                        return Err(Error::decode("its palette does not have 1 to 256 colours"));
                    }
                    chunks.palette = data;
                }
                b"tRNS" => {
                    chunks.has_transparency = true;
                    let needed = match chunks.colour {
                        0 => 2,
                        2 => 6,
                        _ => 0,
                    };
                    at_least(body, needed, name)?;
                }
                b"acTL" | b"fcTL" | b"fdAT" => return Err(Error::decode("it is an animated PNG")),
                b"gAMA" => at_least(body, 4, name)?,
                b"cHRM" => at_least(body, 32, name)?,
                b"sRGB" => at_least(body, 1, name)?,
                b"pHYs" => at_least(body, 9, name)?,
                b"iCCP" => {
                    let (_, profile) = split(body);
                    unpacked_bytes(after_method(profile)?)?;
                }
                b"tEXt" | b"zTXt" | b"iTXt" => text_bytes += text(name, body)?,
                _ if name[0].is_ascii_uppercase() => {
                    return Err(Error::decode(format!(
                        "its chunk {} is unknown or misplaced",
                        name.escape_ascii()
                    )));
                }
                _ => {}
            }
            if text_bytes > MAX_TEXT_BYTES {
                return Err(Error::decode("it holds too much text"));
            }
        }
    }

    /// Reads IHDR: size, depth, colour type, compression method, filter, interlace.
    fn head(&mut self, body: &[u8]) -> Result<()> {
        let &[w0, w1, w2, w3, h0, h1, h2, h3, depth, colour, 0, 0, 0 | 1] = body else {
            return Err(Error::decode("its header is not that of a PNG"));
        };
        self.width = u32::from_be_bytes([w0, w1, w2, w3]);
        self.height = u32::from_be_bytes([h0, h1, h2, h3]);
        self.depth = depth;
        self.colour = colour;
        match (self.width.min(self.height), colour, depth) {
            (0, _, _) => Err(Error::decode("it has no pixels")),
            (_, 0, 1 | 2 | 4 | 8 | 16) | (_, 2 | 4 | 6, 8 | 16) | (_, 3, 1 | 2 | 4 | 8) => Ok(()),
            _ => Err(Error::decode(format!(
                "a PNG of colour type {colour} has no samples of {depth} bits"
            ))),
        }
    }
}

/// Returns the name of the chunk at `at`, and the range of its data.
fn chunk(encoded: &[u8], at: usize) -> Result<([u8; 4], Range<usize>)> {
    let truncated = || Error::decode("image file is truncated");
    let head = encoded.get(at..at + 8).ok_or_else(truncated)?;
    let &[l0, l1, l2, l3, n0, n1, n2, n3] = head else {
        return Err(truncated());
    };
    let name = [n0, n1, n2, n3];
    if !name.iter().all(u8::is_ascii_alphabetic) {
        return Err(Error::decode(format!(
            "broken PNG file (chunk {})",
            name.escape_ascii()
        )));
    }
    let start = at + 8;
    let end = start.checked_add(u32::from_be_bytes([l0, l1, l2, l3]) as usize);
    match end {
        Some(end) if end.checked_add(4).is_some_and(|next| next <= encoded.len()) => {
            Ok((name, start..end))
        }
        _ => Err(truncated()),
    }
}

fn at_least(body: &[u8], needed: usize, name: [u8; 4]) -> Result<()> {
    if body.len() >= needed {
        return Ok(());
    }
    Err(Error::decode(format!(
        "its chunk {} is too short",
        name.escape_ascii()
    )))
}

/// Splits at the first zero byte, which is dropped.
fn split(body: &[u8]) -> (&[u8], &[u8]) {
    let end = body.iter().position(|&byte| byte == 0);
    end.map_or((body, &[]), |end| (&body[..end], &body[end + 1..]))
}

/// Returns what follows the compression method, which must be 0.
fn after_method(packed: &[u8]) -> Result<&[u8]> {
    match packed {
        [0, rest @ ..] => Ok(rest),
        _ => Err(Error::decode("a chunk is compressed by an unknown method")),
    }
}

/// Returns the maximum memory that a text takes, in bytes.
fn text(name: [u8; 4], body: &[u8]) -> Result<usize> {
    let (key, rest) = split(body);
    if MISLEADING.contains(&key) {
        return Err(Error::decode(
            "a text chunk has a keyword that Pillow uses for itself",
        ));
    }
    match (&name, rest) {
        (b"zTXt", _) => unpacked_bytes(after_method(rest)?),
        (b"iTXt", [1..=255, 0, rest @ ..]) => {
            let (_language, rest) = split(rest);
            let (_translated, packed) = split(rest);
            unpacked_bytes(packed)
        }
        _ => Ok(body.len()),
    }
}

/// Returns the unpacked size of `packed`, at most; refuses sizes that Pillow refuses.
fn unpacked_bytes(packed: &[u8]) -> Result<usize> {
    let bound = packed.len().saturating_mul(MAX_RATIO);
    if bound < MAX_UNPACKED_BYTES {
        return Ok(bound);
    }
    fdeflate::decompress_to_vec_bounded(packed, MAX_UNPACKED_BYTES - 1)
        .map(|unpacked| unpacked.len())
        .map_err(|_| Error::decode("one of its chunks is damaged, or too large when unpacked"))
}
