#!/usr/bin/env python3
"""Random kills and stops over all operations: what is left, and whether it can be continued.

    kills.py FLITCAST [--runs 200] [--seed 1] [--only 17] [--jobs 1] [--sync WHEN] [--csv runs.csv]

Each run begins an operation on small files over slow links, sends a signal to one of its processes,
looks at what is left, and then continues to the end. The number of a run and the seed say all that
is chosen. Works on Linux and needs nothing but Python.
"""

import argparse
import collections
import concurrent.futures
import csv
import glob
import os
import random
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time

from cases import MAP_COMMAND, Files

OPERATIONS = ["scatter", "gather", "broadcast", "gossip", "exchange", "map"]
KINDS = ["KILL", "TERM", "INT", "STOP, CONT", "STOP"]
TREES = {"path:4": 4, "star:4": 4, "kary:2:5": 5}
GUARDS = ["default", "insecure", "TLS"]
# A run lasts some two seconds. The limit allows for a busy machine.
HANG_SECONDS = 120
# PEs that are silent for 3 s are given up; the coordinator may stand still for any time.
LONG_STOP_SECONDS = 6
STEPS = 6
MARK = "KILLS_MARK"
GOING_ON = re.compile(r"^(?:to go on|to send the present version to all): (flitcast resume .*)$", re.M)


