//! A component where the system refuses executable memory, as under `MemoryDenyWriteExecute=yes` of a systemd unit.

use std::{
    env, io,
    os::unix::process::CommandExt,
    process::{Command, Output},
};

use ogive_gateway::GatewayOptions;
use ogive_testbase::left_out;

use super::guest::Guest;
use crate::graph::config;

/// Set in the process that runs under the switch.
const IS_UNDER_SWITCH: &str = "OGIVE_TEST_WITHOUT_EXECUTABLE_MEMORY";

fn load() -> Result<(), String> {
    let guest = Guest::new(&[("answer", "(i32.const 0)")]);
    GatewayOptions::load(&config(&guest.yaml(""))).map(drop)
}

/// Runs this test alone in a process of its own that cannot make memory executable.
#[allow(unsafe_code, reason = "no library has this system call")]
fn under_switch() -> io::Result<Output> {
    const NAME: &str = "components::executable_memory::a_component_that_cannot_be_made_executable_names_the_switch";
    let mut command = Command::new(env::current_exe()?);
    command.args([NAME, "--exact"]).env(IS_UNDER_SWITCH, "1");
    // SAFETY: between fork and exec there is one system call, which touches no memory of this process.
    unsafe {
        command.pre_exec(|| {
            let refused = libc::prctl(libc::PR_SET_MDWE, libc::PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0);
            match refused {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            }
        });
    }
    command.output()
}

#[test]
fn a_component_that_cannot_be_made_executable_names_the_switch() {
    if env::var_os(IS_UNDER_SWITCH).is_some() {
        let error = load().unwrap_err();
        assert!(
            error.contains("`MemoryDenyWriteExecute=yes`"),
            "does not name the switch: {error}"
        );
    } else {
        assert_eq!(load(), Ok(()));
        match under_switch() {
            Ok(output) => {
                let text = String::from_utf8_lossy(&output.stdout);
                assert!(
                    output.status.success() && text.contains("1 passed"),
                    "{text}"
                );
            }
            // Linux has the switch since 6.3.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                left_out("this kernel cannot refuse executable memory");
            }
            Err(error) => panic!("{error}"),
        }
    }
}
