"""Writes data through groonga and through zmat (in Octave) to a directory, or reads them there and compares."""

import json
import pathlib
import random
import subprocess
import sys

# groonga compresses vectors above 256 bytes.
LENGTHS = (0, 1, 5, 300, 4000)
RECORDS = 20
FILTERS = (
    "",
    "|COMPRESS_FILTER_SHUFFLE",
    "|COMPRESS_FILTER_BYTE_DELTA",
    "|COMPRESS_FILTER_SHUFFLE|COMPRESS_FILTER_BYTE_DELTA",
)
CODECS = ("ZLIB", "LZ4", "ZSTD")
TYPES = ("Int16", "Int32", "UInt64", "Float32", "Float")

ZMAT_METHODS = ("blosclz", "lz4", "lz4hc", "zlib", "zstd")
ZMAT = """
data = {reshape(1:20000, 100, 200), single(sqrt(1:30000)), int16(mod((1:50000) .^ 2, 1000)), uint8(zeros(1, 7000))};
count = 0;
for method = {%(methods)s}
  for n = 1:numel(data)
    file = sprintf("%(directory)s/zmat-%%s-%%d.mat", method{1}, n);
    if %(write)d
      [bytes, info] = zmat(data{n}, 1, ["blosc2" method{1}]);
      save("-binary", file, "bytes", "info");
    else
      stored = load(file);
      assert(zmat(stored.bytes, stored.info), data{n});
    end
    count += 1;
  end
end
printf("zmat: %%d arrays\\n", count);
"""


def columns():
    """Names, types and flags of the columns."""
    combined = [(f, c, t) for f in FILTERS for c in CODECS for t in TYPES]
    return [(f"c{n}", t, f"COMPRESS_{c}{f}") for n, (f, c, t) in enumerate(combined)]


def records():
    """The rows of the table: a vector for each column."""
    rng = random.Random(5)
    for number in range(RECORDS):
        record = {"number": number}
        for name, kind, _ in columns():
            count = rng.choice(LENGTHS)
            if kind.startswith("Float"):
                record[name] = [i + rng.randrange(4) / 4 for i in range(count)]
            else:
                record[name] = [i * 3 + rng.randrange(4) for i in range(count)]
        yield record


def groonga(database, commands, *options):
    """Answers to `commands`, without their first elements (times)."""
    done = subprocess.run(
        ["groonga", *options, str(database)], input=commands, capture_output=True, text=True, check=True
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    for header, *rest in answers:
        assert header[0] == 0, (header, rest)
    return [rest[0] for _, *rest in answers]


def write_groonga(directory):
    commands = ["table_create T TABLE_NO_KEY", "column_create T number COLUMN_SCALAR Int32"]
    commands += [f"column_create T {name} COLUMN_VECTOR|{flags} {kind}" for name, kind, flags in columns()]
    rows = json.dumps(list(records())).replace("\n", "")
    commands += [f"load --table T --values '{rows}'"]
    loaded = groonga(directory / "groonga", "\n".join(commands) + "\n", "-n")
    assert loaded[-1] == RECORDS, loaded[-1]


def read_groonga(directory):
    names = [name for name, _, _ in columns()]
    select = f"select T --sort_keys number --limit -1 --output_columns {','.join(names)}\n"
    [[[_, _, *rows]]] = groonga(directory / "groonga", select)
    assert len(rows) == RECORDS
    for row, record in zip(rows, records()):
        for name, values in zip(names, row):
            assert values == record[name], (record["number"], name)
    print(f"groonga: {len(names) * RECORDS} vectors")


def zmat(directory, write):
    methods = ", ".join(f'"{method}"' for method in ZMAT_METHODS)
    script = directory / "zmat.m"
    script.write_text(ZMAT % {"methods": methods, "directory": directory, "write": write})
    done = subprocess.run(["octave-cli", "--no-history", str(script)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    print(done.stdout.splitlines()[-1])


def main():
    command, directory = sys.argv[1], pathlib.Path(sys.argv[2])
    if command == "write":
        directory.mkdir()
        write_groonga(directory)
        zmat(directory, write=True)
    else:
        read_groonga(directory)
        zmat(directory, write=False)


main()
