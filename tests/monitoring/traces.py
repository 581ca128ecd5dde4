"""Reads traces: the tracks of fastload's and their spans."""

from collections import defaultdict


def ours(trace):
    """Returns the spans of each track of fastload's, by its name."""
    names = {
        event["tid"]: event["args"]["name"]
        for event in trace["traceEvents"]
        if event["name"] == "thread_name" and event["args"]["name"].startswith("fastload ")
    }
    tracks = defaultdict(list)
    for event in trace["traceEvents"]:
        if event["ph"] == "X" and event["tid"] in names:
            tracks[names[event["tid"]].removeprefix("fastload ")].append(event)
    return tracks


def assert_apart(spans):
    ends = 0.0
    for span in spans:
        assert span["ts"] >= ends - 0.01  # microseconds; a double that counts from 1970 has no more
        assert span["dur"] >= 0
        ends = span["ts"] + span["dur"]
