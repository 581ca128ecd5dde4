//! Builds the part of the JPEG decoder that has to be C against the libjpeg-turbo of `turbojpeg-sys`, and
//! says by the condition `memfd` whether processes share memory and send pieces as only Linux can.

use std::env::var;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=src/decode/jpeg.c");
    println!("cargo::rustc-check-cfg=cfg(memfd)");
    let is_linux = var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux");
    if is_linux && var("CARGO_FEATURE_POSIX_SHM").is_err() {
        println!("cargo::rustc-cfg=memfd");
    }
    if var("CARGO_CFG_LOOM").is_ok() {
        return; // the model checker decodes nothing
    }
    let includes = var("DEP_TURBOJPEG_INCLUDE").expect("turbojpeg-sys names its headers");
    cc::Build::new()
        .file("src/decode/jpeg.c")
        .includes(includes.split(','))
        .compile("fastload_jpeg");
}
