use super::host::log;
use super::*;
use crate::transport::frame::{Class, Frame};
use crate::transport::wire::endpoint::{Endpoint, no_news};
use std::ffi::c_int;
use std::process::Command as Process;
use std::sync::mpsc::channel;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Compiles `tests/modules/NAME` with these options, once: tests of other threads may have loaded
/// what is there.
pub fn built(name: &str, options: &[&str]) -> PathBuf {
    static BUILT: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = root.join("target/tmp/modules").join(std::process::id().to_string());
    std::fs::create_dir_all(&folder).unwrap();
    let out = folder.join(format!("libllcl-{}.so", [&[name], options].concat().join("")));
    let mut all = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    if all.contains(&out) {
        return out;
    }
    let source = root.join("tests/modules").join(name).with_extension("c");
    let compiled = Process::new("cc")
        .args([
            "-std=c99",
            "-Wall",
            "-Wextra",
            "-Wpedantic",
            "-Werror",
            "-shared",
            "-fPIC",
            "-pthread",
        ])
        .args(options)
        .args(["-I", root.join("include").to_str().unwrap(), "-o"])
        .args([&out, &source])
        .status();
    assert!(compiled.unwrap().success());
    all.push(out.clone());
    out
}

fn refused(options: &[&str]) -> String {
    let loaded = Module::load(&built("trivial", options)).and_then(|module| {
        module.probe()?;
        Ok(module)
    });
    let error = loaded.err().expect("it was taken");
    assert_eq!(error.status, Status::ERR_UNSUPPORTED);
    error.message().into()
}

#[test]
fn what_does_not_fit_is_refused_with_a_sentence() {
    for (options, why) in [
        ("-DMAJOR=2", "it is of version 2, this library takes 3"),
        ("-DMISSING=56", "its table has 152 bytes, expected 160 or more"),
        ("-DNO_POST", "its table has no post"),
        ("-DUSELESS", "wire trivial: it is never of use"),
    ] {
        let said = refused(&[options]);
        assert!(said.contains(why), "{said}");
    }
    let other = Module::load(&built("no_module", &[])).err().unwrap();
    assert!(other.message().contains("has no symbol llcl_wire_module"), "{other}");
    let none = Module::load(Path::new("/nowhere/libllcl-none.so")).err().unwrap();
    assert!(none.message().contains("module /nowhere/libllcl-none.so: "), "{none}");
    let absent = Module::find("none").err().unwrap();
    assert!(absent.message().contains("there is no libllcl-none.so in "), "{absent}");
}

/// Frames arrive over modules with a table of the least size, of this library's size, and with
/// fields that this library does not know.
#[test]
fn modules_that_fit_carry_frames() {
    for options in [&[][..], &["-DMISSING=8"], &["-DMISSING=48"], &["-DMORE"]] {
        let module = Module::load(&built("trivial", options)).unwrap();
        assert_eq!(module.names(), ["trivial", "0.2.0", "threads of one process"]);
        // Without its last six functions a table has no describe.
        let line = module.describe();
        assert_eq!(line.is_none(), options.contains(&"-DMISSING=48"), "{line:?}");
        assert!(line.is_none_or(|line| line.starts_with("memory of a rank: ")));
        let (sender, came) = channel();
        let ends = [0, 1].map(|me| {
            let sender = sender.clone();
            let deliver = move |from, _, frame: &Frame| {
                sender.send((me, from, frame.tag, frame.payload.to_vec())).is_ok()
            };
            Endpoint::join(
                (me, 2),
                std::sync::Arc::new(module.open(me, 2, 0).unwrap()),
                4096,
                Box::new(deliver),
                no_news(),
            )
            .unwrap()
        });
        ends[0].connect(1, ends[1].card()).unwrap();
        let sizes = [0, 8, 500, 5000, 65536];
        for (tag, size) in sizes.iter().enumerate() {
            let payload = vec![tag as u8; *size];
            let (id, kind, tag, header, label) = (1, 0, tag as u64, &[][..], 0);
            let frame = Frame { id, kind, tag, header, payload: &payload, label, absent: false };
            assert!(ends[0].put(1, Class::Requests, &frame, 4096));
        }
        let next = |_: &usize| came.recv_timeout(Duration::from_secs(10)).unwrap();
        let mut all: Vec<_> = sizes.iter().map(next).collect();
        all.sort();
        let expected = sizes.iter().enumerate();
        let expected = expected.map(|(tag, size)| (1, 0, tag as u64, vec![tag as u8; *size]));
        assert!(all.into_iter().eq(expected));
        let limit = Instant::now() + Duration::from_secs(10);
        while !ends[0].has_delivered_all() {
            assert!(Instant::now() < limit);
            std::thread::yield_now();
        }
    }
}

