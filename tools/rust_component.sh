#!/bin/sh
# Sees to a component of the Rust toolchain: rust_component.sh SUBCOMMAND COMPONENT
cargo "$1" --version >/dev/null 2>&1 && exit 0
rustup component add "$2" && exit 0
echo "cannot lint: 'cargo $1' is missing and rustup could not add it; install $2" >&2
exit 1
