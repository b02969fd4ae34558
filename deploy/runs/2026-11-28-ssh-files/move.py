#!/usr/bin/env python3
"""Moves workloads to the hosts of deploy/lab/ssh-hosts.sh: move.py WORK FLITCAST OUT.csv ROUNDS [WORKLOAD,..]

Each round moves each workload in each way, in another order, until the data is on the disk, and compares
the output with the input. Seconds are those of the whole command, processor seconds those of the
whole machine, memory that of the largest process of the way on any host, looked at ten times a second.
Many small outputs stay until the end: some file systems create files slowly after many were removed.
"""
import csv, glob, json, os, random, re, shutil, statistics, subprocess, sys, threading, time

work, flitcast, out, rounds, only = sys.argv[1:]
chance = random.Random(1)
PROGRAMS = {"flitcast", "rsync", "scp", "sftp-server", "tar", "ssh", "sshd", "sshd-session", "parallel"}
TICKS = os.sysconf("SC_CLK_TCK")


def write(path, size):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        while size > 0:
            size -= file.write(chance.randbytes(min(size, 1 << 20)))


def one(source):
    """A file of 2 GiB for one host."""
    write(f"{source}/p1/file", 2 << 30)


def small(source):
    """10,000 files of 200 B to 8 kB for eight hosts."""
    for number in range(10_000):
        write(f"{source}/p{number % 8 + 1}/d{number // 800}/f{number}", chance.randint(200, 8000))


def tiny(source):
    """100,000 files of 0 to 63 bytes for eight hosts."""
    for number in range(100_000):
        write(f"{source}/p{number % 8 + 1}/d{number // 1600}/f{number}", number % 64)


def sources(source):
    """8,000 files in folders of folders for each of two hosts, mostly some kB, few long."""
    for number in range(16_000):
        folder = "/".join(f"m{number // part % 9}" for part in (2000, 300, 40))
        write(f"{source}/p{number % 2 + 1}/{folder}/f{number}.c", int(chance.lognormvariate(8.6, 1.2)))


# For each host, with $i, its address $h, the source $s; ssh finds the hosts by its configuration.
EACH = "for p in {source}/p*; do i=${{p##*/p}}; h=10.119.0.$i; {command} & done; wait"
SHELL = {
    "rsync": "rsync -a $p/ $h:{out}",
    "scp": f"scp -q -r -S {work}/bin/ssh $p $h:{{out}}",
    "tar": "tar -C $p -cf - . | ssh $h 'mkdir {out} && tar -C {out} -xf -'",
}
# Each host takes one folder: parallel has rsync copy it there.
PARALLEL = ("cd {source} && for p in p*; do echo 1/10.119.0.${{p#p}} >>{work}/hosts; done && "
            "ls | parallel --will-cite --sshloginfile {work}/hosts --transferfile {{}}/ --workdir {out} true")


def command(way, source, hosts, out):
    if way.startswith("flitcast"):
        words = ["scatter", "-w", f"10.119.0.[1-{hosts}]", "--format", "json"]
        return [flitcast, *words, "--input", source, "--output", f"/root/{out}", *way.split()[1:]]
    script = PARALLEL if way == "parallel" else EACH
    of_each = SHELL.get(way, "").format(out=out)
    return ["sh", "-c", script.format(source=source, work=work, command=of_each, out=out)]


def placed(host, out):
    """Where the entry of a host is. Flitcast names it like the host; parallel chooses the hosts."""
    own = f"{work}/home{host - 1}/{out}"
    return [*glob.glob(f"{work}/home*/{out}/p{host}"), *glob.glob(f"{own}/10.119.0.{host}"), own][0]


def processor_seconds():
    fields = open("/proc/stat").readline().split()
    return sum(int(fields[i]) for i in (1, 2, 3, 6, 7)) / TICKS


def watch(most, ended):
    while not ended.wait(0.1):
        for name in glob.glob("/proc/[0-9]*/status"):
            try:
                text = open(name).read()
            except OSError:
                continue
            if text.split(None, 2)[1] in PROGRAMS and (peak := re.search(r"VmHWM:\s+(\d+)", text)):
                most[0] = max(most[0], int(peak[1]) / 1024)


results = {}
with open(out, "a", newline="") as file:
    rows = csv.writer(file, lineterminator="\n")
    if file.tell() == 0:
        rows.writerow(["workload", "way", "round", "seconds", "processor_seconds", "memory_mib", "round_seconds",
                       "predicted_seconds"])
    for make in (small, sources, tiny, one):
        load = make.__name__
        if only and load not in only.split(","):
            continue
        source = f"{work}/{load}"
        make(source)
        hosts = len(os.listdir(source))
        for number in range(int(rounds)):
            ways = ["flitcast", "flitcast --sync none", *SHELL, "parallel"]
            for way in ways[number % len(ways):] + ways[:number % len(ways)]:
                target = f"out-{load}-{number}-{way.split()[-1]}"
                if os.path.exists(f"{work}/hosts"):
                    os.remove(f"{work}/hosts")
                os.sync()
                most, ended = [0], threading.Event()
                watcher = threading.Thread(target=watch, args=(most, ended), daemon=True)
                watcher.start()
                cpu, began = processor_seconds(), time.monotonic()
                words = command(way, source, hosts, target)
                said = subprocess.run(words, check=True, stdout=subprocess.PIPE).stdout
                if "none" not in way:
                    subprocess.run(["sync", "-f", work], check=True)
                took, cpu = time.monotonic() - began, processor_seconds() - cpu
                ended.set()
                watcher.join()
                round = json.loads(said)["round"] if way.startswith("flitcast") else {}
                of_round = [round["measured_us"]["median"] / 1e6, round["predicted_us"] / 1e6] if round else ["", ""]
                for host in range(1, hosts + 1):
                    subprocess.run(["diff", "-r", f"{source}/p{host}", placed(host, target)], check=True)
                if load == "one":
                    shutil.rmtree(f"{work}/home0/{target}")
                row = [took, cpu, most[0], *of_round]
                results.setdefault((load, way), []).append(row)
                rows.writerow([load, way, number, *(it if it == "" else f"{it:.3f}" for it in row)])
                file.flush()
        for (of, way), all_of_it in results.items():
            if of == load:
                median = [statistics.median(column) if column[0] != "" else 0 for column in zip(*all_of_it)]
                print("{:8} {:22} {:7.2f} s {:7.2f} s processors {:6.0f} MiB".format(load, way, *median[:3])
                      + ("  round {:.2f} s, predicted {:.2f} s".format(*median[3:]) if median[4] else ""), flush=True)
        shutil.rmtree(source)
