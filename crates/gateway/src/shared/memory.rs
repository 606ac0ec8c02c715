//! How much memory requests may make the process hold, all of them together: `limits.max_memory`.
//!
//! By default half of what the process may have: of its control group's limit (version 2 or 1), of its limit on address
//! space, and of the machine's memory the smallest counts. The other half is for what is there whatever is asked (the
//! supergraph, plans that are kept, buffers of connections) and for what the allocator does not give back at once. What
//! is counted is described in [`ogive_base::memory`].
//!
//! Where there is no `/proc`, Linux tells the machine's memory by a system call. Of systems that do not tell, the process is
//! taken to have [`UNKNOWN`]: no limit at all would be none where nobody has looked.

use std::{fs, path::Path};

use ogive_config::Config;

/// Least limit that is derived.
const LEAST: u64 = 32 << 20;
/// What the process may have where the system does not tell.
const UNKNOWN: u64 = 2 << 30;
/// What control groups without a limit say in version 1 is more.
const MOST: u64 = 1 << 48;

/// The limit that a configuration asks for.
pub(crate) fn limit(config: &Config) -> usize {
    match config.limits.max_memory {
        Some(size) => size.0,
        None => {
            let available = available(Path::new("/")).or_else(of_machine);
            usize::try_from(derived(available)).unwrap_or(usize::MAX)
        }
    }
}

/// The default where the process may have so much.
fn derived(available: Option<u64>) -> u64 {
    (available.unwrap_or(UNKNOWN) / 2).max(LEAST)
}

/// The machine's memory, as the system says without files.
#[cfg(target_os = "linux")]
fn of_machine() -> Option<u64> {
    let found = rustix::system::sysinfo();
    let bytes = (found.totalram as u64).checked_mul(u64::from(found.mem_unit))?;
    (bytes > 0).then_some(bytes)
}
#[cfg(not(target_os = "linux"))]
fn of_machine() -> Option<u64> {
    None
}

/// What the process may have, as the files below `root` say.
fn available(root: &Path) -> Option<u64> {
    let read = |path: &str| fs::read_to_string(root.join(path)).ok();
    let machine = read("proc/meminfo").and_then(|text| {
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("MemTotal:"))?;
        let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        Some(kilobytes << 10)
    });
    let address_space = read("proc/self/limits").and_then(|text| {
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("Max address space"))?;
        line.split_whitespace().next()?.parse().ok()
    });
    let groups = read("proc/self/cgroup").unwrap_or_default();
    let in_groups = groups.lines().flat_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (
            parts.next().unwrap_or_default(),
            parts.next().unwrap_or("/"),
        );
        let (folder, file) = match controllers {
            "" => ("sys/fs/cgroup", "memory.max"),
            "memory" => ("sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            _ => return Vec::new(),
        };
        // A group has the limits of those above it, too. In a container its own group is often seen as the topmost.
        let path = path.trim_matches('/');
        let above = path.match_indices('/').map(|(at, _)| &path[..at]);
        let all = std::iter::once("")
            .chain(above)
            .chain(std::iter::once(path));
        let found = all.filter_map(|path| {
            read(&format!("{folder}/{path}/{file}"))?
                .trim()
                .parse()
                .ok()
        });
        found.collect()
    });
    let all = in_groups.chain(machine).chain(address_space);
    all.filter(|bytes| *bytes < MOST).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Paths and contents.
    type Files<'a> = &'a [(&'a str, &'a str)];

    fn tree(files: Files<'_>) -> std::path::PathBuf {
        static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let name = format!("ogive-memory-{}-{number}", std::process::id());
        let root = std::env::temp_dir().join(name);
        for (path, text) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    const MACHINE: (&str, &str) = (
        "proc/meminfo",
        "MemTotal:       8000000 kB\nMemFree: 1 kB\n",
    );

    #[test]
    fn the_smallest_limit_counts() {
        let cases: [(Files<'_>, Option<u64>); 5] = [
            (&[], None),
            (&[MACHINE], Some(8_000_000 << 10)),
            (
                &[
                    MACHINE,
                    ("proc/self/cgroup", "0::/a/b\n"),
                    ("sys/fs/cgroup/a/b/memory.max", "max\n"),
                    ("sys/fs/cgroup/a/memory.max", "268435456\n"),
                ],
                Some(256 << 20),
            ),
            (
                &[
                    MACHINE,
                    ("proc/self/cgroup", "3:memory:/docker/x\n2:cpu:/\n"),
                    ("sys/fs/cgroup/memory/memory.limit_in_bytes", "134217728\n"),
                    (
                        "sys/fs/cgroup/memory/docker/x/memory.limit_in_bytes",
                        "9223372036854771712\n",
                    ),
                ],
                Some(128 << 20),
            ),
            (
                &[
                    MACHINE,
                    (
                        "proc/self/limits",
                        "Max cpu time  unlimited  unlimited  seconds\nMax address space  536870912  unlimited  bytes\n",
                    ),
                ],
                Some(512 << 20),
            ),
        ];
        for (files, wanted) in cases {
            let root = tree(files);
            assert_eq!(available(&root), wanted, "{files:?}");
            let _ = fs::remove_dir_all(root);
        }
    }

    /// As in a `chroot` without `/proc`.
    #[cfg(target_os = "linux")]
    #[test]
    fn the_machine_has_a_memory_without_files() {
        let said = available(Path::new("/")).expect("this one has files");
        let found = of_machine().expect("a memory");
        assert!(
            found >= LEAST && found >= said / 2,
            "{found} and {said} bytes"
        );
        assert_eq!(available(Path::new("/nowhere")), None);
    }

    #[test]
    fn half_of_it_is_for_requests() {
        assert_eq!(derived(Some(256 << 20)), 128 << 20);
        assert_eq!(derived(Some(1 << 20)), LEAST);
        assert_eq!(derived(None), 1 << 30, "nobody is without a limit");
    }
}
