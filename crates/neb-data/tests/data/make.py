"""Writes the files of this folder with numpy and pyarrow, so that the tests read what others wrote.

    pip install numpy pyarrow && python make.py

Every table of numbers holds value(row, column) = 3 * row + column - 4 in 5 rows of 3 columns (plus 4 where
the type has no sign; its parity for bool).
"""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROWS, COLS = 5, 3
SIGNED = np.arange(ROWS * COLS).reshape(ROWS, COLS) - 4


def values(code):
    if code == "b1":
        return (SIGNED + 4) % 2 == 1
    return SIGNED + 4 if code[0] == "u" else SIGNED


arrays = {}
for code in ["f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "b1"]:
    for end, mark in [("le", "<"), ("be", ">")]:
        for order in "CF":
            arrays[f"{code}_{end}_{order}"] = np.array(values(code), dtype=mark + code, order=order)
np.savez("numpy_stored.npz", **arrays)
np.savez_compressed("numpy_deflated.npz", **arrays)

np.save("f8_be_F.npy", arrays["f8_be_F"])
np.save("one_dimension.npy", np.array([1.5, -2.5, 3.5], "<f4"))
cube = np.arange(24, dtype="<f4").reshape(2, 3, 4)
np.save("cube_F.npy", np.asfortranarray(cube))
for version in [(2, 0), (3, 0)]:
    with open(f"version_{version[0]}.npy", "wb") as file:
        np.lib.format.write_array(file, SIGNED.astype("<f4"), version=version)

np.savez("names.npz", x=SIGNED, y=SIGNED[:, :2], columns=np.array(["pt", "mass", "η"]), weight=np.ones(ROWS))
np.savez("names_big_endian.npz", x=SIGNED, columns=np.array(["pt", "mass", "eta"], dtype=">U4"))
np.savez("objects.npz", x=np.array([1, "two", None], dtype=object), y=SIGNED)
np.save("structured.npy", np.zeros(3, dtype=[("x", "<f4"), ("y", "<f4", (2,))]))
np.savetxt("savetxt.csv", SIGNED, delimiter=",", header="x1,x2,x3")
np.savetxt("savetxt_spaces.txt", SIGNED)

kinds = {
    "f4": pa.float32(), "f8": pa.float64(), "i1": pa.int8(), "i2": pa.int16(), "i4": pa.int32(), "i8": pa.int64(),
    "u1": pa.uint8(), "u2": pa.uint16(), "u4": pa.uint32(), "u8": pa.uint64(), "b1": pa.bool_(),
}
columns = {}
for code, kind in kinds.items():
    for col in range(COLS):
        columns[f"{code}_{col + 1}"] = pa.array(values(code)[:, col].tolist(), type=kind)
columns["largest_u4"] = pa.array([2**32 - 1] * ROWS, type=pa.uint32())
columns["largest_u8"] = pa.array([2**64 - 1] * ROWS, type=pa.uint64())
columns["label"] = pa.array(["a", "b", "c", "d", "e"])
columns["date"] = pa.array([0] * ROWS, type=pa.timestamp("us"))
columns["list"] = pa.array([[1.0, 2.0]] * ROWS)
columns["gaps"] = pa.array([1.0, None, 3.0, None, 5.0])
table = pa.table(columns)
pq.write_table(table, "arrow_snappy.parquet", row_group_size=2)
numbers = table.select([name for name in table.column_names if name.startswith("f")])
pq.write_table(numbers, "arrow_gzip_v2.parquet", compression="gzip", data_page_version="2.0", use_dictionary=False)
pq.write_table(numbers, "arrow_lz4.parquet", compression="lz4")
pq.write_table(numbers, "arrow_zstd.parquet", compression="zstd")
