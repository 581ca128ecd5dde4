//! One picture of 500x375 pixels, stage by stage, on one thread. `FASTLOAD_BENCH_JPEG` names
//! another file to take in place of the one made here.
#![allow(missing_docs, unsafe_code)]
#![allow(clippy::multiple_unsafe_ops_per_block)] // one picture, made once
#![allow(
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    clippy::unnecessary_cast
)] // C enums

mod measure;

use std::hint::black_box;
use std::ptr;

use _lib::decode::{Encoded, Mode, Reading, Switches};
use _lib::image::torch::Interpolation;
use _lib::image::{
    Filter, Kernel, Key, Layout, Op, Output, PassOrder, Pipeline, Region, Scratch, Size, Table,
};
use _lib::memory::Dtype;
use measure::measure;

const HEIGHT: usize = 375;
const WIDTH: usize = 500;

/// Waves and noise as a JPEG of quality 90 with halved chroma, about 60 kB.
fn picture() -> Vec<u8> {
    if let Some(path) = std::env::var_os("FASTLOAD_BENCH_JPEG") {
        return std::fs::read(path).expect("a file that can be read");
    }
    let mut noise = 1_u32;
    let pixels: Vec<u8> = (0..HEIGHT * WIDTH * 3)
        .map(|at| {
            noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let (row, column) = (at / 3 / WIDTH, at / 3 % WIDTH);
            let wave = (column as f32 / 17.0 + row as f32 / 31.0 + (at % 3) as f32).sin();
            (128.0 + 90.0 * wave + (noise >> 28) as f32) as u8
        })
        .collect();
    let (mut encoded, mut size) = (ptr::null_mut(), 0);
    // SAFETY: `pixels` has the size that is claimed, libjpeg allocates `encoded`, and both it and
    // the compressor are freed here, once, after the copy.
    unsafe {
        let compressor = turbojpeg_sys::tj3Init(turbojpeg_sys::TJINIT_TJINIT_COMPRESS as i32);
        turbojpeg_sys::tj3Set(
            compressor,
            turbojpeg_sys::TJPARAM_TJPARAM_QUALITY as i32,
            90,
        );
        let subsampling = turbojpeg_sys::TJSAMP_TJSAMP_420 as i32;
        turbojpeg_sys::tj3Set(
            compressor,
            turbojpeg_sys::TJPARAM_TJPARAM_SUBSAMP as i32,
            subsampling,
        );
        let (width, height) = (WIDTH as i32, HEIGHT as i32);
        let format = turbojpeg_sys::TJPF_TJPF_RGB as i32;
        turbojpeg_sys::tj3Compress8(
            compressor,
            pixels.as_ptr(),
            width,
            0,
            height,
            format,
            &raw mut encoded,
            &raw mut size,
        );
        let copy = std::slice::from_raw_parts(encoded, size as usize).to_vec();
        turbojpeg_sys::tj3Free(encoded.cast());
        turbojpeg_sys::tj3Destroy(compressor);
        copy
    }
}

fn main() {
    let resize = |kernel| {
        let size = Size::Shorter {
            size: 256,
            longest: None,
        };
        Op::Resize(size, kernel)
    };
    let pillow = |filter| Kernel::Pillow(filter, PassOrder::Pillow13);
    let bilinear = pillow(Filter::Bilinear);
    let square = |kernel| {
        let size = Size::Exact {
            height: 224,
            width: 224,
        };
        Op::Resize(size, kernel)
    };
    let crop = Op::CenterCrop {
        height: 224,
        width: 224,
    };
    let bytes = || Output::Bytes(Layout::Hwc);
    let floats = || {
        let entries = (0..256_u16).flat_map(|byte| (f32::from(byte) / 255.0).to_ne_bytes());
        let table = Table::new(Dtype::Float32, 1, entries.collect()).expect("256 floats");
        Output::Table(table, Layout::Chw)
    };
    let chains = [
        ("resize", vec![resize(bilinear)], bytes()),
        (
            "resize, crop",
            vec![resize(bilinear), crop.clone()],
            bytes(),
        ),
        (
            "resize by lanczos, crop",
            vec![resize(pillow(Filter::Lanczos)), crop.clone()],
            bytes(),
        ),
        (
            "resize as torch, crop",
            vec![resize(Kernel::Torch(Interpolation::Bilinear)), crop.clone()],
            bytes(),
        ),
        (
            "resize by bicubic as torch, crop",
            vec![resize(Kernel::Torch(Interpolation::Bicubic)), crop.clone()],
            bytes(),
        ),
        ("resize to 224", vec![square(bilinear)], bytes()),
        (
            "resize to 224 as torch",
            vec![square(Kernel::Torch(Interpolation::Bilinear))],
            bytes(),
        ),
        ("to tensor", Vec::new(), floats()),
        ("all", vec![resize(bilinear), crop], floats()),
    ];
    let picture = picture();
    let encoded =
        Encoded::open(&picture, Reading::pillow(Mode::Rgb), Switches::default()).expect("a JPEG");
    let shape = encoded.shape();
    let mut scratch = Scratch::default();
    measure("decode", || {
        let encoded = Encoded::open(
            black_box(&picture),
            Reading::pillow(Mode::Rgb),
            Switches::default(),
        );
        encoded
            .and_then(|encoded| encoded.decode(Region::whole(shape), &mut scratch.decoded))
            .expect("a JPEG")
    });
    encoded
        .decode(Region::whole(shape), &mut scratch.decoded)
        .expect("a JPEG");
    for (name, ops, output) in chains {
        let pipeline = Pipeline::new(ops, output, (None, Some(3))).expect("operations that fit");
        let plan = pipeline
            .plan(shape, Key::default())
            .expect("a size that fits");
        let count: usize = pipeline.sample_shape(&plan).iter().product();
        let mut out = vec![0; count * pipeline.dtype().itemsize()];
        let held = Region::whole(shape);
        measure(name, || {
            pipeline
                .apply(&plan, shape, held, &mut scratch, black_box(&mut out))
                .expect("room");
        });
    }
}
