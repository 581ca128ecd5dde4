//! The last step: pixels into a sample's slot, as bytes or as normalised floats.

use super::Frame;

/// The float of each byte, per channel.
///
/// Each entry is made by the operations of torchvision in their order and in single precision, so
/// that a table look-up is the whole chain, bit for bit.
#[derive(Clone, Debug)]
pub(super) struct Tables([[f32; 256]; 3]);

impl Tables {
    /// Makes the tables of `ToTensor`: a byte divided by 255.
    pub(super) fn to_tensor() -> Box<Self> {
        Box::new(Self([std::array::from_fn(|byte| byte as f32 / 255.0); 3]))
    }

    /// Appends `Normalize`: less `mean`, divided by `std`.
    pub(super) fn normalize(&mut self, mean: [f32; 3], std: [f32; 3]) {
        for (table, (mean, std)) in self.0.iter_mut().zip(mean.into_iter().zip(std)) {
            for value in table {
                *value = (*value - mean) / std;
            }
        }
    }

    /// Writes `frame`, `(H, W, 3)`, as float32 `(3, H, W)` into `out`, which has exactly its size.
    pub(super) fn write(&self, frame: &Frame, out: &mut [u8]) {
        let plane = frame.height() * frame.width() * size_of::<f32>();
        let (red, rest) = out.split_at_mut(plane);
        let (green, blue) = rest.split_at_mut(plane);
        let [reds, greens, blues] = &self.0;
        let planes = red
            .chunks_exact_mut(4)
            .zip(green.chunks_exact_mut(4))
            .zip(blue.chunks_exact_mut(4));
        for (pixel, ((red, green), blue)) in frame.pixels().chunks_exact(3).zip(planes) {
            red.copy_from_slice(&reds[usize::from(pixel[0])].to_ne_bytes());
            green.copy_from_slice(&greens[usize::from(pixel[1])].to_ne_bytes());
            blue.copy_from_slice(&blues[usize::from(pixel[2])].to_ne_bytes());
        }
    }
}
