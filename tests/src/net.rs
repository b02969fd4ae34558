//! Addresses of the loopback network that no other test has at the same time.

use std::sync::atomic::{AtomicU8, Ordering};

/// The first three numbers of 254 addresses: other ones for each caller, and for each test
/// program that runs at the same time.
///
/// # Panics
///
/// If a test program asks for more than there are.
pub fn own_net() -> String {
    static LAST: AtomicU8 = AtomicU8::new(0);
    let number = LAST.fetch_add(1, Ordering::Relaxed) + 1;
    assert!(number < u8::MAX, "too many networks for one test program");
    format!("127.{}.{number}", 64 + std::process::id() % 128)
}
