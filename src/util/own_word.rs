//! Thread-local words that are read by one load.
//!
//! To read a thread-local variable of a shared library takes a call, for which registers must be
//! saved. On x86-64 eight bytes of the initial thread-local block need one load instead
//! (docs/decisions/0002-unmapping.md has the gain). A library that is loaded at run time gets only
//! a small part of that block. So there are only three such words: the thread's pin, the callback
//! that the thread runs, and what the thread has posted of its share.

/// Makes `mod $name` with `get()` and `set()` of a pointer, null at first. `$symbol`: its name for
/// the linker.
macro_rules! own_word {
    ($(#[$doc:meta])* $name:ident, $symbol:literal, $pointed:ty) => {
        $(#[$doc])*
        #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
        mod $name {
            std::arch::global_asm!(
                ".pushsection .tbss,\"awT\",@nobits",
                ".balign 8",
                concat!(".globl ", $symbol),
                concat!(".hidden ", $symbol),
                concat!(".type ", $symbol, ",@object"),
                concat!(".size ", $symbol, ",8"),
                concat!($symbol, ":"),
                ".zero 8",
                ".popsection",
            );

            #[inline(always)]
            pub fn get() -> *const $pointed {
                let word: *const $pointed;
                // SAFETY: reads the variable above through the thread's own segment; nothing else.
                unsafe {
                    std::arch::asm!(
                        concat!("mov {0}, qword ptr [rip + ", $symbol, "@GOTTPOFF]"),
                        "mov {0}, qword ptr fs:[{0}]",
                        out(reg) word,
                        options(nostack, preserves_flags, readonly),
                    );
                }
                word
            }

            #[inline(always)]
            pub fn set(word: *const $pointed) {
                // SAFETY: writes the variable above through the thread's own segment; nothing else.
                unsafe {
                    std::arch::asm!(
                        concat!("mov {0}, qword ptr [rip + ", $symbol, "@GOTTPOFF]"),
                        "mov qword ptr fs:[{0}], {1}",
                        out(reg) _,
                        in(reg) word,
                        options(nostack, preserves_flags),
                    );
                }
            }
        }

        $(#[$doc])*
        #[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
        mod $name {
            use std::cell::Cell;

            thread_local! {
                static WORD: Cell<*const $pointed> = const { Cell::new(std::ptr::null()) };
            }

            #[inline(always)]
            pub fn get() -> *const $pointed {
                WORD.get()
            }

            pub fn set(word: *const $pointed) {
                WORD.set(word);
            }
        }
    };
}
pub(crate) use own_word;
