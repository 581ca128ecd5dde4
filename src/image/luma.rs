//! Whose arithmetic makes an image grey.

use super::luma_torch::Sum;

/// How a colour is weighed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Luma {
    /// Pillow's `convert("L")`.
    Pillow,
    /// torchvision's, for tensors of bytes.
    Torch(Sum),
}

impl Luma {
    /// Finds what the border calls `name`.
    pub fn from_name(name: &str) -> Option<Self> {
        [
            Self::Pillow,
            Self::Torch(Sum::Rounded),
            Self::Torch(Sum::Fused),
        ]
        .into_iter()
        .find(|luma| luma.name() == name)
    }

    /// Returns its name at the border.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pillow => "pillow",
            Self::Torch(Sum::Rounded) => "torch",
            Self::Torch(Sum::Fused) => "torch_fused",
        }
    }
}
