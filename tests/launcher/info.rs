//! `llcl-info` as a user sees it.

use super::*;
use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;

#[test]
fn llcl_info_says_why_the_wire_that_is_asked_for_cannot_be_opened() {
    for (wire, why) in
        [("mpi", "neither Open MPI nor MPICH"), ("nothing", "there is no libllcl-nothing.so")]
    {
        let mut info = Command::new(env!("CARGO_BIN_EXE_llcl-info"));
        for variable in ["PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "LLCL_MODULES"] {
            info.env_remove(variable);
        }
        let output = info.env("LLCL_TRANSPORT", wire).output().unwrap();
        assert!(output.status.success(), "{wire}: {}", text(&output.stderr));
        let said = format!("LLCL_TRANSPORT is {wire}: ");
        let said =
            text(&output.stdout).lines().any(|line| line.contains(&said) && line.contains(why));
        assert!(said, "{wire}: {}", text(&output.stdout));
    }
}

#[test]
fn llcl_info_says_when_its_output_is_lost_and_ends_quietly_when_its_reader_has_gone() {
    let info = |target: Stdio| {
        let mut info = Command::new(env!("CARGO_BIN_EXE_llcl-info"));
        info.arg("-a").stdout(target).output().unwrap()
    };
    let full = info(File::options().write(true).open("/dev/full").unwrap().into());
    assert_eq!(full.status.code(), Some(1));
    assert!(text(&full.stderr).contains("cannot be written: No space left"), "{full:?}");
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let unread = info(writer.into());
    assert_eq!((unread.status.code(), text(&unread.stderr)), (Some(0), String::new()));
}

/// LLCL_MODULES names folders whose files the library loads into the process.
#[test]
fn a_process_with_other_rights_than_its_caller_takes_no_modules_from_it() {
    // SAFETY: geteuid takes nothing and cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        return eprintln!("skipped: only root can make a program of another user");
    }
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR")).join("other_rights");
    let _ = std::fs::remove_dir_all(&scratch);
    std::fs::create_dir(&scratch).unwrap();
    std::fs::write(scratch.join("libllcl-strange.so"), "").unwrap();
    let copy = scratch.join("llcl-info");
    std::fs::copy(env!("CARGO_BIN_EXE_llcl-info"), &copy).unwrap();
    let lists_it = || {
        let output = Command::new(&copy).env("LLCL_MODULES", &scratch).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        text(&output.stdout).contains("libllcl-strange.so")
    };
    assert!(lists_it());
    chown(&copy, Some(65534), None).unwrap();
    std::fs::set_permissions(&copy, Permissions::from_mode(0o4755)).unwrap();
    assert!(!lists_it());
}
