//! Interpolation between pixels: the bilinear and bicubic filters of Pillow's `Geometry.c`.
//!
//! Invariant: sums are formed in the reference's order, in doubles, and truncated; beyond its edges the source
//! repeats its last pixel.
#![allow(unsafe_code)]
#![allow(clippy::many_single_char_names)] // a matrix, as in the documents of Pillow

use super::pixels::Grid;
use super::to_byte::double_to_byte;
use super::{Frame, Pixels};
use crate::wide::wide;

/// Maps `source` to `target`, interpolating two by two pixels of `C` channels on `L` lanes (`L` at least
/// `C`); see [`Affine`](super::Affine).
pub(super) fn bilinear<const C: usize, const L: usize>(
    source: Pixels<'_>,
    matrix: &[f64; 6],
    target: &mut Frame,
) {
    wide(
        #[inline(always)]
        || each::<C, L, 2>(source, matrix, target, 0, two_by_two),
    );
}

/// As [`bilinear`], with four by four pixels.
pub(super) fn bicubic<const C: usize, const L: usize>(
    source: Pixels<'_>,
    matrix: &[f64; 6],
    target: &mut Frame,
) {
    wide(
        #[inline(always)]
        || each::<C, L, 4>(source, matrix, target, 1, four_by_four),
    );
}

/// `N` by `N` pixels, each with its channels in the first of `L` lanes.
type Neighbourhood<const L: usize, const N: usize> = [[[u8; L]; N]; N];

/// Computes each pixel of `target` that lies inside of `source` from the `N` by `N` pixels around its
/// position. The first of them is `before` pixels before the pixel at or before the position. `mix` receives
/// them and the distance of the position from that pixel.
#[inline(always)]
#[allow(clippy::suboptimal_flops)] // rounded as the reference rounds
fn each<const C: usize, const L: usize, const N: usize>(
    source: Pixels<'_>,
    matrix: &[f64; 6],
    target: &mut Frame,
    before: i32,
    mix: impl Fn(&Neighbourhood<L, N>, f64, f64) -> [u8; L],
) {
    let [a, b, c, d, e, f] = *matrix;
    let (height, width) = (source.height() as f64, source.width() as f64);
    let grid = Grid::<C>::new(source);
    let size = (source.height(), source.width());
    let mut y = -0.5; // steps of 1 are exact
    for into in target.rows_mut() {
        y += 1.0;
        let down = (b * y, e * y);
        let mut x = -0.5;
        for pixel in into.as_chunks_mut::<C>().0 {
            x += 1.0;
            let (x, y) = (a * x + down.0 + c, d * x + down.1 + f);
            let inside = x >= 0.0 && x < width && y >= 0.0 && y < height;
            if !inside {
                continue;
            }
            let (x, y) = (x - 0.5, y - 0.5);
            let (column, row) = (floor(x), floor(y));
            let (dx, dy) = (x - f64::from(column), y - f64::from(row));
            let (row, column) = (row - before, column - before);
            let mixed = match inner::<C, L, N>(grid, size, row, column) {
                Some(window) => mix(&window, dx, dy),
                None => at_side(grid, size, (row, column), &mix, (dx, dy)),
            };
            *pixel = *first(&mixed);
        }
    }
}

/// Returns the pixels from (row, column) on of an image of `size` (rows, columns), if all columns are inside.
/// Rows outside repeat the nearest row inside.
#[inline(always)]
fn inner<const C: usize, const L: usize, const N: usize>(
    grid: Grid<'_, C>,
    size: (usize, usize),
    row: i32,
    column: i32,
) -> Option<Neighbourhood<L, N>> {
    // A negative column exceeds the last one when cast to unsigned.
    let column = column.cast_unsigned() as usize;
    // The lanes after the channels read from the pixel after the last one.
    if column + (N + L - C) > size.1 {
        return None;
    }
    let mut window: Neighbourhood<L, N> = [[[0; L]; N]; N];
    for (row, pixels) in (row..).zip(&mut window) {
        let from = &grid.from(nearest(row, size.0), column)[..(N - 1) * C + L];
        for (by, pixel) in pixels.iter_mut().enumerate() {
            *pixel = *first(&from[by * C..]);
        }
    }
    Some(window)
}

