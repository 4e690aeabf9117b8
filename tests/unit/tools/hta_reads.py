"""What HolisticTraceAnalysis reports of traces that hortator trace --for-hta has written: hta_reads.py FOLDER RANKS"""

import sys

from hta.trace_analysis import TraceAnalysis

analysis = TraceAnalysis(trace_dir=sys.argv[1])
ranks = int(sys.argv[2])
overlap = analysis.get_comm_comp_overlap(visualize=False)
print(overlap)
assert sorted(overlap["rank"]) == list(range(ranks)), overlap
assert (overlap["comp_comm_overlap_pctg"] > 0).all() and (overlap["comp_comm_overlap_pctg"] <= 100).all(), overlap
times = analysis.get_temporal_breakdown(visualize=False)
print(times)
assert (times["compute_time(us)"] > 0).all() and (times["non_compute_time(us)"] > 0).all(), times
