//! The durations that Argo CD reads and prints: two parsers, and which of them a version has.

use super::version::Version;

/// One second.
pub const SECOND_NS: i64 = 1_000_000_000;
const MINUTE_NS: i64 = 60 * SECOND_NS;
const HOUR_NS: i64 = 60 * MINUTE_NS;
const DAY_NS: i64 = 24 * HOUR_NS;

/// What became of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// So many nanoseconds.
    Ns(i64),
    /// No duration.
    Bad,
    /// The process ends (`log.Fatal`, argoproj/pkg time/time.go).
    Fatal,
}

/// Reads the value of an environment variable as `version` does (argo-cd util/env/env.go).
pub fn of_environment(version: Version, text: &str) -> Parsed {
    let go = || parse_go(text).map_or(Parsed::Bad, Parsed::Ns);
    match (reads_go(version), reads_days(version)) {
        (true, true) => match go() {
            Parsed::Bad => parse_days(text),
            parsed => parsed,
        },
        (true, false) => go(),
        (false, _) => parse_days(text),
    }
}

/// Whether Go's own syntax is read.
fn reads_go(version: Version) -> bool {
    version.at_least(2, 14)
}

/// Whether days are read.
pub fn reads_days(version: Version) -> bool {
    !reads_go(version) || version.since(&[(2, 14, 20), (3, 0, 19), (3, 1, 8), (3, 3, 0)])
}

/// One integer and one unit of `s m h d`; a number beyond 64 bits wraps around when it is multiplied.
pub fn parse_days(text: &str) -> Parsed {
    let Some(unit) = text.chars().last() else { return Parsed::Bad };
    let unit_ns = match unit {
        's' => SECOND_NS,
        'm' => MINUTE_NS,
        'h' => HOUR_NS,
        'd' => DAY_NS,
        _ => return Parsed::Bad,
    };
    let digits = &text[..text.len() - 1];
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Parsed::Bad;
    }
    digits.parse::<i64>().map_or(Parsed::Fatal, |number| Parsed::Ns(number.wrapping_mul(unit_ns)))
}

/// Go's `time.ParseDuration`, in nanoseconds; `None` for what it refuses.
pub fn parse_go(text: &str) -> Option<i64> {
    let (negative, mut rest) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let whole = leading_digits(rest);
        rest = &rest[whole.len()..];
        let fraction = match rest.strip_prefix('.') {
            Some(after) => {
                let digits = leading_digits(after);
                rest = &after[digits.len()..];
                digits
            }
            None => "",
        };
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let unit = &rest[..rest.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(rest.len())];
        rest = &rest[unit.len()..];
        let unit_ns: u64 = match unit {
            "ns" => 1,
            "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
            "ms" => 1_000_000,
            "s" => SECOND_NS as u64,
            "m" => MINUTE_NS as u64,
            "h" => HOUR_NS as u64,
            _ => return None,
        };
        let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
        let part = whole.checked_mul(unit_ns)?.checked_add(fraction_of(fraction, unit_ns))?;
        total = total.checked_add(part).filter(|total| *total <= 1 << 63)?;
    }
    if negative {
        return Some((total as i64).wrapping_neg());
    }
    i64::try_from(total).ok()
}

fn leading_digits(text: &str) -> &str {
    &text[..text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len())]
}

/// The part of a unit that the digits after the point are; what is below a nanosecond is cut off.
fn fraction_of(digits: &str, unit_ns: u64) -> u64 {
    let (mut numerator, mut scale) = (0_u128, 1_u128);
    for digit in digits.bytes().take(18) {
        numerator = numerator * 10 + u128::from(digit - b'0');
        scale *= 10;
    }
    (numerator * u128::from(unit_ns) / scale) as u64
}

/// As Go prints it: `30s`, `3m0s`, `1h0m0s`, `1.5s`, `500ms`, `0s`.
pub fn print(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    let ns = ns.unsigned_abs();
    let (second, minute, hour) = (SECOND_NS as u64, MINUTE_NS as u64, HOUR_NS as u64);
    if ns == 0 {
        return "0s".into();
    }
    if ns < second {
        let (unit_ns, unit) = match ns {
            0..1_000 => (1, "ns"),
            1_000..1_000_000 => (1_000, "\u{b5}s"),
            _ => (1_000_000, "ms"),
        };
        return format!("{sign}{}{unit}", decimal(ns, unit_ns));
    }
    let (hours, minutes, seconds) = (ns / hour, ns % hour / minute, decimal(ns % minute, second));
    match (hours, minutes) {
        (0, 0) => format!("{sign}{seconds}s"),
        (0, _) => format!("{sign}{minutes}m{seconds}s"),
        _ => format!("{sign}{hours}h{minutes}m{seconds}s"),
    }
}