#[test]
fn what_a_module_says_is_in_the_error() {
    let module = Module::load(&built("trivial", &[])).unwrap();
    let error = module.open(64, 65, 0).err().unwrap();
    assert_eq!(error.status, Status::ERR_RANGE);
    assert_eq!(error.message(), "wire trivial: open: more than 64 ranks");
    let wire = module.open(0, 2, 0).unwrap();
    let error = wire.lane().unwrap().connect(1, &[1]).unwrap_err();
    assert!(error.message().starts_with("wire trivial: connect: ERR_INVALID"), "{error}");
}

/// An error has the text that the module has logged during the failing call, and no other one.
#[test]
fn a_text_of_a_successful_call_is_not_the_reason_of_a_later_error() {
    let module = Module::load(&built("trivial", &[])).unwrap();
    let handle = Handle::new(module.0);
    let logs = |said: &std::ffi::CStr| log(handle.host.table.host, 0, said.as_ptr());
    let succeeds = || {
        logs(c"4 ports are up");
        Some(0)
    };
    handle.call("connect", succeeds).unwrap();
    let error = handle.call("register", || Some(Status::ERR_SYSTEM.0)).unwrap_err();
    assert_eq!(error.message(), "wire trivial: register: ERR_SYSTEM(-7)");
    let fails = || {
        logs(c"no memory to pin");
        Some(Status::ERR_NO_MEMORY.0)
    };
    let error = handle.call("register", fails).unwrap_err();
    assert_eq!(error.message(), "wire trivial: register: no memory to pin");
    let why = || handle.host.said.lock().unwrap().clone();
    assert_eq!(why(), "", "texts of calls are not the reason of an event");
    // A reason of an event that nobody has read yet stays, also if a call fails meanwhile.
    logs(c"the link is down");
    handle.call("connect", succeeds).unwrap();
    handle.call("register", fails).unwrap_err();
    assert_eq!(why(), "the link is down");
}

/// Two threads register memory at one time, and each gets the text of its own call.
#[test]
fn calls_of_two_threads_have_a_text_each() {
    let module = Module::load(&built("trivial", &[])).unwrap();
    let handle = Handle::new(module.0);
    let both_have_logged = std::sync::Barrier::new(2);
    let register = |said: &std::ffi::CStr| {
        let fails = || {
            log(handle.host.table.host, 0, said.as_ptr());
            both_have_logged.wait();
            Some(Status::ERR_NO_MEMORY.0)
        };
        handle.call("register", fails).unwrap_err().message().to_string()
    };
    let [one, other] = std::thread::scope(|scope| {
        [c"one", c"other"]
            .map(|said| scope.spawn(move || register(said)))
            .map(|it| it.join().unwrap())
    });
    assert_eq!([one, other], ["wire trivial: register: one", "wire trivial: register: other"]);
}

/// MPI's module gives MPI_Finalize the address of each wire that it opens, until it closes it.
#[test]
fn a_wire_of_which_no_endpoint_can_be_made_is_closed() {
    let module = built("trivial", &["-DFRAME=64"]);
    let object = SharedObject::open(&module).unwrap();
    let count = object.symbol(c"trivial_open_wires").unwrap();
    // SAFETY: trivial.c gives the symbol of this name this type.
    let count = unsafe { std::mem::transmute::<*mut c_void, extern "C" fn() -> c_int>(count) };
    let wire = Module::load(&module).unwrap().open(0, 2, 0).unwrap();
    assert_eq!(count(), 1);
    let deliver = Box::new(|_, _, _: &Frame| true);
    let error = Endpoint::join((0, 2), std::sync::Arc::new(wire), 4096, deliver, no_news());
    let error = error.err().unwrap();
    assert!(error.message().contains("frames of at most 64 bytes"), "{error}");
    assert_eq!(count(), 0);
}
