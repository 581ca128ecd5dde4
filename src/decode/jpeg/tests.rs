#![allow(clippy::cast_possible_wrap)] // C counts in int

use std::ffi::c_int;

use proptest::prelude::*;
use turbojpeg_sys as tj;

use super::super::Encoded;
use super::*;
use crate::sync::Arc;
use crate::sync::atomic::{AtomicBool, Ordering};

/// The encoding of a test file.
#[derive(Clone, Copy, Debug)]
struct Coding {
    subsampling: tj::TJSAMP,
    progressive: bool,
    restart_blocks: c_int,
}

/// Every subsampling that libjpeg-turbo writes; 4:4:1 has four rows of chroma to one.
const SUBSAMPLINGS: [tj::TJSAMP; 7] = [
    tj::TJSAMP_TJSAMP_444,
    tj::TJSAMP_TJSAMP_422,
    tj::TJSAMP_TJSAMP_420,
    tj::TJSAMP_TJSAMP_GRAY,
    tj::TJSAMP_TJSAMP_440,
    tj::TJSAMP_TJSAMP_411,
    tj::TJSAMP_TJSAMP_441,
];

/// Encodes noise over waves.
fn encode(height: usize, width: usize, coding: Coding) -> Vec<u8> {
    let mut state = 1_u32;
    let mut pixels = Vec::with_capacity(height * width * 3);
    for at in 0..height * width * 3 {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let (row, column) = (at / 3 / width, at / 3 % width);
        let wave = (row * 5 + column * 3 + at % 3 * 40) % 200;
        pixels.push((wave + (state >> 27) as usize) as u8);
    }
    // SAFETY: the constant is one of the library's.
    let handle = unsafe { tj::tj3Init(tj::TJINIT_TJINIT_COMPRESS as c_int) };
    assert!(!handle.is_null());
    for (parameter, value) in [
        (tj::TJPARAM_TJPARAM_SUBSAMP, coding.subsampling as c_int),
        (tj::TJPARAM_TJPARAM_QUALITY, 85),
        (
            tj::TJPARAM_TJPARAM_PROGRESSIVE,
            c_int::from(coding.progressive),
        ),
        (tj::TJPARAM_TJPARAM_RESTARTBLOCKS, coding.restart_blocks),
    ] {
        // SAFETY: the handle is alive.
        let status = unsafe { tj::tj3Set(handle, parameter as c_int, value) };
        assert_eq!(status, 0);
    }
    let (mut data, mut length) = (std::ptr::null_mut(), 0);
    // SAFETY: `pixels` holds the declared rows; the library allocates `data`.
    let status = unsafe {
        tj::tj3Compress8(
            handle,
            pixels.as_ptr(),
            width as c_int,
            0,
            height as c_int,
            tj::TJPF_TJPF_RGB as c_int,
            &raw mut data,
            &raw mut length,
        )
    };
    assert_eq!(status, 0);
    // SAFETY: the library wrote `length` bytes there.
    let encoded = unsafe { std::slice::from_raw_parts(data, length as usize) }.to_vec();
    // SAFETY: the library allocated it, and it is not used again.
    unsafe { tj::tj3Free(data.cast()) };
    // SAFETY: as before.
    unsafe { tj::tj3Destroy(handle) };
    encoded
}

/// Decodes `wanted` in `mode`; returns the region that was decoded for it.
fn pixels(encoded: &[u8], mode: Mode, wanted: Option<Region>) -> Result<(Vec<u8>, Region)> {
    let image = Encoded::open(encoded, Reading::pillow(mode), Switches::default())?;
    let wanted = wanted.unwrap_or_else(|| Region::whole(image.shape()));
    let mut frame = Frame::default();
    let held = image.decode(wanted, &mut frame)?;
    let part = frame.view().part(wanted.within(held));
    Ok((part.rows().flatten().copied().collect(), held))
}

fn codings() -> impl Strategy<Value = Coding> {
    (
        prop::sample::select(SUBSAMPLINGS.to_vec()),
        any::<bool>(),
        prop_oneof![Just(0), 1..9],
    )
        .prop_map(|(subsampling, progressive, restart_blocks)| Coding {
            subsampling,
            progressive,
            restart_blocks,
        })
}

/// A size, and a window within it.
fn windows() -> impl Strategy<Value = ((usize, usize), Region)> {
    (1..150_usize, 1..150_usize)
        .prop_flat_map(|(height, width)| (Just((height, width)), 0..height, 0..width))
        .prop_flat_map(|((height, width), top, left)| {
            (
                Just((height, width)),
                (1..=height - top, 1..=width - left)
                    .prop_map(move |(height, width)| Region::new(top, left, height, width)),
            )
        })
}

