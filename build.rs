//! Builds the part of the JPEG decoder that has to be C against the libjpeg-turbo of
//! `turbojpeg-sys`.

fn main() {
    println!("cargo:rerun-if-changed=src/decode/jpeg.c");
    let includes = std::env::var("DEP_TURBOJPEG_INCLUDE").expect("turbojpeg-sys names its headers");
    cc::Build::new()
        .file("src/decode/jpeg.c")
        .includes(includes.split(','))
        .compile("fastload_jpeg");
}
