//! Tests of parsing and formatting of sizes, rates and times.

use proptest::prelude::*;

use super::*;

#[test]
fn sizes_are_read_exactly() {
    for (text, bytes) in [
        ("0", 0),
        ("512", 512),
        ("7B", 7),
        ("64KiB", 65_536),
        ("64kib", 65_536),
        ("1MiB", 1 << 20),
        (" 3 GiB ", 3 << 30),
        ("2TiB", 2 << 40),
        ("10kB", 10_000),
        ("5MB", 5_000_000),
        ("1.5MiB", 3 << 19),
        ("1.50 mib", 3 << 19),
        ("0.001kB", 1),
        ("2.0", 2),
        ("1.000000000000000000000000MB", 1_000_000),
        ("18446744073709551615", u64::MAX),
        ("15.5EiB", 31 << 59),
    ] {
        assert_eq!(parse_bytes(text), Ok(bytes), "{text}");
    }
}

#[test]
fn what_is_no_size_is_refused_with_a_reason() {
    for (text, reason) in [
        ("", "is not a size"),
        ("KiB", "is not a size"),
        ("-1", "is not a size"),
        (".5KiB", "is not a size"),
        ("5.KiB", "is not a size"),
        ("1.2.3", "is not a size"),
        ("5 K", "unknown unit `K`; the units are B, KiB"),
        ("1 000", "unknown unit `000`"),
        ("1e6", "unknown unit `e6`"),
        ("0.5", "not a whole number of bytes"),
        ("1.3KiB", "not a whole number of bytes"),
        ("0.1234567890123456789EB", "more than 18 decimals"),
        ("18446744073709551616", "is more than 2^64-1 bytes"),
        ("16EiB", "is more than 2^64-1 bytes"),
        (
            "999999999999999999999999999999",
            "is more than 2^64-1 bytes",
        ),
    ] {
        let message = parse_bytes(text).unwrap_err();
        assert!(message.contains(reason), "{text}: {message}");
        assert!(message.starts_with(&format!("`{text}`")), "{message}");
    }
}

#[test]
fn bytes_print_with_at_most_four_digits() {
    for (bytes, text) in [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (65_536, "64 KiB"),
        (3 << 19, "1.5 MiB"),
        (1_000_000, "976.6 KiB"),
        ((1 << 20) - 1, "1 MiB"),
        (10_239_999, "9.766 MiB"),
        (u64::MAX, "16 EiB"),
    ] {
        assert_eq!(Bytes(bytes).to_string(), text);
    }
    assert_eq!(format!("{:>8}", Bytes(5)), "     5 B");
}

#[test]
fn times_and_rates_print_with_three_digits() {
    for (nanos, text) in [
        (0, "0 ns"),
        (5, "5 ns"),
        (850, "850 ns"),
        (412_000, "412 us"),
        (999_499, "999 us"),
        (999_500, "1.00 ms"),
        (9_999_000, "10.0 ms"),
        (1_340_000, "1.34 ms"),
        (2_100_000_000, "2.10 s"),
        (599_499_999_999, "599 s"),
        (599_500_000_000, "10m"),
        (10_360_000_000_000, "2h 52m"),
        (1_234_567_000_000_000, "14d 6h"),
        (u64::MAX, "213503d 23h"),
    ] {
        assert_eq!(Nanos(nanos).to_string(), text);
    }
    let rate = |bytes, nanos| Rate { bytes, nanos }.to_string();
    assert_eq!(rate(1_210_000_000, 1_000_000_000), "1.21 GB/s");
    assert_eq!(rate(1, 3_000_000_000), "0.33 B/s");
    assert_eq!(rate(1 << 20, 1_000_000), "1.05 GB/s");
    assert_eq!(rate(u64::MAX, u64::MAX), "1.00 GB/s");
    assert_eq!(rate(7, 0), "-");
}

#[test]
fn rates_and_times_are_read_and_printed_exactly() {
    for (text, bits, printed) in [
        ("1kbit", 1_000, "1kbit"),
        ("200mbit", 200_000_000, "200mbit"),
        ("1500 Mbit", 1_500_000_000, "1.5gbit"),
        ("0.333333333gbit", 333_333_333, "333.333333mbit"),
    ] {
        assert_eq!(parse_rate(text), Ok(bits), "{text}");
        assert_eq!(BitRate(bits).to_string(), printed);
    }
    for (text, nanos, printed) in [
        ("0ns", 0, "0ns"),
        ("7us", 7_000, "7us"),
        ("0.25ms", 250_000, "250us"),
        ("1.000000001s", 1_000_000_001, "1.000000001s"),
    ] {
        assert_eq!(parse_time(text), Ok(nanos), "{text}");
        assert_eq!(ExactTime(nanos).to_string(), printed);
    }
    for row in "
        fast is not a rate: write a number and a unit, like 200mbit
        200 has no unit; the units are kbit, mbit, gbit
        1MB: unknown unit `MB`; the units are kbit, mbit, gbit
        0.0001kbit is not a whole number of bits a second
        -1ms is not a time: write a number and a unit, like 5ms
        5 has no unit; the units are ns, us, ms, s
        0.5ns is not a whole number of nanoseconds
        99999999999999999s is more than 2^64-1 nanoseconds
    "
    .trim()
    .lines()
    {
        let row = row.trim();
        let text = row.split([' ', ':']).next().unwrap();
        let parsed = if row.contains("bit") {
            parse_rate(text)
        } else {
            parse_time(text)
        };
        assert_eq!(parsed, Err(row.replacen(text, &format!("`{text}`"), 1)));
    }
}

#[test]
fn seconds_have_their_two_largest_units() {
    for (seconds, text) in [
        (0, "0s"),
        (59, "59s"),
        (125, "2m 5s"),
        (3_605, "1h 5s"),
        (93_784, "1d 2h"),
    ] {
        assert_eq!(Seconds(seconds).to_string(), text);
    }
}

proptest! {
    #[test]
    fn a_printed_rate_is_itself(value: u64) {
        prop_assert_eq!(parse_rate(&BitRate(value).to_string()), Ok(value));
        prop_assert_eq!(parse_time(&ExactTime(value).to_string()), Ok(value));
    }

    #[test]
    fn anything_is_a_size_or_an_error(text: String) {
        let _ = parse_bytes(&text);
    }

    #[test]
    fn a_printed_size_is_nearly_itself(bytes: u64, nanos: u64) {
        let text = Bytes(bytes).to_string();
        let digits = text.bytes().filter(u8::is_ascii_digit).count();
        prop_assert!(digits <= 4, "{}", text);
        // A rounded size may not be a whole number of bytes, or may not fit (16 EiB).
        if let Ok(back) = parse_bytes(&text) {
            prop_assert!(back.abs_diff(bytes) <= bytes / 1000, "{}", text);
        }
        let _ = Rate { bytes, nanos }.to_string();
    }
}
