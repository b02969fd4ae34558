//! Addresses of the loopback network that no other test uses at the same time.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU8, Ordering};

/// The port whose listener claims a part of the loopback network.
const CLAIM_PORT: u16 = 7299;

/// The second number of this test program's addresses, and the listener that keeps other test
/// programs away from them.
static CLAIMED: LazyLock<(u8, TcpListener)> = LazyLock::new(|| {
    let mut numbers = 64..192;
    let claimed = numbers.find_map(|number| {
        let listener = TcpListener::bind((Ipv4Addr::new(127, number, 0, 1), CLAIM_PORT));
        listener.ok().map(|listener| (number, listener))
    });
    claimed.expect("fewer than 128 test programs run at the same time")
});

/// Returns the first three numbers of 254 addresses: other ones for each caller, and for each test
/// program that runs at the same time.
pub fn own_net() -> String {
    static LAST: AtomicU8 = AtomicU8::new(0);
    let number = LAST.fetch_add(1, Ordering::Relaxed) + 1;
    assert!(number < u8::MAX, "too many networks for one test program");
    format!("127.{}.{number}", CLAIMED.0)
}

/// Returns sections of a cluster file for PEs `a` at 127.0.1.1, `b` at 127.0.2.1 and so on, each with
/// these further keys.
pub fn hosts(keys: &[&str]) -> String {
    let pe = |((name, number), keys): ((char, u32), &&str)| {
        format!("[[pe]]\nname = \"{name}\"\naddress = \"127.0.{number}.1\"\n{keys}\n")
    };
    ('a'..).zip(1..).zip(keys).map(pe).collect()
}
