"""Sinks beside the real trackers, whose files and endpoints are read back."""

import contextlib
import math
import socket
import struct
import subprocess
import sys
import textwrap
import time
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

from fastload.monitoring.sinks import Writer, resolve
from tests.monitoring.monitored import finding, until, window

ODD = {"nan_s": math.nan, 'region a/b \n"c\\_s': 1.0, 'region a/b_\n"c\\_s': 2.0, "1st": 3.0}
"""Names that no format takes as they are, two of which look alike; and a value that is no number."""


def write(to, *windows, findings=()):
    sinks = resolve(to)
    writer = Writer(sinks)
    for each in windows:
        writer.put(each, findings)
    writer.close(timeout_s=60)
    assert not any(any(queue._errors) for queue in writer._queues)
    return sinks


@pytest.mark.filterwarnings("ignore")
def test_tensorboard(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(tmp_path) as summary:
        summary.add_scalar("loss", 0.5, 3)
        write(summary, *map(window, range(5)), window(5, **ODD), findings=[finding()])
    write(summary, window(7))  # of a writer that is closed
    assert len(list(tmp_path.iterdir())) == 1
    events = EventAccumulator(str(tmp_path)).Reload()
    found = events.Scalars("fastload/wait_s")
    assert [event.step for event in found] == [9, 19, 29, 39, 49, 59]
    assert [event.wall_time for event in found] == [window(n).time_s for n in range(6)]
    np.testing.assert_allclose([event.value for event in found], 0.005)
    assert [event.value for event in events.Scalars("fastload/findings")] == [1.0] * 6
    assert math.isnan(events.Scalars("fastload/nan_s")[0].value)
    assert "loss" in events.Tags()["scalars"]


def log_records(file):
    """Yields the records of a W&B file: a LevelDB log after seven bytes, in blocks of 32 KiB."""
    at, record = 7, b""
    while len(file) - at >= 7:
        left = 32768 - at % 32768
        if left < 7:
            at += left
            continue
        size, kind = struct.unpack_from("<HB", file, at + 4)
        record += file[at + 7 : at + 7 + size]
        at += 7 + size
        if kind in (1, 4):  # whole, or the last piece
            yield record
            record = b""


@pytest.mark.filterwarnings("ignore")
def test_wandb(tmp_path, monkeypatch):
    wandb = pytest.importorskip("wandb")
    from wandb.proto.wandb_internal_pb2 import Record

    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    with pytest.raises(ValueError, match=r"no run of W&B is active: call wandb.init\(\) first"):
        resolve("wandb")
    run = wandb.init(dir=tmp_path, project="p")
    for number in range(4):
        write(run if number else "wandb", window(2 * number), window(2 * number + 1))
        run.log({"loss": 0.5}, step=number)  # dropped by W&B if the step has passed
    write(run, window(8, **ODD))
    run.finish()
    wandb.teardown()  # which writes the file to its end
    (path,) = tmp_path.rglob("*.wandb")
    rows, metrics = [], []
    for data in log_records(path.read_bytes()):
        record = Record.FromString(data)
        if record.HasField("history"):
            items = record.history.item
            rows.append(
                {(item.key or "/".join(item.nested_key)): item.value_json for item in items}
            )
        if record.HasField("metric"):
            metrics.append(record.metric)
    assert [row["loss"] for row in rows if "loss" in row] == ["0.5"] * 4
    # a row with a step ends when the next one begins: the newest window until then is in it
    assert [int(row["fastload/step"]) for row in rows] == [39, 59, 79, 89]
    assert all(float(row["fastload/wait_s"]) == 0.005 for row in rows)
    globbed = next(metric for metric in metrics if metric.glob_name == "fastload/*")
    assert globbed.step_metric == "fastload/step"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.timeout(240)  # a database is made
def test_mlflow(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    pytest.importorskip("sqlalchemy")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=r"no run of mlflow is active.*mlflow:RUN_ID"):
        resolve("mlflow")
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/runs.db")
    try:
        with mlflow.start_run() as run:
            write("mlflow", window(0, **ODD))
        run_id = run.info.run_id
        write(f"mlflow:{run_id}", window(1))
        write(run, window(2))
        client = mlflow.MlflowClient()
        found = client.get_metric_history(run_id, "fastload/wait_s")
        names = sorted(client.get_run(run_id).data.metrics)
    finally:
        mlflow.set_tracking_uri(None)
    assert [(metric.step, metric.value) for metric in found] == [
        (9, 0.005),
        (19, 0.005),
        (29, 0.005),
    ]
    assert found[0].timestamp == round(window(0).time_s * 1000)
    assert "fastload/region a/b _c__s" in names or "fastload/region a/b __c__s" in names
    assert len([name for name in names if "region" in name]) == 2


def scrape(port, path="/metrics"):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=60) as answer:
        assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        return answer.read().decode()


