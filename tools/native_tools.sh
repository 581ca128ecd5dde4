#!/bin/sh
# Sees to what the native build needs and pip cannot bring: cargo of the version that Cargo.toml asks
# for, a C compiler, and nasm, the assembler of libjpeg-turbo's SIMD code on x86.
set -u

root=$(dirname "$0")/..

missing() {
    echo "cannot build: $1 is missing; $2" >&2
    exit 1
}

needed=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$root/Cargo.toml")
found=$(cd "$root" && cargo --version | cut -d ' ' -f 2)
minor=${found#*.}
minor=${minor%%.*}
[ "${minor:-0}" -ge "${needed#*.}" ] ||
    missing "Rust $needed or newer" "cargo is ${found:-not there}: install it from https://rustup.rs, or \`rustup update stable\`"
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
