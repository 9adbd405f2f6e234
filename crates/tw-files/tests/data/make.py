"""Writes the Parquet files of this directory: python make.py DIRECTORY"""

import sys

import pyarrow as pa
import pyarrow.parquet as pq
n=1000
k=list(range(n))
t=pa.table({
 "f": pa.array([None if i%7==3 else i/4-100 for i in k], pa.float64()),
 "g": pa.array([float(i%5) for i in k], pa.float32()),
 "i": pa.array([i*i-50 for i in k], pa.int64()),
 "u": pa.array([i%256 for i in k], pa.uint8()),
 "h": pa.array([i-500 for i in k], pa.int16()),
 "b": pa.array([i%3==0 for i in k], pa.bool_()),
 "s": pa.array([f"w{i%9}" for i in k], pa.string()),
 "t": pa.array([None if i==5 else i*1000 for i in k], pa.timestamp("us")),
 "n": pa.array([None if i==998 else i for i in k], pa.int32()),
})
d=sys.argv[1]
def w(name, **kw): pq.write_table(t, f"{d}/{name}.parquet", row_group_size=300, write_statistics=False, store_schema=False, **kw)
w("snappy", compression="snappy")
w("plain", compression="none", use_dictionary=False, data_page_size=700)
w("gzip_v2", compression="gzip", data_page_version="2.0", data_page_size=900)
w("zstd_encodings", compression="zstd", use_dictionary=False, data_page_version="2.0", column_encoding={"f":"BYTE_STREAM_SPLIT","g":"BYTE_STREAM_SPLIT","i":"DELTA_BINARY_PACKED","n":"DELTA_BINARY_PACKED","h":"DELTA_BINARY_PACKED"})
w("lz4", compression="lz4", version="1.0")
w("brotli", compression="brotli")
