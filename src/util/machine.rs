//! Which machine this is.

/// The kernel's name for the time since this machine was started; empty where it tells none.
pub fn boot_id() -> Vec<u8> {
    std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default()
}