/// Mixes the pixels from (row, column) on; those outside of the image repeat the nearest ones inside.
#[cold]
#[inline(never)] // the loop keeps one inlined copy of the arithmetic, of whole windows
fn at_side<const C: usize, const L: usize, const N: usize>(
    grid: Grid<'_, C>,
    size: (usize, usize),
    (row, column): (i32, i32),
    mix: &impl Fn(&Neighbourhood<L, N>, f64, f64) -> [u8; L],
    (dx, dy): (f64, f64),
) -> [u8; L] {
    let mut window: Neighbourhood<L, N> = [[[0; L]; N]; N];
    for (row, pixels) in (row..).zip(&mut window) {
        let row = nearest(row, size.0);
        for (column, pixel) in (column..).zip(pixels) {
            let column = nearest(column, size.1);
            for (lane, &channel) in pixel.iter_mut().zip(grid.pixel(row, column)) {
                *lane = channel;
            }
        }
    }
    mix(&window, dx, dy)
}

/// Returns the largest integer not above `position`, which must be at least -0.5.
#[inline(always)]
fn floor(position: f64) -> i32 {
    if position < 0.0 {
        return -1;
    }
    // SAFETY: the position lies in an image, and `Affine::check` limits its sides to 2^31 - 1 pixels.
    unsafe { position.to_int_unchecked() }
}

/// Returns the first `N` bytes, which must exist.
#[inline(always)]
fn first<const N: usize>(bytes: &[u8]) -> &[u8; N] {
    bytes.first_chunk().expect("as many bytes")
}

/// Returns the pixel nearest to `position` along a side of `len` pixels.
#[inline(always)]
fn nearest(position: i32, len: usize) -> usize {
    (position.max(0).unsigned_abs() as usize).min(len - 1)
}

#[inline(always)]
fn two_by_two<const L: usize>(window: &Neighbourhood<L, 2>, dx: f64, dy: f64) -> [u8; L] {
    let [[v11, v12], [v21, v22]] = window;
    let upper = line(&doubles(v11), &doubles(v12), dx);
    let lower = line(&doubles(v21), &doubles(v22), dx);
    bytes(&line(&upper, &lower, dy))
}

#[inline(always)]
fn four_by_four<const L: usize>(window: &Neighbourhood<L, 4>, dx: f64, dy: f64) -> [u8; L] {
    let mut across = [[0.0; L]; 4];
    for (across, row) in across.iter_mut().zip(window) {
        let [v1, v2, v3, v4] = row;
        *across = curve(&doubles(v1), &doubles(v2), &doubles(v3), &doubles(v4), dx);
    }
    let [v1, v2, v3, v4] = &across;
    bytes(&curve(v1, v2, v3, v4, dy))
}

#[inline(always)]
#[allow(clippy::suboptimal_flops)] // rounded as the reference rounds
fn line<const L: usize>(v1: &[f64; L], v2: &[f64; L], part: f64) -> [f64; L] {
    let mut mixed = [0.0; L];
    for lane in 0..L {
        mixed[lane] = v1[lane] + (v2[lane] - v1[lane]) * part;
    }
    mixed
}

#[inline(always)]
#[allow(clippy::suboptimal_flops)] // rounded as the reference rounds
fn curve<const L: usize>(
    v1: &[f64; L],
    v2: &[f64; L],
    v3: &[f64; L],
    v4: &[f64; L],
    part: f64,
) -> [f64; L] {
    let mut mixed = [0.0; L];
    for lane in 0..L {
        let [v1, v2, v3, v4] = [v1[lane], v2[lane], v3[lane], v4[lane]];
        let p2 = -v1 + v3;
        let p3 = 2.0 * (v1 - v2) + v3 - v4;
        let p4 = -v1 + v2 - v3 + v4;
        mixed[lane] = v2 + part * (p2 + part * (p3 + part * p4));
    }
    mixed
}

#[inline(always)]
fn doubles<const L: usize>(values: &[u8; L]) -> [f64; L] {
    let mut doubles = [0.0; L];
    for lane in 0..L {
        doubles[lane] = f64::from(values[lane]);
    }
    doubles
}

/// Truncates to bytes, clipping values below 0 and above 255.
#[inline(always)]
fn bytes<const L: usize>(values: &[f64; L]) -> [u8; L] {
    let mut bytes = [0; L];
    for lane in 0..L {
        bytes[lane] = double_to_byte(values[lane]);
    }
    bytes
}
