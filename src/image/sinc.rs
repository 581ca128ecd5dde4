//! The sinc function, which Lanczos filters are products of.

use std::f64::consts::PI;

/// Returns sin(πx) / πx.
pub(super) fn sinc(x: f64) -> f64 {
    if x == 0.0 {
        return 1.0;
    }
    let x = x * PI;
    x.sin() / x
}
