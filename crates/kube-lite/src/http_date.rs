//! The `Date` header of an answer, by which the clocks of both ends are compared.

use super::certificate::since_1970_of;

/// The time in an HTTP `Date` header, `Tue, 24 Nov 2026 23:50:48 GMT`, in seconds since 1970.
pub(super) fn seconds_of_date(header: &str) -> Option<u64> {
    const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let part = |from: usize, to: usize| header.get(from..to);
    let month = MONTHS.find(part(8, 11)?)? / 3 + 1;
    let (year, day, time) = (part(12, 16)?, part(5, 7)?, part(17, 25)?);
    since_1970_of(&format!("{year}-{month:02}-{day}T{time}Z"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_times_of_headers() {
        for (header, expected) in [
            ("Thu, 01 Jan 1970 00:00:00 GMT", Some(0)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(784_111_777)),
            ("Thu, 29 Feb 2024 00:00:00 GMT", Some(1_709_164_800)),
            ("Sat, 21 Nov 2026 14:03:07 GMT", Some(1_795_269_787)),
            ("Sun, 06 Foo 1994 08:49:37 GMT", None),
            ("now", None),
            ("ä, äää ä", None),
            ("", None),
        ] {
            assert_eq!(seconds_of_date(header), expected, "{header}");
        }
    }
}
