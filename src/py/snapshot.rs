//! A snapshot of a stream's counters: for Python's `stats`, and for the tuner.

use std::time::{Duration, Instant};

use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::tune::Window;
use crate::stats::Stats;
use crate::tune::{self, Bottleneck};

/// See the module's documentation.
pub(super) struct Snapshot {
    at: Instant,
    stats: Stats,
    batch_bytes: u64,
    /// Time that Python spent on files that native code refused.
    asked: Duration,
}

impl Snapshot {
    pub(super) fn now(stats: Stats, batch_bytes: u64, asked: Duration) -> Snapshot {
        Snapshot {
            at: Instant::now(),
            stats,
            batch_bytes,
            asked,
        }
    }

    /// Returns what was measured since `last`.
    pub(super) fn since(&self, last: &Snapshot, pool_cpu_s: f64, memory_share: f64) -> Window {
        let (now, then) = (&self.stats, &last.stats);
        let batches = now.batches.saturating_sub(then.batches) as f64;
        let per_batch = |seconds: f64| seconds / batches.max(1.0);
        let elapsed_s = (self.at - last.at).as_secs_f64();
        let spent = |of: fn(&Stats) -> Duration| of(now).saturating_sub(of(then)).as_secs_f64();
        let stage = |of: fn(&Stats) -> Duration| per_batch(spent(of));
        let (least_ready, most_ready) = now.marks.ready();
        let making = now.making.since(&then.making);
        Window(tune::Window {
            elapsed_s,
            batches,
            samples: now.taken.saturating_sub(then.taken) as f64,
            step_s: now.marks.step().as_secs_f64(),
            wait_s: per_batch((elapsed_s - spent(|stats| stats.stepped)).max(0.0)),
            work_s: stage(|stats| stats.busy),
            cpu_s: per_batch(pool_cpu_s + spent(|stats| stats.made_here)),
            serial_s: per_batch(self.asked.saturating_sub(last.asked).as_secs_f64()),
            read_s: stage(|stats| stats.stages.read),
            collate_s: stage(|stats| stats.stages.collate),
            tail_s: making.at(0.99).saturating_sub(making.at(0.5)).as_secs_f64(),
            least_ready: least_ready as f64,
            most_ready: most_ready as f64,
            batch_bytes: self.batch_bytes as f64,
            memory_share,
            ..tune::Window::default()
        })
    }

    pub(super) fn counters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = &self.stats;
        let dict = PyDict::new(py);
        for (name, duration) in [
            ("read_s", stats.stages.read),
            ("decode_s", stats.stages.decode),
            ("transform_s", stats.stages.transform),
            ("collate_s", stats.stages.collate),
            ("wait_s", stats.wait),
            ("busy_s", stats.busy),
            ("idle_s", stats.idle),
            ("wait_p50_s", stats.waiting.at(0.5)),
            ("wait_p99_s", stats.waiting.at(0.99)),
            ("batch_p50_s", stats.making.at(0.5)),
            ("batch_p99_s", stats.making.at(0.99)),
            ("sample_p50_s", stats.computing.at(0.5)),
            ("sample_p99_s", stats.computing.at(0.99)),
        ] {
            dict.set_item(name, duration.as_secs_f64())?;
        }
        for (name, count) in [
            ("batches", stats.batches),
            ("samples", stats.samples),
            ("read_bytes", stats.stages.read_bytes),
        ] {
            dict.set_item(name, count)?;
        }
        if let Some(bottleneck) = self.bottleneck() {
            dict.set_item("bottleneck", bottleneck.to_string())?;
        }
        Ok(dict)
    }

    /// Returns the bottleneck since the stream was opened; None before the second batch.
    fn bottleneck(&self) -> Option<Bottleneck> {
        let stats = &self.stats;
        let window = tune::Window {
            step_s: stats.stepped.as_secs_f64(),
            wait_s: stats.called.as_secs_f64(),
            work_s: stats.busy.as_secs_f64(),
            serial_s: self.asked.as_secs_f64(),
            read_s: stats.stages.read.as_secs_f64(),
            collate_s: stats.stages.collate.as_secs_f64(),
            ..tune::Window::default()
        };
        (stats.batches > 1).then(|| window.bottleneck())
    }
}
