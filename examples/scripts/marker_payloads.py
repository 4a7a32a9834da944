"""The payloads of one marker, in the largest trace of a folder.

    python3 marker_payloads.py FOLDER MARKER
"""
import json
import sys
from pathlib import Path

trace_path = max(Path(sys.argv[1]).glob("*.trace.json"), key=lambda path: path.stat().st_size)
data = json.loads(trace_path.read_text())
launch = data["launches"][0]
names = data["stringTable"]
payloads = [
    marker["payloadVal"]
    for marker in launch["markers"]
    if names[marker["markerNameIdx"]] == sys.argv[2] and "payloadVal" in marker
]
print(payloads[:8])
