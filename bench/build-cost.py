#!/usr/bin/env python3
"""Prints what each dependency of the product costs a cold build, as a Markdown table.

    cargo build --release --timings --package ogive-cli
    python3 bench/build-cost.py target/cargo-timings/cargo-timing.html

A package that only one direct dependency needs is counted with that dependency. Seconds are those of the compiler and of
build scripts, one after another: a build on two cores takes about half of their sum.
"""

import json
import re
import subprocess
import sys
from collections import defaultdict


def seconds_by_package(page):
    """Seconds of all units of a package: libraries, build scripts and their runs."""
    text = open(page, encoding="utf-8").read()
    units = json.loads(re.search(r"const UNIT_DATA = (\[.*?\]);\n", text, re.S).group(1))
    seconds = defaultdict(float)
    for unit in units:
        seconds[(unit["name"], unit["version"])] += unit["duration"]
    return seconds


def main():
    seconds = seconds_by_package(sys.argv[1])
    metadata = json.loads(subprocess.check_output(
        ["cargo", "metadata", "--format-version=1", "--filter-platform", "x86_64-unknown-linux-gnu"]))
    packages = {p["id"]: p for p in metadata["packages"]}
    members = set(metadata["workspace_members"])
    built = lambda id: (packages[id]["name"], packages[id]["version"]) in seconds
    needs = {n["id"]: [d["pkg"] for d in n["deps"] if built(d["pkg"])] for n in metadata["resolve"]["nodes"]}

    direct = defaultdict(set)  # a dependency, and our crates that name it
    for member in filter(built, members):
        for dependency in needs[member]:
            if dependency not in members:
                direct[dependency].add(packages[member]["name"])
    reached = defaultdict(set)  # a package, and the direct dependencies that need it
    for root in direct:
        todo = [root]
        while todo:
            package = todo.pop()
            if root not in reached[package]:
                reached[package].add(root)
                todo += needs[package]

    cost, count, shared, shared_count = defaultdict(float), defaultdict(int), 0.0, 0
    for package, roots in reached.items():
        own = seconds[(packages[package]["name"], packages[package]["version"])]
        root = package if package in direct else next(iter(roots)) if len(roots) == 1 else None
        if root is None:
            shared, shared_count = shared + own, shared_count + 1
        else:
            cost[root], count[root] = cost[root] + own, count[root] + 1
    ours = sum(seconds[(packages[m]["name"], packages[m]["version"])] for m in filter(built, members))

    print("| dependency | packages | seconds | named by |\n|---|---|---|---|")
    for root in sorted(cost, key=cost.get, reverse=True):
        if cost[root] >= 1:
            users = ", ".join(f"`{name.removeprefix('ogive-')}`" for name in sorted(direct[root]))
            print(f"| `{packages[root]['name']}` | {count[root]} | {cost[root]:.1f} | {users} |")
    small = [root for root in cost if cost[root] < 1]
    print(f"| {len(small)} others, each below 1 s | {sum(count[r] for r in small)} | {sum(cost[r] for r in small):.1f} | |")
    print(f"| needed by several of them | {shared_count} | {shared:.1f} | |")
    print(f"| our crates | {sum(map(built, members))} | {ours:.1f} | |")
    print(f"\nTotal: {sum(seconds.values()):.1f} s")


if __name__ == "__main__":
    main()
