//! Affine maps of images: Pillow's `Image.transform(size, AFFINE, …)`.
//!
//! Owns the source position of each pixel of the result, in the arithmetic that Pillow's `Geometry.c` chooses
//! for the matrix: repeated sums of doubles, 16.16 fixed point, or products. Refuses matrices whose positions
//! overflow.
#![allow(clippy::many_single_char_names)] // a matrix, as in the documents of Pillow

use super::pixels::Grid;
use super::{Frame, Pixels, interpolation};
use crate::{Error, Result};

/// Products and sums of positions up to this stay finite.
const LARGEST: f64 = 1e100;

/// Beyond this, a position does not fit 16.16 fixed point.
const LARGEST_FIXED: f64 = 32768.0;

/// 1 in 16.16 fixed point.
const ONE: f64 = 65536.0;

/// The interpolation between source pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the names are Pillow's
pub enum Interpolation {
    Nearest,
    Bilinear,
    Bicubic,
}

impl Interpolation {
    /// Returns the name that torchvision's `InterpolationMode` has.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nearest => "nearest",
            Self::Bilinear => "bilinear",
            Self::Bicubic => "bicubic",
        }
    }

    /// Finds the one that torchvision's `InterpolationMode` calls `name`.
    pub fn from_name(name: &str) -> Option<Self> {
        let all = [Self::Nearest, Self::Bilinear, Self::Bicubic];
        all.into_iter().find(|each| each.name() == name)
    }
}

/// An affine map from result to source.
#[derive(Clone, Debug, PartialEq)]
pub struct Affine {
    /// (a, b, c, d, e, f): the pixel at (x, y) of the result lies at (ax + by + c, dx + ey + f) of the
    /// source, both measured from the corner of the first pixel.
    pub matrix: [f64; 6],
    /// (rows, columns) of the result.
    pub size: (usize, usize),
    /// The interpolation between source pixels.
    pub interpolation: Interpolation,
    /// The value of each channel for pixels outside of the source.
    pub fill: [u8; 3],
}

impl Affine {
    /// Maps `source` to `target`.
    pub(super) fn run(&self, source: Pixels<'_>, target: &mut Frame) -> Result<()> {
        self.check(source)?;
        target.reset(source.shape().sized(self.size.0, self.size.1))?;
        match source.channels() {
            3 => self.fill_and_map::<3, 4>(source, target, self.fill),
            _ => self.fill_and_map::<1, 1>(source, target, [self.fill[0]]),
        }
        Ok(())
    }

    /// Maps pixels of `C` channels, interpolating on `LANES` numbers at once.
    fn fill_and_map<const C: usize, const LANES: usize>(
        &self,
        source: Pixels<'_>,
        target: &mut Frame,
        fill: [u8; C],
    ) {
        target.pixels_mut().as_chunks_mut().0.fill(fill);
        let matrix = &self.matrix;
        match self.interpolation {
            Interpolation::Bilinear => interpolation::bilinear::<C, LANES>(source, matrix, target),
            Interpolation::Bicubic => interpolation::bicubic::<C, LANES>(source, matrix, target),
            Interpolation::Nearest if self.is_scale() => scale::<C>(source, matrix, target),
            Interpolation::Nearest if self.fits_fixed() => fixed::<C>(source, matrix, target),
            Interpolation::Nearest => stepped::<C>(source, matrix, target),
        }
    }

    /// Returns true if the map keeps rows rows, and columns columns.
    fn is_scale(&self) -> bool {
        self.matrix[1] == 0.0 && self.matrix[3] == 0.0
    }

    /// Returns true if the corners of the result have positions that fit 16.16 fixed point.
    #[allow(clippy::suboptimal_flops)] // rounded as the reference rounds
    fn fits_fixed(&self) -> bool {
        let [a, b, c, d, e, f] = self.matrix;
        let (height, width) = (self.size.0 as f64, self.size.1 as f64);
        let fits = |x: f64, y: f64| {
            (x * a + y * b + c).abs() < LARGEST_FIXED && (x * d + y * e + f).abs() < LARGEST_FIXED
        };
        fits(0.0, 0.0) && fits(width, height) && fits(0.0, height) && fits(width, 0.0)
    }

    fn check(&self, source: Pixels<'_>) -> Result<()> {
        let [a, b, _, d, e, _] = self.matrix;
        let finite = self.matrix.iter().all(|value| value.abs() < LARGEST);
        let by_steps = [a, b, d, e]
            .iter()
            .all(|step| step.abs() < LARGEST_FIXED - 1.0);
        let by_fixed =
            self.interpolation == Interpolation::Nearest && !self.is_scale() && self.fits_fixed();
        let small = i32::try_from(source.height().max(source.width())).is_ok();
        if small && finite && (by_steps || !by_fixed) {
            return Ok(());
        }
        Err(Error::transform(
            format!("map an image by the affine matrix {:?}", self.matrix),
            "its values or the image are too large",
        ))
    }
}