class Case:
    """The choices of one run."""

    def __init__(self, seed, number):
        rng = random.Random(f"{seed}-{number}")
        self.number = number
        self.operation = OPERATIONS[number % len(OPERATIONS)]
        self.kind = KINDS[number // len(OPERATIONS) % len(KINDS)]
        self.tree = rng.choice(sorted(TREES))
        self.guard = rng.choice(GUARDS)
        self.retry = rng.choice([0, 1])
        victims = ["coordinator", "PE"] + ["supervisor"] * (self.operation == "map")
        self.victim = rng.choice(victims)
        self.pe = rng.randrange(TREES[self.tree])
        # Of the time from the trigger to the end, or of the first 0.3 s.
        self.moment = rng.uniform(0.02, 0.8)
        self.is_early = rng.random() < 0.1
        self.pause = rng.uniform(0.1, 1.5)
        self.changes_source = rng.random() < 0.6
        self.puts_back = rng.random() < 0.5
        self.rng = rng

    def __str__(self):
        victim = self.victim if self.victim == "coordinator" else f"{self.victim} P{self.pe}"
        return (f"{self.number}: {self.operation} on {self.tree}, {self.guard}, --retry {self.retry}; "
                f"{self.kind} {'in the launch' if self.is_early else f'at {self.moment:.2f}'} to {victim}")


class Seen:
    """What was seen of one run."""

    def __init__(self):
        self.in_time = False
        self.code = None
        self.wrong = []
        self.partial_after = []
        self.hidden_at_end = []
        self.left = []
        self.hangs = []
        self.steps = []
        self.refused = None
        self.equal = False
        self.findings = []


def processes(mark):
    """The processes of a run that have not ended: number and arguments."""
    found = []
    assignment = f"{MARK}={mark}".encode()
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                if assignment not in file.read().split(b"\0"):
                    continue
            with open(f"/proc/{name}/cmdline", "rb") as file:
                words = file.read().decode(errors="replace").split("\0")
            with open(f"/proc/{name}/stat") as file:
                state = file.read().rsplit(")", 1)[1].split()[0]
        except (OSError, IndexError):
            continue
        if state not in "ZX":
            found.append((int(name), words))
    return found


def send(pid, what):
    try:
        os.kill(pid, what)
        return True
    except ProcessLookupError:
        return False


class Place:
    """The folder of one run, and the commands in it."""

    def __init__(self, args, case, folder):
        self.args, self.case, self.folder = args, case, folder
        self.mark = f"{os.getpid()}-{case.number}"
        self.env = dict(os.environ, XDG_CACHE_HOME=os.path.join(args.shared, "cache"),
                        XDG_RUNTIME_DIR=os.path.join(folder, "run"), PATH=f"{args.shared}/bin:{os.environ['PATH']}")
        os.makedirs(self.env["XDG_RUNTIME_DIR"], mode=0o700)
        self.env[MARK] = self.mark
        self.log = open(os.path.join(folder, "log"), "w")

    def line(self, more=()):
        case = self.case
        words = ["flitcast", case.operation, "--tree", case.tree, "--link", "rate=40mbit", "-v",
                 "--input", "in", "--output", "out", *more]
        if case.retry:
            words += ["--retry", "1"]
        if case.guard == "insecure":
            words.append("--insecure")
        if case.guard == "TLS":
            words += ["--credentials", os.path.join(self.args.shared, "ca")]
        if self.args.sync and case.operation != "map":
            words += ["--sync", self.args.sync]
        if case.operation == "map":
            words += ["--", "sh", "-c", MAP_COMMAND]
        return words

    def begin(self, words):
        """Starts a command; its stderr is collected as it comes."""
        self.log.write(f"$ {words}\n")
        shell = isinstance(words, str)
        child = subprocess.Popen(words, shell=shell, cwd=self.folder, env=self.env, text=True, errors="replace",
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        child.lines, child.triggered = [], threading.Event()

        def read():
            for line in child.stderr:
                child.lines.append(line)
                if "triggered" in line:
                    child.triggered.set()
            child.triggered.set()

        child.reader = threading.Thread(target=read, daemon=True)
        child.reader.start()
        return child

    def end(self, child, seen):
        """Waits for the end of a command and of all its processes."""
        deadline = time.monotonic() + HANG_SECONDS
        try:
            child.wait(HANG_SECONDS)
        except subprocess.TimeoutExpired:
            seen.hangs.append(f"{processes(self.mark)}")
        while processes(self.mark) and time.monotonic() < deadline and not seen.hangs:
            time.sleep(0.02)
            # They have ten seconds more than the coordinator.
            deadline = min(deadline, time.monotonic() + 10) if child.returncode is not None else deadline
        left = processes(self.mark)
        if left and not seen.hangs:
            seen.left.append(f"{left}")
        for pid, _ in left:
            send(pid, signal.SIGKILL)
        child.wait()
        child.reader.join(10)
        text = "".join(child.lines)
        self.log.write(f"{text}= {child.returncode}\n")
        self.log.flush()
        return child.returncode, text

    def run(self, words, seen):
        return self.end(self.begin(words), seen)

    def hidden(self):
        """Flitcast's own files that are there."""
        found = []
        for folder, folders, files in os.walk(self.folder):
            found += [os.path.join(folder, name) for name in folders + files if name.startswith(".flitcast-")]
        return [os.path.relpath(path, self.folder) for path in found]


USUAL = {}
USUAL_LOCK = threading.Lock()


def usual_seconds(args, case):
    """How long such an operation takes from its trigger to its end if it is left alone."""
    key = (case.operation, case.tree)
    with USUAL_LOCK:
        if key not in USUAL:
            alone = Case(args.seed, case.number)
            alone.guard, alone.retry, alone.number = "default", 0, f"alone-{case.operation}-{case.tree}"
            folder = os.path.join(args.shared, alone.number)
            os.makedirs(folder)
            place, seen = Place(args, alone, folder), Seen()
            Files(case.operation, TREES[case.tree], folder)
            child = place.begin(place.line())
            child.triggered.wait(HANG_SECONDS)
            began = time.monotonic()
            code, text = place.end(child, seen)
            if code != 0:
                raise SystemExit(f"{case.operation} fails without a signal:\n{text}")
            USUAL[key] = time.monotonic() - began
            shutil.rmtree(folder)
        return USUAL[key]


def victim(place, child, case):
    """The process that gets the signal; None if there is none such at the moment."""
    if case.victim == "coordinator":
        return child.pid if child.poll() is None else None
    word = {"PE": "node", "supervisor": "leash"}[case.victim]
    found = [(pid, words) for pid, words in processes(place.mark)
             if word in words and "--pe" in words]
    own = [pid for pid, words in found if words[words.index("--pe") + 1] == str(case.pe)]
    return case.rng.choice(sorted(own)) if own else None


def hit(place, child, case, seen, usual):
    """Sends the signal at its moment."""
    if not case.is_early:
        child.triggered.wait(HANG_SECONDS)
    until = time.monotonic() + case.moment * (0.3 if case.is_early else usual)
    while time.monotonic() < until and child.poll() is None:
        time.sleep(0.005)
    pid = victim(place, child, case)
    # Supervisors and the PEs of a map's rounds come and go: the next one is as good.
    while pid is None and child.poll() is None:
        time.sleep(0.005)
        pid = victim(place, child, case)
    if pid is None:
        return
    first = {"KILL": signal.SIGKILL, "TERM": signal.SIGTERM, "INT": signal.SIGINT}.get(case.kind, signal.SIGSTOP)
    seen.in_time = send(pid, first) and child.poll() in (None, -signal.SIGKILL)
    if case.kind == "STOP, CONT":
        time.sleep(case.pause)
        send(pid, signal.SIGCONT)
    elif case.kind == "STOP" and case.victim == "coordinator":
        time.sleep(LONG_STOP_SECONDS)
        send(pid, signal.SIGCONT)


def record(place):
    found = glob.glob(os.path.join(place.folder, "out", ".flitcast-round-*.toml"))
    return os.path.relpath(found[0], place.folder) if found else None


def next_step(place, text, code):
    """How to continue: as was printed, by a record that is there, or by the same command again."""
    printed = GOING_ON.findall(text)
    if printed:
        return "printed", printed[-1]
    if record(place):
        return "record", f"flitcast resume {record(place)} --revive"
    if code == 2 and "--force" in text:
        return "repeated with --force", place.line(["--force"])
    return "repeated", place.line()


def change(place, case, files, seen):
    """Changes a source that is still needed: to continue must be refused, and name it."""
    missing = files.missing()
    # A PE that died in the launch has not looked at its source: the run knows no version of it.
    if case.operation == "map" or case.is_early or not missing or not record(place):
        return
    source = case.rng.choice(missing)
    what = files.change(source, case.rng)
    code, text = place.run(f"flitcast resume {record(place)} --revive", seen)
    named = f"in/{source}" if case.operation != "broadcast" else "in`"
    seen.refused = code in (1, 2) and "changed since the run began" in text and named in text
    if not seen.refused:
        seen.findings.append(f"changed {what}: status {code}, not refused by name")
    seen.wrong += files.wrong(seen_as_old=True)
    if case.puts_back:
        files.put_back()
    else:
        files.take_new()
        code, text = place.run(f"flitcast resume {record(place)} --revive --force", seen)
        seen.steps.append("--force")
        if code != 0:
            seen.findings.append(f"--force after a change: status {code}")


def one(args, number):
    case, seen = Case(args.seed, number), Seen()
    usual = usual_seconds(args, case)
    folder = os.path.join(args.shared, f"run-{number}")
    os.makedirs(folder)
    place = Place(args, case, folder)
    files = Files(case.operation, TREES[case.tree], folder)
    child = place.begin(place.line())
    hit(place, child, case, seen, usual)
    seen.code, text = place.end(child, seen)
    code = seen.code
    seen.wrong += files.wrong()
    seen.partial_after = [path for path in place.hidden() if "/.flitcast-round-" not in path]
    if case.changes_source and code != 0:
        change(place, case, files, seen)
    last = None
    while (files.missing() or (code != 0 and place.hidden())) and len(seen.steps) < STEPS and not seen.hangs:
        kind, step = next_step(place, text, code)
        if kind == "printed" and step == last:
            kind, step = "record", f"flitcast resume {record(place)} --revive"
            seen.findings.append("the printed command was printed again and did not help")
        code, text = place.run(step, seen)
        if kind == "printed" and code == 2:
            seen.findings.append(f"the printed command is refused: {step}")
        seen.wrong += files.wrong()
        seen.steps.append(kind)
        last = step
    seen.equal = not files.missing() and not files.wrong()
    seen.hidden_at_end = place.hidden()
    if not seen.equal:
        seen.findings.append(f"not continued to the end: status {code}, missing {files.missing()}")
    for what in ["wrong", "left", "hangs", "hidden_at_end"]:
        if getattr(seen, what):
            seen.findings.append(f"{what}: {getattr(seen, what)}")
    place.log.close()
    if not seen.findings and not args.keep:
        shutil.rmtree(folder)
    return case, seen


def show(case, seen):
    middle = "" if seen.in_time else ", too late"
    how = ", ".join(seen.steps) or "nothing to continue"
    changed = {None: "", True: "; changed source refused", False: "; CHANGED SOURCE NOT REFUSED"}[seen.refused]
    print(f"{case}{middle}: status {seen.code}; {how}{changed}", flush=True)
    for finding in seen.findings:
        print(f"    FINDING {finding}", flush=True)


def tally(results):
    """The table: a row for each operation and kind."""
    print("\n| operation | signal | runs | in time | wrong bytes | partial files | processes left | hangs | "
          "ended equal | changed source refused |")
    print("| --- | --- " + "| ---: " * 8 + "|")
    groups = collections.OrderedDict()
    for operation in OPERATIONS:
        for kind in KINDS:
            groups[operation, kind] = []
    for case, seen in results:
        groups[case.operation, case.kind].append(seen)
    rows = [(*key, group) for key, group in groups.items() if group]
    rows.append(("all", "", [seen for _, seen in results]))
    for operation, kind, group in rows:
        changed = [seen for seen in group if seen.refused is not None]
        cells = [len(group), sum(seen.in_time for seen in group), sum(bool(seen.wrong) for seen in group),
                 sum(bool(seen.hidden_at_end) for seen in group), sum(bool(seen.left) for seen in group),
                 sum(bool(seen.hangs) for seen in group), sum(seen.equal for seen in group),
                 f"{sum(seen.refused for seen in changed)} of {len(changed)}"]
        print(f"| {operation} | {kind} | " + " | ".join(map(str, cells)) + " |")
    steps = collections.Counter(step for _, seen in results for step in seen.steps)
    print("\nSteps to continue: " + (", ".join(f"{kind} {count}" for kind, count in sorted(steps.items())) or "none"))
    after = sum(bool(seen.partial_after) for _, seen in results)
    print(f"Runs that left hidden files other than a record, before they were continued: {after}")
    print("Exit statuses of what got the signal: " + ", ".join(
        f"{code} {count}" for code, count in sorted(collections.Counter(seen.code for _, seen in results).items())))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("flitcast")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, nargs="*")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--sync")
    parser.add_argument("--csv")
    parser.add_argument("--keep", action="store_true", help="leave the folders of all runs")
    args = parser.parse_args()
    args.shared = tempfile.mkdtemp(prefix="kills-")
    # Printed commands are run as they are, so that `flitcast` must be found.
    os.mkdir(os.path.join(args.shared, "bin"))
    os.symlink(os.path.abspath(args.flitcast), os.path.join(args.shared, "bin", "flitcast"))
    subprocess.run([args.flitcast, "ca", "init", os.path.join(args.shared, "ca"), "--pes", "5"], check=True,
                   stdout=subprocess.DEVNULL)
    results = []
    numbers = range(args.runs) if args.only is None else args.only
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for case, seen in pool.map(lambda number: one(args, number), numbers):
            show(case, seen)
            results.append((case, seen))
    tally(results)
    if args.csv:
        with open(args.csv, "w", newline="") as file:
            out = csv.writer(file, lineterminator="\n")
            out.writerow(["run", "in time", "status", "steps", "changed source refused", "ended equal", "findings"])
            for case, seen in results:
                out.writerow([case, seen.in_time, seen.code, ", ".join(seen.steps), seen.refused, seen.equal,
                              "; ".join(seen.findings)])
    if any(seen.findings for _, seen in results):
        raise SystemExit(f"findings; logs and files are in {args.shared}")
    if args.keep:
        print(f"logs and files are in {args.shared}")
    else:
        shutil.rmtree(args.shared)


if __name__ == "__main__":
    main()
