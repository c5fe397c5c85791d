//! Gives freed memory back to the system.
//!
//! This is the only crate with unsafe code, the declaration of one function of the C library. It must
//! never contain anything that does not need that.

/// Returns pages that the process has freed, but its allocator still holds, to the system. Takes some
/// milliseconds for a hundred megabytes. Does nothing where the C library is not glibc.
pub fn release_freed_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    glibc::malloc_trim(0);
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod glibc {
    use std::ffi::c_int;

    #[expect(
        unsafe_code,
        reason = "there is no other way to ask the allocator for this"
    )]
    // SAFETY: glibc declares `int malloc_trim(size_t)`. It takes the locks of the allocator, keeps every
    // allocation where it is, and may be called by any thread at any time.
    unsafe extern "C" {
        pub(super) safe fn malloc_trim(pad: usize) -> c_int;
    }
}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests {
    use super::release_freed_memory;

    const CHUNK: usize = 1 << 10;
    const CHUNKS: usize = 64 << 10;
    /// One of so many chunks is kept, so that the allocator can't return the others by itself.
    const KEPT_EVERY: usize = 64;

    fn resident_bytes() -> usize {
        let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux has it");
        let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok());
        let pages: usize = pages.expect("the second field is the resident pages");
        pages * 4_096
    }

    #[test]
    fn freed_chunks_between_others_are_given_back() {
        let mut chunks: Vec<Vec<u8>> = (0..CHUNKS).map(|_| vec![1; CHUNK]).collect();
        let mut number = 0;
        chunks.retain(|_| {
            number += 1;
            number % KEPT_EVERY == 0
        });
        let before = resident_bytes();
        release_freed_memory();
        let released = before.saturating_sub(resident_bytes());
        assert!(released > CHUNKS * CHUNK / 2, "{released} bytes");
        assert!(
            chunks
                .iter()
                .all(|chunk| chunk.iter().all(|byte| *byte == 1))
        );
    }
}
