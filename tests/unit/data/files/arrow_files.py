"""arrow_files.py FOLDER SEED COUNT: writes random Parquet and Arrow files, and for each NAME the rows that pyarrow reads from it again, as NAME.json.

Numbers with a fraction are the bits of a double, texts are hexadecimal. Exits with 77 where pyarrow is missing.
"""
import json
import os
import random
import struct
import sys

try:
    import pyarrow as pa
    import pyarrow.feather
    import pyarrow.parquet as pq
except ImportError as error:
    print(f'skipped: {error}: the set-up for tests downloads pyarrow for Python 3.11')
    sys.exit(77)

FILL = 3  # what stands for nulls


def whole(bits, signed):
    lowest = -(2 ** (bits - 1)) if signed else 0
    highest = 2 ** (bits - 1) - 1 if signed or bits == 64 else 2 ** bits - 1  # 64 bits without a sign are read as int64
    return lambda: random.choice((lowest, highest, random.randint(lowest, highest), random.randint(0, 5)))


def fraction(kind):
    def draw():
        value = random.choice((0.0, -0.0, float('inf'), random.uniform(-100, 100), random.gauss(0, 1)))
        return struct.unpack(kind, struct.pack(kind, value))[0]
    return draw


def text():
    return ''.join(random.choices('aé\n"\t漢 ', k=random.choice((0, 1, 5, 40))))


VALUES = [(pa.bool_(), lambda: random.random() < 0.5), (pa.float16(), fraction('<e')), (pa.float32(), fraction('<f')),
          (pa.float64(), fraction('<d')), (pa.string(), text), (pa.large_string(), text), (pa.binary(), lambda: os.urandom(random.randrange(9))),
          (pa.date32(), whole(16, True)), (pa.timestamp('us'), whole(40, True)), (pa.time64('us'), whole(32, False)), (pa.duration('ms'), whole(40, True))]
VALUES += [(getattr(pa, f'{sign}int{bits}')(), whole(bits, not sign)) for bits in (8, 16, 32, 64) for sign in ('', 'u')]


def is_text(kind):
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind)


def lists(depth, length, draw):
    """A function that draws rows: lists that are rectangular within a row."""
    def nested(shape):
        return [nested(shape[1:]) for _ in range(shape[0])] if shape else draw()
    return lambda: nested([length if length is not None else random.randrange(4) for _ in range(depth)])


def column(rows, null_share):
    kind, draw = random.choice(VALUES)
    depth = 0 if is_text(kind) or pa.types.is_temporal(kind) else random.choice((0, 0, 0, 1, 1, 2))
    length = random.choice((None, None, 2)) if depth else None
    row = lists(depth, length, draw)
    values = [None if random.random() < null_share else row() for _ in range(rows)]
    wrapped = kind
    for level in range(depth):
        wrapped = pa.list_(wrapped, length) if length else random.choice((pa.list_, pa.large_list))(wrapped)
    array = pa.array(values, wrapped)
    if not depth and random.random() < 0.2 and not pa.types.is_temporal(kind) and not pa.types.is_float16(kind) and not pa.types.is_boolean(kind):
        array = array.dictionary_encode()
    return array


def expected(value, kind):
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return [] if value is None else [expected(entry, kind.value_type) for entry in value]
    if is_text(kind):
        raw = b'' if value is None else value if isinstance(value, bytes) else value.encode()
        return raw.hex()
    if pa.types.is_floating(kind):
        return struct.unpack('<q', struct.pack('<d', FILL if value is None else value))[0]
    return int(FILL != 0 if pa.types.is_boolean(kind) else FILL) if value is None else int(value)


def with_numbers(table):
    """Times as their numbers."""
    columns = [one.cast(pa.int32() if one.type.bit_width == 32 else pa.int64()) if pa.types.is_temporal(one.type) else one for one in table.columns]
    return pa.table(columns, names=table.column_names)


def write(table, name, number):
    size = random.choice((1, 3, 10, 1000))
    form = number % 4
    if form == 0:
        pyarrow.feather.write_feather(table, name, compression=random.choice(('lz4', 'zstd', 'uncompressed')), chunksize=size)
        return pyarrow.feather.read_table(name, memory_map=False)
    if form == 1 and not any(pa.types.is_dictionary(kind) for kind in table.schema.types):
        with pa.OSFile(name, 'wb') as out, pa.ipc.new_stream(out, table.schema) as writer:
            writer.write_table(table, max_chunksize=size)
        with pa.OSFile(name) as file:
            return pa.ipc.open_stream(file).read_all()
    pq.write_table(table, name, row_group_size=size, compression=random.choice(('none', 'snappy', 'gzip', 'brotli', 'zstd', 'lz4')),
                   use_dictionary=random.random() < 0.5, data_page_version=random.choice(('1.0', '2.0')),
                   data_page_size=random.choice((64, 1 << 20)), write_page_checksum=random.random() < 0.5)
    return pq.read_table(name)


def main():
    folder, seed, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    random.seed(seed)
    for number in range(count):
        rows = random.choice((1, 2, 7, 30, 100))
        name = os.path.join(folder, f'file{number}')
        again = None
        while again is None:  # pyarrow 26 reads no rows of some lists that it writes: ArrowRows reports such a file as damaged
            names = random.sample(('a', 'b', 'c', 'd', 'e f', 'ß'), random.randrange(1, 7))
            table = pa.table([column(rows, random.choice((0, 0, 0.3))) for _ in names], names=names)
            try:
                again = with_numbers(write(table, name, number))
            except pa.ArrowInvalid as error:
                print(f'{name} again: {error}')
            if again is not None and len(again) != rows:
                again = None
        with open(f'{name}.json', 'w', encoding='utf-8') as out:
            rows = [{key: expected(value, again.schema.field(key).type) for key, value in row.items()} for row in again.to_pylist()]
            json.dump({'null_value': FILL, 'rows': rows}, out)


main()