fn decimal(value: u64, unit: u64) -> String {
    let fraction = format!("{:0width$}", value % unit, width = unit.ilog10() as usize);
    let fraction = fraction.trim_end_matches('0');
    match (value / unit, if unit == 1 { "" } else { fraction }) {
        (whole, "") => whole.to_string(),
        (whole, fraction) => format!("{whole}.{fraction}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Text, what Go 1.26 makes of it in nanoseconds, and how it prints that.
    const BY_GO: &[(&str, Option<i64>, &str)] = &[
        ("3m", Some(180000000000), "3m0s"),
        ("180s", Some(180000000000), "3m0s"),
        ("0s", Some(0), "0s"),
        ("0", Some(0), "0s"),
        ("2m30s", Some(150000000000), "2m30s"),
        ("1d", None, ""),
        ("1d12h", None, ""),
        ("180", None, ""),
        (" 3m", None, ""),
        ("3m\n", None, ""),
        ("-1s", Some(-1000000000), "-1s"),
        ("1.5h", Some(5400000000000), "1h30m0s"),
        ("500ms", Some(500000000), "500ms"),
        ("1500ms", Some(1500000000), "1.5s"),
        ("90s", Some(90000000000), "1m30s"),
        ("876000h", Some(3153600000000000000), "876000h0m0s"),
        ("1h2m3.004s", Some(3723004000000), "1h2m3.004s"),
        ("100us", Some(100000), "100\u{b5}s"),
        ("1\u{b5}s", Some(1000), "1\u{b5}s"),
        ("5ns", Some(5), "5ns"),
        (".5s", Some(500000000), "500ms"),
        ("1.s", Some(1000000000), "1s"),
        (".", None, ""),
        ("s", None, ""),
        ("-0", Some(0), "0s"),
        ("+", None, ""),
        ("9223372036854775807ns", Some(9223372036854775807), "2562047h47m16.854775807s"),
        ("9223372036854775808ns", None, ""),
        ("-9223372036854775808ns", Some(-9223372036854775808), "-2562047h47m16.854775808s"),
        ("2562047h47m16.854775807s", Some(9223372036854775807), "2562047h47m16.854775807s"),
        ("2562047h47m16.854775808s", None, ""),
        ("0.000000000000000000001h", Some(0), "0s"),
        ("3.14159265358979323846m", Some(188495559215), "3m8.495559215s"),
        ("1h1h", Some(7200000000000), "2h0m0s"),
        ("1m-1s", None, ""),
        ("01s", Some(1000000000), "1s"),
        ("", None, ""),
        ("1H", None, ""),
        ("1.0000000000000000000000005s", Some(1000000000), "1s"),
        ("0.1ms", Some(100000), "100\u{b5}s"),
        ("1.5us", Some(1500), "1.5\u{b5}s"),
    ];

    #[test]
    fn durations_are_read_and_printed_as_go_does() {
        for (text, ns, printed) in BY_GO {
            assert_eq!(parse_go(text), *ns, "{text:?}");
            if let Some(ns) = ns {
                assert_eq!(print(*ns), *printed, "{text:?}");
            }
        }
    }

    /// argo-cd util/env/env.go at each of the versions.
    #[test]
    fn what_is_accepted_depends_on_the_version() {
        let accepts = |version: &'static str| {
            ["3m", "180s", "0s", "0", "2m30s", "1d", "1d12h", "180"]
                .map(|text| matches!(of_environment(Version::of_tag(version), text), Parsed::Ns(_)))
        };
        let old = [true, true, true, false, false, true, false, false];
        let middle = [true, true, true, true, true, false, false, false];
        let new = [true, true, true, true, true, true, false, false];
        for (version, expected) in [
            ("v2.8.0", old),
            ("v2.13.9", old),
            ("v2.14.0", middle),
            ("v2.14.19", middle),
            ("v3.0.18", middle),
            ("v3.1.7", middle),
            ("v3.2.12", middle),
            ("v2.14.20", new),
            ("v3.0.19", new),
            ("v3.1.8", new),
            ("v3.3.0", new),
            ("v3.5.1", new),
        ] {
            assert_eq!(accepts(version), expected, "{version}");
        }
    }

    #[test]
    fn digits_beyond_64_bits_end_the_process_where_days_are_read() {
        let huge = "9223372036854775808s";
        let read = |version| of_environment(Version::of_tag(version), huge);
        assert_eq!(["v2.8.0", "v3.2.12", "v3.5.1"].map(read), [Parsed::Fatal, Parsed::Bad, Parsed::Fatal]);
    }
}
