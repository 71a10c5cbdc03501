//! How much memory is available.

/// Bytes that the machine's processes may still take without swapping, as the kernel estimates it.
pub fn available_memory() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    parse(&text).unwrap_or_else(|| {
        // SAFETY: sysconf takes a number.
        let [pages, page] = [libc::_SC_AVPHYS_PAGES, libc::_SC_PAGESIZE]
            .map(|name| unsafe { libc::sysconf(name) }.max(0) as u64);
        pages * page
    })
}

fn parse(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib = line.trim().strip_suffix(" kB")?.parse::<u64>().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_line_is_read_and_a_strange_one_is_not() {
        let text = "MemTotal:  9 kB\nMemAvailable:    5 kB\nBuffers: 3 kB\n";
        assert_eq!(parse(text), Some(5 * 1024));
        assert_eq!(parse("MemAvailable: many kB"), None);
        assert_eq!(parse("MemAvailable: 99999999999999999 kB"), None);
        assert_eq!(parse(""), None);
        assert!(available_memory() > 0);
    }
}
