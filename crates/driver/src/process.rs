//! What the system counts of this process, as far as `/proc` says it.

use std::fs;
use std::time::Duration;

/// What the kernel's times are counted in, to programs: a hundredth of a second on every platform of Linux that Rust has.
const TICK_MILLIS: u64 = 10;

/// What is known of this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Process {
    /// Its time on a processor, its own and that of the kernel for it.
    pub(crate) cpu: Option<Duration>,
    /// When it began, since 1970.
    pub(crate) began: Option<Duration>,
    /// The bytes of its memory that are there.
    pub(crate) resident: Option<u64>,
    /// Its open file descriptors.
    pub(crate) files: Option<usize>,
}

impl Process {
    /// As it is now.
    pub(crate) fn now() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let mut process = Self::read(
            &read("/proc/self/stat"),
            &read("/proc/self/status"),
            &read("/proc/stat"),
        );
        // One of them reads the folder.
        process.files = fs::read_dir("/proc/self/fd")
            .map(|files| files.count().saturating_sub(1))
            .ok();
        process
    }

    /// What these files say: of the process, in two forms, and of the system.
    fn read(stat: &str, status: &str, system: &str) -> Self {
        // The name of the program, in brackets, may have spaces and brackets in it. The third field comes after it.
        let (_, fields) = stat.rsplit_once(')').unwrap_or_default();
        let field = |number: usize| {
            let field = fields.split_ascii_whitespace().nth(number.checked_sub(3)?)?;
            let ticks: u64 = field.parse().ok()?;
            Some(Duration::from_millis(ticks.checked_mul(TICK_MILLIS)?))
        };
        let value = |text: &str, name: &str| {
            let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
            rest.split_ascii_whitespace().next()?.parse::<u64>().ok()
        };
        let booted = value(system, "btime ").map(Duration::from_secs);
        Self {
            cpu: field(14).zip(field(15)).map(|(own, kernel)| own + kernel),
            began: booted.zip(field(22)).map(|(booted, after)| booted + after),
            resident: value(status, "VmRSS:").map(|kilobytes| kilobytes * 1024),
            files: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_system_says_of_a_process() {
        let stat =
            "4242 (a ) b) S 1 4242 4242 0 -1 4194560 1000 0 5 0 1234 66 0 0 20 0 1 0 4294968000 11673600 1700 184";
        let status = "Name:\ta ) b\nVmPeak:\t   99999 kB\nVmRSS:\t    6800 kB\nThreads:\t1\n";
        let system = "cpu  1 2 3\nintr 5 btime 7\nbtime 1752319370\nprocesses 9\n";
        let expected = Process {
            cpu: Some(Duration::from_secs(13)),
            began: Some(Duration::from_secs(1_795_269_050)),
            resident: Some(6800 * 1024),
            files: None,
        };
        assert_eq!(Process::read(stat, status, system), expected);
        assert_eq!(Process::read("", "", ""), Process::default());
        assert_eq!(Process::read("1 (x) S", "VmRSS:", "btime"), Process::default());
    }

    #[test]
    fn this_process_is_known() {
        let Process {
            cpu,
            began,
            resident,
            files,
        } = Process::now();
        assert!(
            cpu.is_some() && resident.is_some_and(|bytes| bytes > 1 << 20),
            "{cpu:?} {resident:?}"
        );
        assert!(files.is_some_and(|files| files >= 3), "{files:?}");
        let now = crate::logger::since_1970();
        let age = now.checked_sub(began.unwrap_or_default());
        assert!(age.is_some_and(|age| age < Duration::from_secs(86_400)), "{age:?}");
    }
}
