//! Shared objects: loads others at run time, and finds the folder of this one.

use std::ffi::{CStr, CString, OsStr, c_void};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A loaded object. It is never unloaded, because threads of its own may execute its code.
pub struct SharedObject(*mut c_void);

impl SharedObject {
    /// Loads a file; on an error the text of dlerror().
    pub fn open(path: &Path) -> Result<SharedObject, String> {
        let name = CString::new(path.as_os_str().as_bytes()).map_err(|error| error.to_string())?;
        // SAFETY: the name is terminated. Initialisers of the object run, as its user wants.
        let object = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if object.is_null() {
            // SAFETY: dlerror() answers a text of this thread, or null.
            let why = unsafe { libc::dlerror().as_ref().map(|text| CStr::from_ptr(text)) };
            return Err(why.map_or("not loaded".into(), |why| why.to_string_lossy().into_owned()));
        }
        Ok(SharedObject(object))
    }

    /// The address of a symbol.
    pub fn symbol(&self, name: &CStr) -> Option<*mut c_void> {
        // SAFETY: the object is loaded, the name terminated.
        let address = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        (!address.is_null()).then_some(address)
    }
}

/// Whether an object of this process has a symbol.
pub fn has_symbol(name: &CStr) -> bool {
    // SAFETY: the name is terminated.
    !unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }.is_null()
}

/// The folder of the file that this code lies in.
pub fn own_folder() -> Option<PathBuf> {
    let mut found = MaybeUninit::<libc::Dl_info>::uninit();
    let here: *const c_void = (own_folder as fn() -> Option<PathBuf>) as *const c_void;
    // SAFETY: `found` is filled in where dladdr() answers other than 0; its text is terminated.
    let path = unsafe {
        if libc::dladdr(here, found.as_mut_ptr()) == 0
            || found.assume_init_ref().dli_fname.is_null()
        {
            return None;
        }
        CStr::from_ptr(found.assume_init_ref().dli_fname).to_bytes().to_vec()
    };
    let path = std::fs::canonicalize(OsStr::from_bytes(&path)).ok()?;
    path.parent().map(Path::to_path_buf)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_object_is_refused_by_name() {
        let why = SharedObject::open(Path::new("/nowhere/libnone.so")).err().unwrap();
        assert!(why.contains("libnone.so"), "{why}");
    }

    #[test]
    fn symbols_are_found_and_missed() {
        assert!(has_symbol(c"getenv") && !has_symbol(c"llcl_no_such_symbol"));
        assert!(own_folder().unwrap().is_absolute());
    }
}
