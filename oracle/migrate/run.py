"""Migrates, validates, serves and probes the configurations of other gateways.

    python3 run.py PATH/TO/ogive [PART OF A NAME ...]

Ends with status 1 where a probe fails. With `BLESS=1`, and all configurations, the table in `docs/migrating.md` is written;
without it, a table that differs from what was found is a failure, too.
"""

import os, shutil, sys, tempfile, time
from concurrent.futures import ThreadPoolExecutor

import probes_apollo, probes_cosmo, probes_grafbase, probes_hive  # noqa: F401 (they register their configurations)
from trial import CONFIGS

DOCUMENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/migrating.md")
BEGIN, END = "<!-- oracle/migrate: begin -->", "<!-- oracle/migrate: end -->"


def main(ogive, names):
    ogive = os.path.abspath(ogive)
    if not os.access(ogive, os.X_OK):
        sys.exit(f"{ogive} is not there: build it first (`cargo build --package ogive-cli --features shipped`)")
    chosen = [file for file in sorted(CONFIGS) if not names or any(name in file for name in names)]
    if not chosen:
        sys.exit("no configuration has such a name")
    if not shutil.which("redis-server"):
        sys.exit("redis-server is not installed")
    scratch = tempfile.mkdtemp(prefix="ogive-migrate-")
    try:
        with ThreadPoolExecutor(int(os.environ.get("JOBS", "2"))) as pool:
            trials = list(pool.map(lambda file: told(file, CONFIGS[file](ogive, scratch)), chosen))
    finally:
        if not os.environ.get("KEEP"):
            shutil.rmtree(scratch, ignore_errors=True)
    failed = sum(result[2] == "FAILED" for trial in trials for result in trial.results)
    total = sum(len(trial.results) for trial in trials)
    print(f"{len(trials)} configurations, {total} probes, {failed} failed")
    if len(chosen) == len(CONFIGS) and not failed:
        failed += document(table(trials))
    return 1 if failed else 0


def told(file, trial):
    failed = [result for result in trial.results if result[2] == "FAILED"]
    print(f"{file}: {len(trial.results) - len(failed)} of {len(trial.results)} probes hold", flush=True)
    for label, what, _, detail in failed:
        print(f"  {label}: {what}\n    {detail}", flush=True)
    return trial


def table(trials):
    lines = ["| configuration | as before | differs, and the report says so | protections lost |", "|---|---|---|---|"]
    for trial in trials:
        count = lambda verdict: sum(result[2] == verdict for result in trial.results)
        differs = sorted({result[0] for result in trial.results if result[2] == "reported"})
        lost = sum(entry["protection"] for entry in trial.entries)
        shown = f"{count('reported')}: {', '.join(differs)}" if differs else "0"
        lines.append(f"| [{trial.file}](../oracle/migrate/configs/{trial.file}) | {count('as before')} | {shown} | {lost} |")
    return "\n".join(lines)


def document(text):
    """Writes the table, or returns 1 where it differs from the one that is there."""
    before = open(DOCUMENT).read()
    head, rest = before.split(BEGIN)
    after = f"{head}{BEGIN}\n\n{text}\n\n{END}{rest.split(END)[1]}"
    if after == before:
        return 0
    if os.environ.get("BLESS"):
        open(DOCUMENT, "w").write(after)
        return 0
    print("the table in docs/migrating.md differs: run with BLESS=1")
    return 1


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    start = time.monotonic()
    status = main(sys.argv[1], sys.argv[2:])
    print(f"{time.monotonic() - start:.0f} s")
    sys.exit(status)