/// Takes the nearest pixels of a map that keeps rows and columns: `ImagingScaleAffine`. Positions accumulate
/// by repeated addition, and so do rounding errors.
#[allow(clippy::suboptimal_flops)] // rounded as the reference rounds
fn scale<const C: usize>(source: Pixels<'_>, matrix: &[f64; 6], target: &mut Frame) {
    let [a, _, c, _, e, f] = *matrix;
    let whole_steps = a - 1.0 == 0.0 && c.fract() == 0.0;
    let mut y = f + e * 0.5;
    for into in target.rows_mut() {
        let into = into.as_chunks_mut::<C>().0;
        if let Some(row) = index(y, source.height()) {
            let row = source.row(row).as_chunks::<C>().0;
            if whole_steps {
                shift(row, c as i64, into);
            } else {
                let mut x = c + a * 0.5;
                for pixel in into {
                    if let Some(column) = index(x, row.len()) {
                        *pixel = row[column];
                    }
                    x += a;
                }
            }
        }
        y += e;
    }
}

/// Takes the nearest pixels in 16.16 fixed point: `affine_fixed`.
#[allow(clippy::suboptimal_flops)] // rounded as the reference rounds
fn fixed<const C: usize>(source: Pixels<'_>, matrix: &[f64; 6], target: &mut Frame) {
    let fix = |value: f64| (value * ONE + 0.5).floor() as i64 as i32; // as in C, 2^31 is -2^31
    let [a, b, c, d, e, f] = *matrix;
    let mut start = (fix(c + a * 0.5 + b * 0.5), fix(f + d * 0.5 + e * 0.5));
    let (across, down) = ((fix(a), fix(d)), (fix(b), fix(e)));
    let (height, width) = (source.height() as u32, source.width() as u32);
    let grid = Grid::<C>::new(source);
    for into in target.rows_mut() {
        let into = into.as_chunks_mut::<C>().0;
        let (mut x, mut y) = start;
        // a negative index exceeds the last one when cast to unsigned
        let row = (y >> 16).cast_unsigned();
        if across == (fix(1.0), 0) {
            if row < height {
                let row = source.row(row as usize).as_chunks::<C>().0;
                shift(row, i64::from(x >> 16), into);
            }
        } else {
            for pixel in into {
                let (column, row) = ((x >> 16).cast_unsigned(), (y >> 16).cast_unsigned());
                if column < width && row < height {
                    *pixel = *grid.pixel(row as usize, column as usize);
                }
                (x, y) = (x.wrapping_add(across.0), y.wrapping_add(across.1));
            }
        }
        start = (start.0.wrapping_add(down.0), start.1.wrapping_add(down.1));
    }
}

/// Takes the nearest pixels at positions that accumulate by repeated addition of doubles:
/// `ImagingTransformAffine` where fixed point overflows.
#[allow(clippy::suboptimal_flops)] // rounded as the reference rounds
fn stepped<const C: usize>(source: Pixels<'_>, matrix: &[f64; 6], target: &mut Frame) {
    let [a, b, c, d, e, f] = *matrix;
    let mut start = (c + b * 0.5 + a * 0.5, f + e * 0.5 + d * 0.5);
    let grid = Grid::<C>::new(source);
    for into in target.rows_mut() {
        let (mut x, mut y) = start;
        for pixel in into.as_chunks_mut::<C>().0 {
            if let (Some(column), Some(row)) = (index(x, source.width()), index(y, source.height()))
            {
                *pixel = *grid.pixel(row, column);
            }
            (x, y) = (x + a, y + d);
        }
        start = (start.0 + b, start.1 + e);
    }
}

/// Fills `into` with the pixels of `row` from `first` on, as far as they exist.
fn shift<const C: usize>(row: &[[u8; C]], first: i64, into: &mut [[u8; C]]) {
    let skipped = first.min(0).unsigned_abs() as usize;
    let first = first.max(0).unsigned_abs() as usize;
    if let (Some(from), Some(into)) = (row.get(first..), into.get_mut(skipped..)) {
        let len = from.len().min(into.len());
        into[..len].copy_from_slice(&from[..len]);
    }
}

/// Returns the pixel at a position along a side of `len` pixels, if it exists.
#[allow(clippy::cast_sign_loss)] // checked before
fn index(position: f64, len: usize) -> Option<usize> {
    (position >= 0.0 && position < len as f64).then_some(position as i64 as usize)
}
