//! Commands that run beside others: installs beside builds, lints and fuzzing beside tests that wait for sockets.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread::{self, JoinHandle},
    time::Instant,
};

/// Commands that run one after the other in the background, with lower priority than what runs in the foreground.
pub(crate) struct Lane(JoinHandle<Vec<Done>>);

/// How one command of a lane ended.
pub(crate) struct Done {
    pub(crate) name: String,
    pub(crate) command: String,
    pub(crate) ok: bool,
    pub(crate) seconds: f64,
    /// What it printed, errors included.
    pub(crate) output: Vec<String>,
}

impl Lane {
    /// Starts the commands, each a name and words with single spaces between them. A failing command does not stop the others.
    pub(crate) fn start(root: &Path, steps: Vec<(String, String)>) -> Lane {
        let root = root.to_owned();
        Lane(thread::spawn(move || {
            let run = |(name, command)| run(&root, name, command);
            steps.into_iter().map(run).collect()
        }))
    }

    /// Waits until all commands have ended.
    pub(crate) fn finish(self) -> Vec<Done> {
        // A panic of the lane is one of its user: it must not pass for "nothing failed".
        self.0
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

fn run(root: &PathBuf, name: String, command: String) -> Done {
    let start = Instant::now();
    let ended = Command::new("sh")
        .args(["-c", "exec nice -n 5 \"$@\" 2>&1", "sh"])
        .args(command.split(' '))
        .current_dir(root)
        .stdin(Stdio::null())
        .output();
    let (ok, output) = match ended {
        Ok(output) => (output.status.success(), output.stdout),
        Err(error) => (false, error.to_string().into_bytes()),
    };
    Done {
        name,
        command,
        ok,
        seconds: start.elapsed().as_secs_f64(),
        output: String::from_utf8_lossy(&output)
            .lines()
            .map(str::to_owned)
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_runs_every_command_and_reports_each() {
        let step = |name: &str, command: &str| (name.to_owned(), command.to_owned());
        let steps = vec![
            step("fails", "ls /nowhere-at-all"),
            step("passes", "echo fine"),
        ];
        let done = Lane::start(Path::new("/"), steps).finish();
        assert_eq!(done.iter().map(|d| d.ok).collect::<Vec<_>>(), [false, true]);
        assert!(done[0].output[0].contains("nowhere-at-all"));
        assert_eq!(done[1].output, ["fine"]);
    }
}
