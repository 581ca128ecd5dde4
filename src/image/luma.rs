//! The library whose arithmetic converts an image to grey.

use super::luma_torch::Sum;

/// The weights of colours, named by the function that uses them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Luma {
    /// Pillow's `convert("L")`.
    Pillow,
    /// torchvision's, for tensors of bytes.
    Torch(Sum),
}

impl Luma {
    /// Returns the variant that Python calls `name`.
    pub fn from_name(name: &str) -> Option<Self> {
        [
            Self::Pillow,
            Self::Torch(Sum::Rounded),
            Self::Torch(Sum::Fused),
        ]
        .into_iter()
        .find(|luma| luma.name() == name)
    }

    /// Returns its name in Python.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pillow => "pillow",
            Self::Torch(Sum::Rounded) => "torch",
            Self::Torch(Sum::Fused) => "torch_fused",
        }
    }
}