def test_prometheus():
    (sink,) = resolve("prometheus:0")
    assert scrape(sink.port) == ""
    costs = [finding(), finding(cost_s=0.01), finding("leak", owner='a "sink"\\\n')]
    sink.write(window(3, rank=5, **ODD, inf_s=math.inf), costs)
    families = {family.name: family for family in text_string_to_metric_families(scrape(sink.port))}
    assert {family.type for family in families.values()} == {"gauge"}
    samples = [sample for family in families.values() for sample in family.samples]
    assert {sample.labels["rank"] for sample in samples} == {"5"}
    value = {sample.name: sample.value for sample in samples}
    assert value["fastload_step"] == 39
    assert value["fastload_wait_s"] == 0.005
    assert value["fastload_inf_s"] == math.inf
    assert math.isnan(value["fastload_nan_s"])
    assert value["fastload_findings"] == 3
    assert value["fastload_findings_cost_s"] == pytest.approx(sum(each.cost_s for each in costs))
    assert sorted(value[name] for name in value if "region" in name) == [1.0, 2.0]
    told = families["fastload_finding_cost_s"].samples
    assert [(each.labels["kind"], each.labels["owner"]) for each in told] == [
        ("period", "own code"),
        ("leak", 'a "sink"\\\n'),
    ]
    assert told[0].value == pytest.approx(0.05)
    with pytest.raises(urllib.error.HTTPError, match="404"):
        scrape(sink.port, "/etc/passwd")
    sink.write(window(4), [])
    assert 'fastload_step{rank="0"} 49' in scrape(sink.port, "/")
    sink.close()
    with pytest.raises(urllib.error.URLError):
        scrape(sink.port)


def test_prometheus_answers_beside_a_client_that_says_nothing():
    (sink,) = resolve("prometheus:0")
    sink.write(window(), [])
    with socket.create_connection(("127.0.0.1", sink.port)):
        assert "fastload_step" in scrape(sink.port)
    sink.close()


@pytest.mark.skipif(sys.platform != "linux", reason="wake-ups are read from /proc")
def test_prometheus_sleeps_until_it_is_scraped():
    def wakeups():
        status = Path(f"/proc/self/task/{sink._thread.native_id}/status").read_text()
        return int(status.partition("voluntary_ctxt_switches:")[2].split()[0])

    (sink,) = resolve("prometheus:0")
    scrape(sink.port)
    until(lambda: wakeups() > 0)
    time.sleep(0.2)  # until the answer's last bytes are gone
    before = wakeups()
    time.sleep(1.2)
    assert wakeups() == before
    sink.close()
    assert not sink._thread.is_alive()


def test_prometheus_names_the_port_that_is_taken():
    (sink,) = resolve("prometheus:0")
    with pytest.raises(OSError, match=rf"127.0.0.1:{sink.port}.*another port.*{sink.port + 1}"):
        resolve(f"prometheus:{sink.port}")
    sink.close()


@pytest.mark.parametrize(("local", "above"), [("2", 2), ("", 10)])
def test_each_process_of_a_host_has_its_port(local, above, monkeypatch):
    monkeypatch.setenv("LOCAL_RANK", local)
    for _ in range(20):
        with contextlib.suppress(OSError):  # another program has the port
            (sink,) = resolve("prometheus:0", rank=10)
            sink.close()
            (other,) = resolve(f"prometheus:{sink.port}", rank=10)
            other.close()
            assert other.port == sink.port + above
            return
    pytest.fail("no port is free")


def test_opentelemetry(caplog):
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader

    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])

    def read():
        data = reader.get_metrics_data()
        resources = [] if data is None else data.resource_metrics
        return {
            metric.name: (metric.unit, metric.data.data_points)
            for resource in resources
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }

    (sink,) = resolve(provider.get_meter("training"))
    assert read() == {}
    sink.write(window(0, rank=3), [finding()])
    unit, (point,) = read()["fastload.wait_s"]
    assert (unit, point.value, point.attributes) == ("s", 0.005, {"rank": 3})
    sink.write(window(1, **ODD, loader_bytes=7), [])
    found = read()
    assert found["fastload.step"][1][0].value == 19
    assert "fastload.nan_s" not in found
    assert caplog.records == []
    assert found["fastload.loader_bytes"][0] == "By"
    assert found["fastload.samples_per_s"][0] == "1/s"
    assert len([name for name in found if "region" in name]) == 2
    sink.close()
    assert read() == {}
    provider.shutdown()


def test_sinks_import_no_tracker():
    """The packages are the user's to install; the sinks ask objects, not modules."""
    source = """
        import sys
        import fastload.monitoring.sinks
        print(*sorted({"tensorboard", "wandb", "mlflow", "opentelemetry", "rich"} & sys.modules.keys()))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(source)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []
