//! The centre of an image: torchvision's `center_crop`.

use super::{Action, Pad, Padding, Plan, Region};

/// Adds to `plan` the crop of the central `height` by `width` pixels. Pixels outside of the image are black.
pub(super) fn plan(height: usize, width: usize, plan: &mut Plan) {
    let shape = plan.shape();
    if height > shape.height || width > shape.width {
        let (down, across) = (
            height.saturating_sub(shape.height),
            width.saturating_sub(shape.width),
        );
        plan.push(Action::Pad(Pad {
            left: across / 2,
            top: down / 2,
            right: across.div_ceil(2),
            bottom: down.div_ceil(2),
            mode: Padding::Constant,
            fill: [0; 3],
        }));
    }
    let shape = plan.shape();
    if (shape.height, shape.width) != (height, width) {
        plan.push(Action::Crop(Region {
            top: start(shape.height - height),
            left: start(shape.width - width),
            height,
            width,
        }));
    }
}

/// Returns half of `surplus`, rounding halves to even as Python does.
fn start(surplus: usize) -> usize {
    surplus / 2 + usize::from(surplus % 4 == 3)
}
