#!/usr/bin/env python3
"""Where the processor time of an exchange goes, from its first send to its last (needs root, perf, tracefs):

    exchange_profile.py FLITCAST PES BYTES ROUNDS

Samples both the processors (every 125 us) and the sends of messages, and prints the time of all processors in
a round by what they do: system calls, and the program's own code by function.
"""
import collections, re, statistics, subprocess, sys, tempfile
from pathlib import Path

program, pes, size, rounds = sys.argv[1], *map(int, sys.argv[2:])
PERIOD_US, PAUSE, BEHIND = 125, 0.8e-3, 60e-6
HEADER = re.compile(r"^\s*(\S.*?)\s+\d+/\d+\s+\[\d+\]\s+([\d.]+):\s+(\S+):\s*(.*)")
FRAME = re.compile(r"\s*\w+ (.*?)(\+0x\w+)? \((.*)\)\s*$")

data = Path(tempfile.mkdtemp()) / "perf.data"
record = ["perf", "record", "-g", "-c", "1", "-e", f"cpu-clock/period={PERIOD_US * 1000}/",
          "-e", "syscalls:sys_enter_sendto/call-graph=no/", "-a", "-o", str(data), "--", program, "exchange",
          "--network", f"complete:{pes}", "--size", str(size), "--rounds", str(rounds)]
print(subprocess.run(record, capture_output=True, text=True, check=True).stdout.splitlines()[-2].strip())
fields = "comm,pid,tid,cpu,time,event,ip,sym,dso,trace"
script = subprocess.run(["perf", "script", "-i", str(data), "-F", fields], capture_output=True, text=True).stdout

events, frames = [], None
for line in script.splitlines():
    if head := HEADER.match(line):
        frames = []
        events.append((float(head[2]), head[1], head[3], head[4], frames))
    elif frames is not None and (frame := FRAME.match(line)):
        frames.append((frame[1], "kernel" in frame[3]))
events.sort(key=lambda event: event[0])


def is_message(event):
    """A message's frame has up to 64 bytes beside its payload."""
    length = re.search(r"len: 0x0*([0-9a-f]+)", event[3])
    return "sendto" in event[2] and length and size + 40 <= int(length[1], 16) <= size + 64


sends, bursts = [event[0] for event in events if is_message(event)], [[]]
for at in sends:
    if bursts[-1] and at - bursts[-1][-1] > PAUSE:
        bursts.append([])
    bursts[-1].append(at)
whole = [(burst[0], burst[-1]) for burst in bursts if len(burst) == pes * (pes - 1)]
wait, calls, functions = iter(whole), collections.Counter(), collections.Counter()
window = next(wait)
for at, name, kind, _, frames in events:
    while window and at > window[1] + BEHIND:
        window = next(wait, None)
    if not window:
        break
    if at < window[0] or "cpu-clock" not in kind or not frames:
        continue
    function, is_kernel = frames[0]
    call = next((name for name, _ in frames if name.startswith("__x64_sys_")), "kernel, without a call")
    calls[call if is_kernel else f"own code of {name}"] += 1
    functions[function] += not is_kernel
print(f"{len(whole)} rounds, {statistics.median(b - a for a, b in whole) * 1e6:.0f} us from the first send to the last; "
      f"processor time of a round, in us:")
for counts, most in ((calls, 8), (functions, 12)):
    for what, samples in counts.most_common(most):
        print(f"{samples * PERIOD_US / len(whole):8.1f}  {what}")
