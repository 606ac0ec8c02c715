//! The load tool `wrk`, which goes on for as long as its test needs it.

use std::{
    fs,
    io::Read as _,
    path::Path,
    process::{Child, Command, Stdio},
};

/// Sixteen connections of one thread. Ended with its test at the latest.
pub(crate) struct Wrk(Child);

impl Wrk {
    /// With a script, which may say how far it is by making a file.
    pub(crate) fn start(script: &str, gateway: &str) -> Wrk {
        let url = format!("http://{gateway}/graphql");
        let mut command = Command::new("wrk");
        command
            .args(["-t1", "-c16", "-d500s", "--timeout", "30s"])
            .args(["-s", script, &url])
            .stdout(Stdio::piped());
        Wrk(command.spawn().unwrap())
    }
    /// It has not ended by itself.
    pub(crate) fn goes_on(&mut self) {
        let end = self.0.try_wait().unwrap();
        assert_eq!(end, None, "the load has ended before its time");
    }
    /// Waits for the file that its script makes.
    pub(crate) fn made(&mut self, file: &Path) {
        while !file.exists() {
            self.goes_on();
            std::thread::yield_now();
        }
    }
    /// Ends it, and gives its report.
    pub(crate) fn end(mut self) -> String {
        // Before it has said what is to become of SIGINT, that would end it without a word.
        while self.catches_interrupt() == Some(false) {
            std::thread::yield_now();
        }
        let id = self.0.id().to_string();
        let told = Command::new("kill").args(["-INT", &id]).status().unwrap();
        assert!(told.success());
        let mut report = String::new();
        let mut stdout = self.0.stdout.take().unwrap();
        stdout.read_to_string(&mut report).unwrap();
        report
    }
    /// `None` without `/proc`.
    fn catches_interrupt(&self) -> Option<bool> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.0.id())).ok()?;
        let caught = status.lines().find_map(|l| l.strip_prefix("SigCgt:"))?;
        let caught = u64::from_str_radix(caught.trim(), 16).ok()?;
        // SIGINT is the second signal.
        Some(caught & 2 != 0)
    }
}

impl Drop for Wrk {
    fn drop(&mut self) {
        // Already gone in a test that passed.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
