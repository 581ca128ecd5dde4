#!/bin/sh
# Prints the cargo feature that makes SIMD in libjpeg-turbo a condition of the build; nothing
# where the build could not meet it (x86 without nasm).
case $(uname -m) in
    x86_64 | i?86) command -v nasm >/dev/null || exit 0 ;;
esac
echo turbojpeg-sys/require-simd
