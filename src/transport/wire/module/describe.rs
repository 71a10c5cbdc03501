//! What a module says of its wires, for `llcl-info`.

use super::{Module, text};
use std::ffi::c_char;

impl Module {
    /// The module's line about its wires; None: it has none.
    pub fn describe(self) -> Option<String> {
        let mut line = [0 as c_char; 512];
        let (describe, size) = (self.0.describe?, line.len() - 1);
        // SAFETY: no wire is passed; the text lives through the call, and its last byte stays 0.
        let status = unsafe { describe(std::ptr::null_mut(), line.as_mut_ptr(), size) };
        // SAFETY: as above.
        (status == 0).then(|| unsafe { text(line.as_ptr()) })
    }
}
