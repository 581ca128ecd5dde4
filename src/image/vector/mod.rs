//! Vector instructions of this architecture, for the passes of a resize.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "aarch64")]
mod neon;

#[cfg(target_arch = "x86_64")]
pub(super) use avx2::*;
#[cfg(target_arch = "aarch64")]
pub(super) use neon::*;

/// The passes of [`Weights`](super::weights::Weights) in vector code.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(super) trait VectorPasses {
    /// Scales [`ROWS`] rows of RGB; otherwise as [`across_row`](super::weights::Weights::across_row). `source` is
    /// the bytes and how many lie between the starts of two rows; it extends at least
    /// [`SLACK_BYTES`](super::frame::SLACK_BYTES) beyond the last pixel.
    fn across_rows(
        &self,
        vector: Vector,
        source: (&[u8], usize),
        left: usize,
        targets: [&mut [u8]; ROWS],
    );

    /// As [`down_row`](super::weights::Weights::down_row), for rows of at least [`LANES`] bytes.
    fn down_row_wide(
        &self,
        vector: Vector,
        source: &[u8],
        stride: usize,
        output: usize,
        target: &mut [u8],
    );
}

/// Other architectures have scalar code only.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) trait VectorPasses {}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
impl<W> VectorPasses for W {}
