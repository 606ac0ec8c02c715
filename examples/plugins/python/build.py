"""Makes plugin.wasm of plugin.py: `venv/bin/python build.py [FILE]`."""

import pathlib
import shutil
import subprocess
import sys

here = pathlib.Path(__file__).resolve().parent
wit = here / "wit"
hooks = here / "../../../crates/hooks/wit/hooks.wit"
(wit / "deps/hooks").mkdir(parents=True, exist_ok=True)
shutil.copy(hooks, wit / "deps/hooks/hooks.wit")
to = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else here / "plugin.wasm").resolve()
# `--stub-wasi`: nothing of WASI, as a component must not import it.
tool = pathlib.Path(sys.executable).parent / "componentize-py"
command = [tool, "-d", wit, "-w", "plugin", "componentize", "--stub-wasi", "plugin", "-o", to]
subprocess.run(command, cwd=here, check=True)
