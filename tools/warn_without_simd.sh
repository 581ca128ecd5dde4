#!/bin/sh
# Says, so that it is seen, that JPEG decoding will be built without SIMD.
cat >&2 <<'END'
******************************************************************************
**  nasm IS MISSING: libjpeg-turbo is built WITHOUT SIMD. The pixels are the **
**  same, but decoding JPEG files takes several times as long.               **
**  Install nasm (Debian: apt-get install nasm) and build again.             **
******************************************************************************
END
