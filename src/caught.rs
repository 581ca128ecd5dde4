//! Turns panics of other crates' code into errors: damaged files can cause them.
//!
//! Owns the panic hook, which is silent for these and passes all others on.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

use crate::fork::undivided;

thread_local! {
    /// True if a panic of this thread is an error.
    static CAUGHT: Cell<bool> = const { Cell::new(false) };
}

/// Restores the flag at the end, also after a panic.
struct Caught {
    before: bool,
}

impl Caught {
    fn begin() -> Caught {
        let before = CAUGHT.replace(true);
        Caught { before }
    }
}

impl Drop for Caught {
    fn drop(&mut self) {
        CAUGHT.set(self.before);
    }
}

/// Runs `foreign`; if it panics, returns the panic's message and prints nothing.
pub(crate) fn caught<T>(foreign: impl FnOnce() -> T) -> Result<T, Box<str>> {
    static HOOK: Once = Once::new();
    if !HOOK.is_completed() {
        undivided(|| HOOK.call_once(install));
    }
    let begun = Caught::begin();
    let ran = catch_unwind(AssertUnwindSafe(foreign));
    drop(begun);
    ran.map_err(|panic| words(&*panic).unwrap_or("it stopped").into())
}

/// Returns the message of a panic.
pub(crate) fn words(panic: &(dyn Any + Send)) -> Option<&str> {
    let words = panic.downcast_ref::<String>().map(String::as_str);
    words.or_else(|| panic.downcast_ref().copied())
}

fn install() {
    let others = take_hook();
    set_hook(Box::new(move |panic| {
        if !CAUGHT.try_with(Cell::get).unwrap_or(false) {
            others(panic);
        }
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_its_words_and_what_comes_later_is_no_longer_caught() {
        assert_eq!(caught(|| 3), Ok(3));
        assert_eq!(caught(|| -> u8 { panic!("torn") }), Err("torn".into()));
        let inner = caught(|| (caught(|| -> u8 { panic!("a{}", 1) }), CAUGHT.get()));
        assert_eq!(inner, Ok((Err("a1".into()), true)));
        assert!(!CAUGHT.get());
    }
}
