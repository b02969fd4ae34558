"""The input of a run, and what of its output is missing or wrong."""

import hashlib
import os
import random

# Takes half a second and a bit, so that there is something to kill.
MAP_COMMAND = "sleep 0.5; sha256sum < data > sum; sleep 0.5; cp data copy; echo done"


def content(path):
    """All files of an entry, by their paths in it."""
    if os.path.islink(path) or os.path.isfile(path):
        with open(path, "rb") as file:
            return {"": file.read()}
    found = {}
    for folder, folders, files in os.walk(path):
        for name in files:
            below = os.path.join(folder, name)
            with open(below, "rb") as file:
                found[os.path.relpath(below, path)] = file.read()
    return found


class Files:
    """Folders `in` and `out`. Entries of the output are named as in `expected`, by paths below it."""

    def __init__(self, operation, pes, folder):
        self.operation, self.pes, self.folder = operation, pes, folder
        self.rng = random.Random(f"{operation}-{pes}")
        os.makedirs(os.path.join(folder, "in") if operation != "broadcast" else folder, exist_ok=True)
        self.kept = None
        everybody, others = range(pes), range(1, pes)
        if operation in ("scatter", "gather", "map"):
            self.sources = {f"p{pe}": f"p{pe}" for pe in others}
        elif operation == "broadcast":
            self.sources = {f"p{pe}": "" for pe in others}
        elif operation == "gossip":
            self.sources = {f"p{to}/p{of}": f"p{of}" for to in everybody for of in everybody if of != to}
        else:
            self.sources = {f"p{to}/p{of}": f"p{of}/p{to}" for to in everybody for of in everybody if of != to}
        size = {"scatter": 1_200_000, "gather": 1_200_000, "broadcast": 5_000_000, "gossip": 900_000,
                "exchange": 400_000, "map": 800_000}[operation]
        for number, source in enumerate(sorted(set(self.sources.values()))):
            # One that is continued if it is cut off.
            is_long = number == 0 and operation in ("scatter", "gather")
            self.make(source, size * 5 if is_long else size, number)
        self.expected = {entry: self.expect(source) for entry, source in self.sources.items()}

    def path(self, source):
        return os.path.join(self.folder, "in", source) if source else os.path.join(self.folder, "in")

    def make(self, source, size, number):
        is_file = number % 2 == 1 and self.operation != "map" and source
        path = self.path(source)
        size = int(size * self.rng.uniform(0.5, 1.5))
        files = [path] if is_file else [os.path.join(path, "data"), os.path.join(path, "below", "more")]
        for at, file in enumerate(files):
            os.makedirs(os.path.dirname(file), exist_ok=True)
            with open(file, "wb") as out:
                out.write(self.rng.randbytes(size if at == 0 else 3000))

    def expect(self, source):
        """What is to arrive of a source."""
        found = content(self.path(source))
        if self.operation != "map":
            return found
        data = found["data"]
        told = f"{hashlib.sha256(data).hexdigest()}  -\n".encode()
        return {"copy": data, "sum": told, "stdout": b"done\n"}

    def at(self, entry):
        return os.path.join(self.folder, "out", entry)

    def missing(self):
        """The sources of which an entry of the output is not there."""
        missing = {self.sources[entry] for entry in self.expected if not os.path.lexists(self.at(entry))}
        return sorted(missing)

    def wrong(self, seen_as_old=False):
        """Entries that are there under their names and are not what they should be."""
        expected = self.expected if not seen_as_old or not self.kept else self.kept["expected"]
        found = [entry for entry, what in expected.items()
                 if os.path.lexists(self.at(entry)) and content(self.at(entry)) != what]
        depth = 2 if self.operation in ("gossip", "exchange") else 1
        return found + self.foreign(os.path.join(self.folder, "out"), "", depth)

    def foreign(self, folder, below, depth):
        """Names in the output that nobody asked for."""
        found = []
        for name in os.listdir(folder) if os.path.isdir(folder) else []:
            entry = os.path.join(below, name)
            if name.startswith(".flitcast-"):
                continue
            if depth > 1:
                found += self.foreign(os.path.join(folder, name), entry, depth - 1)
            elif entry not in self.expected:
                found.append(entry)
        return found

    def change(self, source, rng):
        """Puts other bytes into the largest file of a source."""
        path = self.path(source)
        file = path if os.path.isfile(path) else os.path.join(path, "data")
        with open(file, "rb") as old:
            self.kept = {"file": file, "bytes": old.read(), "stat": os.stat(file), "source": source,
                         "expected": dict(self.expected)}
        size = len(self.kept["bytes"]) - rng.choice([0, 0, 1, 1000])
        with open(file, "wb") as out:
            out.write(rng.randbytes(size))
        return os.path.relpath(file, self.folder)

    def put_back(self):
        """Puts the former bytes and times back."""
        with open(self.kept["file"], "wb") as out:
            out.write(self.kept["bytes"])
        stat = self.kept["stat"]
        os.utime(self.kept["file"], ns=(stat.st_atime_ns, stat.st_mtime_ns))
        self.kept = None

    def take_new(self):
        """What is there now is what is to arrive."""
        for entry, source in self.sources.items():
            if source == self.kept["source"]:
                self.expected[entry] = self.expect(source)
        self.kept = None