fn cut(whole: &[u8], image_width: usize, channels: usize, window: Region) -> Vec<u8> {
    whole
        .chunks_exact(image_width * channels)
        .skip(window.top)
        .take(window.height)
        .flat_map(|row| &row[window.left * channels..][..window.width * channels])
        .copied()
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn a_window_has_the_pixels_of_the_whole_image(
        ((height, width), window) in windows(),
        coding in codings(),
        mode in prop::sample::select(vec![Mode::Rgb, Mode::Grey]),
    ) {
        let encoded = encode(height, width, coding);
        let (whole, _) = pixels(&encoded, mode, None).expect("a sound file");
        let (part, held) = pixels(&encoded, mode, Some(window)).expect("a sound file");
        let channels = if mode == Mode::Grey { 1 } else { 3 };
        prop_assert!(part == cut(&whole, width, channels, window));
        prop_assert_eq!((held.top, held.height), (window.top, window.height));
        prop_assert!(held.width <= window.width + 3 * 32);
    }

    #[test]
    fn a_window_of_a_damaged_file_is_refused_or_that_of_the_whole(
        ((height, width), window) in windows(),
        coding in codings(),
        at in any::<prop::sample::Index>(),
        byte in prop_oneof![Just(0xFF_u8), Just(0xD9), any::<u8>()],
        end in prop_oneof![3 => Just(None), 1 => any::<prop::sample::Index>().prop_map(Some)],
    ) {
        let mut encoded = encode(height, width, coding);
        let at = at.index(encoded.len());
        encoded[at] = byte;
        if let Some(end) = end {
            encoded.truncate(end.index(encoded.len()));
        }
        let Ok(image) = Encoded::open(&encoded, Reading::pillow(Mode::Rgb), Switches::default()) else {
            return Ok(());
        };
        let shape = image.shape();
        if shape.height < window.top + window.height || shape.width < window.left + window.width {
            return Ok(());
        }
        let whole = pixels(&encoded, Mode::Rgb, None);
        let part = pixels(&encoded, Mode::Rgb, Some(window));
        match (whole, part) {
            (Ok((whole, _)), Ok((part, _))) => {
                prop_assert!(part == cut(&whole, shape.width, 3, window));
            }
            (Err(_), Err(_)) => {}
            (whole, part) => prop_assert!(false, "{:?} but {:?}", whole.is_ok(), part.is_ok()),
        }
    }
}

#[test]
fn nothing_below_the_window_is_decoded() {
    let coding = Coding {
        subsampling: tj::TJSAMP_TJSAMP_420,
        progressive: false,
        restart_blocks: 0,
    };
    let encoded = encode(256, 256, coding);
    let window = Region::new(0, 40, 30, 20);
    let (_, held) = pixels(&encoded, Mode::Rgb, Some(window)).expect("a sound file");
    assert_eq!(
        held,
        Region {
            left: 32,
            width: 32,
            ..window
        }
    );
    let half = &encoded[..encoded.len() / 2];
    assert!(pixels(half, Mode::Rgb, Some(window)).is_err(), "cut short");
}

/// libjpeg's function to skip the rows above a window does not report where the data ended.
#[test]
fn a_file_that_ends_above_the_window_has_no_row_of_it() {
    let window = Region::new(96, 0, 32, 64);
    let reading = Reading::pillow(Mode::Rgb);
    for subsampling in SUBSAMPLINGS {
        let coding = Coding {
            subsampling,
            progressive: false,
            restart_blocks: 0,
        };
        let encoded = encode(128, 64, coding);
        let header = Header::read(&encoded, reading, Switches::default()).expect("a sound file");
        let scan = memchr::memmem::find(&encoded, &[0xFF, 0xDA]).expect("a scan") + 16;
        // a window's rows of blocks are a quarter of all, of noise that is the same everywhere
        for end in scan..scan + (encoded.len() - scan) / 2 {
            let mut frame = Frame::default();
            let status = header.call(&encoded[..end], reading, window, &mut frame);
            assert_eq!(
                status.expect("memory"),
                Status::Truncated,
                "{coding:?}, {end}"
            );
            assert!(
                frame.pixels().iter().all(|byte| *byte == 0),
                "{coding:?}, {end}"
            );
        }
    }
}

#[test]
fn decoding_stops_when_the_stream_is_cancelled() {
    let coding = Coding {
        subsampling: tj::TJSAMP_TJSAMP_420,
        progressive: true,
        restart_blocks: 0,
    };
    let encoded = encode(64, 64, coding);
    let cancelled = Arc::new(AtomicBool::new(true));
    let stopped = wanted::until(&cancelled, || pixels(&encoded, Mode::Rgb, None));
    assert!(matches!(stopped, Err(Error::Closed)));
    cancelled.store(false, Ordering::Relaxed);
    assert!(wanted::until(&cancelled, || pixels(&encoded, Mode::Rgb, None)).is_ok());
}
