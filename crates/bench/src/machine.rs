//! Where a campaign ran, and how its CPUs are shared out.

use std::fs;

use serde::{Deserialize, Serialize};

use crate::process;

/// A machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Its processor.
    pub cpu: String,
    /// CPUs the lab may use.
    pub cpus: usize,
    /// Bytes of memory.
    pub memory: u64,
    /// Kernel.
    pub kernel: String,
    /// Distribution.
    pub system: String,
    /// What keeps the clock speed, where known.
    pub governor: Option<String>,
    /// Load average over a minute when the campaign began: more than 0.5 is a warning.
    pub load_average: f64,
}

impl Machine {
    /// This one.
    pub fn here() -> Machine {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let after = |text: &str, key: &str, mark: char| {
            let line = text.lines().find(|line| line.starts_with(key))?;
            Some(line.split_once(mark)?.1.trim().trim_matches('"').to_owned())
        };
        let memory = after(&read("/proc/meminfo"), "MemTotal", ':');
        let memory = memory.and_then(|m| m.trim_end_matches(" kB").parse::<u64>().ok());
        let governor = read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
        Machine {
            cpu: after(&read("/proc/cpuinfo"), "model name", ':')
                .unwrap_or_else(|| "unknown".into()),
            cpus: process::cpus().len(),
            memory: memory.unwrap_or(0) << 10,
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            system: after(&read("/etc/os-release"), "PRETTY_NAME", '=')
                .unwrap_or_else(|| "unknown".into()),
            governor: (!governor.is_empty()).then(|| governor.trim().to_owned()),
            load_average: load_average(),
        }
    }

    /// A name for folders: processor and CPUs.
    pub fn slug(&self) -> String {
        let words: String = self
            .cpu
            .chars()
            .map(|c| {
                if c.is_ascii_alphanumeric() {
                    c.to_ascii_lowercase()
                } else {
                    '-'
                }
            })
            .collect();
        let words: Vec<&str> = words
            .split('-')
            .filter(|w| !w.is_empty() && !matches!(*w, "r" | "tm" | "cpu" | "processor" | "with"))
            .take(4)
            .collect();
        format!("{}-{}cpu", words.join("-"), self.cpus)
    }
}

/// Load average over a minute.
pub fn load_average() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ')
        .next()
        .and_then(|n| n.parse().ok())
        .unwrap_or(0.0)
}

/// Who gets which CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The gateway's.
    pub gateway: Vec<usize>,
    /// Those of load, subgraphs and the lab itself.
    pub load: Vec<usize>,
    /// What readers must know about it.
    pub note: Option<String>,
}

impl Placement {
    /// Shares out CPUs: the gateway gets what the scenario says, but at least one CPU is left for the rest.
    pub fn new(cpus: &[usize], wanted: Option<usize>) -> Placement {
        let free = cpus.len().saturating_sub(1).max(1);
        let n = wanted.unwrap_or(free).clamp(1, free);
        let gateway = cpus[..n.min(cpus.len())].to_vec();
        let load = match cpus.len() {
            0 | 1 => cpus.to_vec(),
            _ => cpus[n..].to_vec(),
        };
        let note = match wanted {
            _ if cpus.len() < 2 => {
                Some("gateway, load and subgraphs share one CPU: compare nothing".into())
            }
            Some(wanted) if wanted > n => Some(format!(
                "{n} CPU(s) for the gateway; the scenario asks for {wanted}"
            )),
            _ => None,
        };
        Placement {
            gateway,
            load,
            note,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_are_shared_out() {
        let place = |n: usize, wanted| {
            let placement = Placement::new(&(0..n).collect::<Vec<_>>(), wanted);
            (placement.gateway, placement.load, placement.note.is_some())
        };
        assert_eq!(place(2, None), (vec![0], vec![1], false));
        assert_eq!(place(2, Some(4)), (vec![0], vec![1], true));
        assert_eq!(
            place(8, Some(4)),
            (vec![0, 1, 2, 3], vec![4, 5, 6, 7], false)
        );
        assert_eq!(place(1, Some(1)), (vec![0], vec![0], true));
    }

    #[test]
    fn this_machine_has_a_name() {
        let machine = Machine::here();
        assert!(machine.cpus > 0 && machine.memory > 0);
        assert!(machine.slug().ends_with("cpu"));
    }
}
