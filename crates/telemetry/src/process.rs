//! What the process uses, as the operating system counts it. Looked at when somebody asks; nothing where there is no
//! `/proc`.

use std::fs;

use rustix::{
    param::{clock_ticks_per_second, page_size},
    process::{Resource, getrlimit},
};

use crate::{
    metrics::{Family, Series, Value},
    names::{self, Metric},
};

/// What the process uses.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Process {
    /// Processor time, user and system, in seconds.
    pub cpu_seconds: f64,
    /// Memory that is there, in bytes.
    pub resident_bytes: u64,
    /// Memory that is mapped, in bytes.
    pub virtual_bytes: u64,
    /// Threads.
    pub threads: u64,
    /// When it began, in seconds since 1970.
    pub started: f64,
    /// Files that are open.
    pub open_files: u64,
    /// Files that may be open; `None` if there is no limit.
    pub files_max: Option<u64>,
}

impl Process {
    /// This process, now.
    pub fn look() -> Option<Process> {
        let stat = fs::read_to_string("/proc/self/stat").ok()?;
        let system = fs::read_to_string("/proc/stat").ok()?;
        let booted = system.lines().find_map(|line| line.strip_prefix("btime "));
        let booted: f64 = booted?.trim().parse().ok()?;
        // The name before the closing parenthesis may hold anything.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
        // As proc(5) numbers them; what follows the name is field 3.
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        let seconds = |ticks: u64| ticks as f64 / clock_ticks_per_second() as f64;
        Some(Process {
            cpu_seconds: seconds(field(14)? + field(15)?),
            threads: field(20)?,
            started: booted + seconds(field(22)?),
            virtual_bytes: field(23)?,
            resident_bytes: field(24)? * page_size() as u64,
            // The one that reads the folder is open, too.
            open_files: (fs::read_dir("/proc/self/fd").ok()?.count() as u64).saturating_sub(1),
            files_max: getrlimit(Resource::Nofile).current,
        })
    }

    /// The same as metrics.
    pub(crate) fn families(&self) -> Vec<Family> {
        let single = |metric: &'static Metric, value: Value| Family {
            metric,
            series: vec![Series {
                labels: Vec::new(),
                value,
            }],
        };
        let gauge = |number: u64| Value::Gauge(number as f64);
        let mut families = vec![
            single(&names::PROCESS_CPU, Value::Total(self.cpu_seconds)),
            single(&names::PROCESS_RESIDENT, gauge(self.resident_bytes)),
            single(&names::PROCESS_VIRTUAL, gauge(self.virtual_bytes)),
            single(&names::PROCESS_THREADS, gauge(self.threads)),
            single(&names::PROCESS_STARTED, Value::Gauge(self.started)),
            single(&names::PROCESS_FILES, gauge(self.open_files)),
        ];
        families.extend(
            self.files_max
                .map(|max| single(&names::PROCESS_FILES_MAX, gauge(max))),
        );
        families
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::time::{SystemTime, UNIX_EPOCH};

    use super::*;

    #[test]
    fn the_process_sees_itself() {
        let before = Process::look().unwrap();
        let _files: Vec<_> = (0..5)
            .map(|_| fs::File::open("/proc/self/stat").unwrap())
            .collect();
        let after = Process::look().unwrap();
        assert!(before.threads >= 1 && before.resident_bytes > 1 << 20);
        assert!(before.virtual_bytes >= before.resident_bytes);
        // Other tests of this process open files, too.
        assert!(after.open_files >= 5, "{after:?}");
        assert!(after.cpu_seconds >= before.cpu_seconds);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let age = now.as_secs_f64() - before.started;
        assert!((-5.0..3_600.0).contains(&age), "{age}");
    }
}
