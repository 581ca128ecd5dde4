//! The headers of pages, looked at before their pages are decompressed.
//!
//! A header announces how many bytes a page becomes, and decompressors allocate as many. Refuses what
//! no codec can make of the bytes that are there.

use ::parquet::basic::CompressionCodec;

use super::runs::varint;
use super::thrift;

/// `DATA_PAGE`; `INDEX_PAGE`, which readers pass over; `DATA_PAGE_V2`.
const DATA: i64 = 0;
const INDEX: i64 = 1;
const DATA_2: i64 = 3;

/// What a run of pages announces.
pub(super) struct Announced {
    /// What each page becomes, in bytes.
    pub(super) sizes: Vec<usize>,
    /// Values, nulls and empty lists of all.
    pub(super) entries: i64,
}

/// Refuses a run of pages one of which cannot be what it announces.
pub(super) fn check(mut bytes: &[u8], codec: CompressionCodec) -> Result<Announced, String> {
    let (mut sizes, mut entries) = (Vec::new(), 0_i64);
    while !bytes.is_empty() {
        let (mut kind, mut made, mut stored, mut levels) = (0, 0, 0, 0_i64);
        let mut count = 0_i64;
        let rest = thrift::pass(bytes, thrift::PAGE, &mut |field, number| match field {
            [1] => kind = number,
            [2] => made = number,
            [3] => stored = number,
            [5 | 8, 1] => count = number,
            [8, 5 | 6] => levels = levels.saturating_add(number), // of version 2: not compressed
            _ => {}
        });
        let rest = rest.ok_or("the header of a page is damaged")?;
        let left = rest.len();
        let (size, most) = usize::try_from(stored)
            .ok()
            .filter(|&size| size <= left)
            .and_then(|size| Some((size, most(size, codec)?)))
            .ok_or_else(|| format!("a page announces {stored} bytes, and {left} are left"))?;
        if codec == CompressionCodec::UNCOMPRESSED && made != stored {
            return Err(format!(
                "a page of {size} bytes announces {made}, uncompressed"
            ));
        }
        if codec == CompressionCodec::SNAPPY && made != stored {
            let packed = usize::try_from(levels)
                .ok()
                .and_then(|at| rest[..size].get(at..));
            let own = packed.and_then(|packed| varint(packed, u32::BITS));
            if own.map(|(len, _)| len) != (made - levels).try_into().ok() {
                return Err(format!(
                    "a page announces {made} bytes, and what it is compressed to says otherwise"
                ));
            }
        }
        match usize::try_from(made) {
            Ok(made) if made <= most => sizes.extend((kind != INDEX).then_some(made)),
            _ => {
                return Err(format!(
                    "a page of {size} bytes announces {made} decompressed ones"
                ));
            }
        }
        if matches!(kind, DATA | DATA_2) {
            entries = entries.saturating_add(count.max(0));
        }
        bytes = &rest[size..];
    }
    Ok(Announced { sizes, entries })
}

/// The most bytes that a codec makes of `size`.
fn most(size: usize, codec: CompressionCodec) -> Option<usize> {
    let ratio = match codec {
        CompressionCodec::UNCOMPRESSED => 1,
        CompressionCodec::SNAPPY => 32, // a copy of 64 bytes takes 3
        CompressionCodec::LZ4 | CompressionCodec::LZ4_RAW => 256, // a byte adds 255 to a length
        CompressionCodec::GZIP => 1040, // two bits for 258 bytes
        _ => 1 << 15,                   // zstd: a block of 4 bytes is one byte 128 Ki times
    };
    size.checked_mul(ratio)?
        .checked_add(if ratio > 1 { 64 } else { 0 })
}
