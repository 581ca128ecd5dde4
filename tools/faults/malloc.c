/* Lets allocations of one library's C code fail; preloaded, and told by `allocations.py` which.
 *
 * Rust in that library has an allocator of its own, which this does not see.
 */

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);

static _Atomic uintptr_t code_start, code_end; /* whose calls count */
static atomic_ulong nth;                       /* the one that fails; 0: none */
static atomic_int lasting;                     /* whether all later ones fail, too */
static atomic_ulong seen, hits;

/* Lets the `first`-th of the calls from here on fail, that come from code between `start` and `end`. */
void fastload_faults_arm(uintptr_t start, uintptr_t end, unsigned long first, int is_lasting) {
  nth = 0;
  seen = hits = 0;
  code_start = start;
  code_end = end;
  lasting = is_lasting;
  nth = first;
}

/* Lets no more calls fail. Returns how many did. */
unsigned long fastload_faults_disarm(void) {
  nth = 0;
  return hits;
}

static int fails(void *caller) {
  const unsigned long first = nth;
  const uintptr_t at = (uintptr_t)caller;
  if (first == 0 || at < code_start || at >= code_end) return 0;
  const unsigned long call = ++seen;
  const int is_hit = call == first || (lasting && call > first);
  if (is_hit) hits++;
  return is_hit;
}

void *malloc(size_t size) {
  return fails(__builtin_return_address(0)) ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
  return fails(__builtin_return_address(0)) ? NULL : __libc_calloc(count, size);
}

void *realloc(void *block, size_t size) {
  return fails(__builtin_return_address(0)) ? NULL : __libc_realloc(block, size);
}
