#!/bin/sh
# Sees to what the native build needs and pip cannot bring: cargo, a C compiler, and nasm, the
# assembler of libjpeg-turbo's SIMD code on x86.
set -u

missing() {
    echo "cannot build: $1 is missing; $2" >&2
    exit 1
}

command -v cargo >/dev/null || missing cargo "install Rust's stable toolchain (https://rustup.rs)"
command -v cc >/dev/null || missing "a C compiler (cc)" "Debian: apt-get install gcc"

[ -n "$(sh "$(dirname "$0")/simd_feature.sh")" ] && exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "nasm is missing: installing it with apt-get"
    export DEBIAN_FRONTEND=noninteractive
    if apt-get install -y -q nasm || { apt-get update -q && apt-get install -y -q nasm; }; then
        exit 0
    fi
fi >&2

exec sh "$(dirname "$0")/warn_without_simd.sh"
