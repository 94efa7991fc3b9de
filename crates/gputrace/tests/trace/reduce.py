"""Reduces a PyTorch trace to one step for the exercise: kernels with their launches, waits, copies and named ranges.

    python3 crates/gputrace/tests/trace/reduce.py v1_eager.json.gz assets/eager.json.gz
"""
import gzip, json, sys

source, target = sys.argv[1:]
events = json.load(gzip.open(source))["traceEvents"]
steps = [e for e in events if e.get("name", "").startswith("ProfilerStep#") and e.get("cat") == "user_annotation"]
kept, ids = [], {}
for e in events:
    cat, name = e.get("cat", ""), e.get("name", "")
    call = cat in ("cuda_runtime", "cuda_driver") and ("Launch" in name or "Synchronize" in name or "Memcpy" in name or "Memset" in name)
    if e.get("ph") == "X" and (cat in ("kernel", "gpu_memcpy", "gpu_memset", "user_annotation") or call):
        args = e.get("args", {})
        keep = {k: args[k] for k in ("correlation", "device", "stream", "bytes", "grid", "block") if k in args}
        if "correlation" in keep:
            keep["correlation"] = ids.setdefault(keep["correlation"], len(ids) + 1)
        if cat != "kernel":
            keep.pop("grid", None), keep.pop("block", None)
        e = {k: e[k] for k in ("ph", "cat", "name", "pid", "tid", "ts", "dur")}
        e["ts"] = round(e["ts"] - steps[0]["ts"], 3)
        kept.append({**e, "args": keep} if keep else e)
kept.sort(key=lambda e: e["ts"])
text = json.dumps({"schemaVersion": 1, "traceEvents": kept}, separators=(",", ":"))
with open(target, "wb") as out:
    out.write(gzip.compress(text.encode(), 9, mtime=0))
print(len(kept), len(text))
