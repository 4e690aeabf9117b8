"""make.py FOLDER: writes the Parquet and Arrow files of this folder, which tests read and fuzzing begins with. Needs pyarrow."""
import os
import sys

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq

os.chdir(sys.argv[1])
ROWS = 10


def numbers(begin, end):
    rows = range(begin, end)
    return pa.table({
        'id': pa.array(rows, pa.int64()),
        'x': pa.array([i / 4 for i in rows], pa.float32()),
        'flag': pa.array([i % 3 == 0 for i in rows], pa.bool_()),
        'small': pa.array([65535 - i for i in rows], pa.uint16()),
        'name': pa.array([f'row {i}' for i in rows], pa.string()),
    })


def parquet(table, name, **options):
    pq.write_table(table, name, write_page_checksum=True, **options)


parquet(numbers(0, ROWS), 'numbers.parquet', row_group_size=4, compression='snappy')
parquet(numbers(ROWS, 15), 'more.parquet', row_group_size=2, compression='zstd')
table = numbers(0, ROWS)
pyarrow.feather.write_feather(table, 'numbers.feather', compression='lz4', chunksize=4)
with pa.OSFile('stream.arrow', 'wb') as out, pa.ipc.new_stream(out, table.schema) as writer:
    writer.write_table(table, max_chunksize=3)
parquet(pa.table({
    'fixed': pa.array([[i, i + 0.5, -i] for i in range(6)], pa.list_(pa.float32(), 3)),
    'varying': pa.array([list(range(i)) for i in range(6)], pa.list_(pa.int64())),
    'nested': pa.array([[[i, j] for j in range(i % 3)] for i in range(6)], pa.list_(pa.list_(pa.int16()))),
    'ragged': pa.array([[[1], [2, 3]]] * 6, pa.list_(pa.list_(pa.int8()))),
    'words': pa.array([['a', 'b']] * 6, pa.list_(pa.string())),
    'parts': pa.array([{'a': 1}] * 6),
}), 'lists.parquet', compression='gzip', row_group_size=4)
parquet(pa.table({
    'number': pa.array([1, None, 3], pa.uint8()),
    'text': pa.array(['a', None, 'c']),
    'list': pa.array([[1.0], None, [None]], pa.list_(pa.float64())),
    'coded': pa.array(['x', None, 'x']).dictionary_encode(),
    'coded_number': pa.array([5, None, 7], pa.int32()).dictionary_encode(),
    'coded_nulls': pa.array([None, None, None], pa.int32()).dictionary_encode(),
    'large': pa.array([1, 2, 2**63], pa.uint64()),
}), 'nulls.parquet', compression='brotli')
parquet(pa.table({
    'idx': pa.array(range(3), pa.int32()),
    'sentence1': pa.array(['One.', 'Two.', 'Three.']).dictionary_encode(),
    'sentence2': pa.array(['1', '2', '3'], pa.large_string()),
    'label': pa.array([0, 1, 1], pa.int64()),
    'name': pa.array(['yes', 'no', 'no']),
}), 'pairs.parquet', compression='none')
