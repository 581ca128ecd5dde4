//! The tuner on simulated machines: it settles at the best settings, and stays there.

use proptest::prelude::*;

use super::machine::{MINUTE, Machine, Run, start};
use super::{Bottleneck, Bounds, Reason, Settings};

fn bounds(cores: usize, most_workers: usize) -> Bounds {
    Bounds {
        cores: cores as f64,
        most_workers,
        most_depth: 4 * most_workers,
        budget_bytes: 1e9,
        whole_batches: false,
        workers_are_fixed: false,
        depth_is_fixed: false,
    }
}

/// Runs a minute; returns the settings, which another minute must not change.
fn settled(machine: &Machine, bounds: &Bounds) -> Settings {
    let mut run = Run::from(start(bounds.most_workers));
    run.go(machine, bounds, MINUTE);
    let settings = run.settings;
    let reasons: Vec<_> = run.decisions.iter().map(|d| d.reason.to_string()).collect();
    let before = run.decisions.len();
    run.go(machine, bounds, MINUTE);
    for decision in &run.decisions[before..] {
        assert_eq!(decision.settings, settings, "{reasons:#?}");
    }
    settings
}

/// Asserts that the tuner is within 5 % of the best rate, with few workers more than needed.
fn assert_found(machine: &Machine, bounds: &Bounds) -> Settings {
    let settings = settled(machine, bounds);
    let (fewest, rate) = machine.best(bounds);
    let ours = machine.rate(settings.workers);
    assert!(
        ours >= 0.95 * rate,
        "{ours} of {rate}, {settings:?} for {fewest} workers"
    );
    let most = fewest + fewest.div_ceil(4) + 1;
    assert!(
        settings.workers <= most,
        "{settings:?} for {fewest} workers"
    );
    settings
}

#[test]
fn a_training_that_is_slower_than_one_worker_gets_one() {
    let settings = assert_found(&Machine::with(8.0, 0.02, 0.08), &bounds(8, 8));
    assert_eq!(settings.workers, 1);
}

#[test]
fn a_training_that_takes_everything_gets_every_core() {
    let settings = assert_found(&Machine::with(8.0, 0.03, 1e-4), &bounds(8, 8));
    assert_eq!(settings.workers, 8);
}

#[test]
fn workers_that_wait_for_files_are_more_than_the_cores() {
    let machine = Machine {
        blocked_s: 0.64,
        ..Machine::with(2.0, 0.01, 0.02)
    };
    let settings = assert_found(&machine, &bounds(2, 64));
    assert!(settings.workers > 24, "{settings:?}");
}

#[test]
fn a_lock_that_all_workers_take_bounds_them() {
    let machine = Machine {
        serial_s: 0.015,
        ..Machine::with(16.0, 0.03, 1e-3)
    };
    assert!(assert_found(&machine, &bounds(16, 16)).workers <= 4);
}

#[test]
fn workers_that_hinder_each_other_are_taken_away() {
    let machine = Machine {
        contention: 0.2,
        cpu_s: 0.004,
        blocked_s: 0.036,
        ..Machine::with(16.0, 0.004, 1e-3)
    };
    assert_found(&machine, &bounds(16, 64));
}

#[test]
fn a_step_that_needs_the_cores_keeps_them() {
    let machine = Machine {
        step_cores: 2.0,
        ..Machine::with(2.0, 0.02, 0.05)
    };
    assert_eq!(assert_found(&machine, &bounds(2, 2)).workers, 1);
}

#[test]
fn noise_moves_nothing_that_is_settled() {
    let machine = Machine {
        noise: 0.02,
        ..Machine::with(4.0, 0.05, 0.02)
    };
    assert_found(&machine, &bounds(4, 4));
}

#[test]
fn a_training_that_speeds_up_or_slows_down_is_followed_within_half_a_minute() {
    let bounds = bounds(8, 8);
    let (slow, fast) = (
        Machine::with(8.0, 0.06, 0.2),
        Machine::with(8.0, 0.06, 0.012),
    );
    let mut run = Run::from(start(8));
    for machine in [&slow, &fast, &slow] {
        run.go(machine, &bounds, 15);
        let (fewest, rate) = machine.best(&bounds);
        assert!(machine.rate(run.settings.workers) >= 0.95 * rate);
        assert!(run.settings.workers <= fewest + 2);
        run.go(machine, &bounds, 15);
    }
}

#[test]
fn fixed_settings_are_kept() {
    let bounds = Bounds {
        workers_are_fixed: true,
        depth_is_fixed: true,
        ..bounds(8, 8)
    };
    let machine = Machine::with(8.0, 0.06, 1e-3);
    let mut run = Run::from(Settings {
        workers: 3,
        depth: 5,
    });
    run.go(&machine, &bounds, MINUTE);
    let at_first = Settings {
        workers: 3,
        depth: 5,
    };
    assert!(run.decisions.iter().all(|d| d.settings == at_first));
}

#[test]
fn memory_that_runs_short_lowers_the_depth_and_then_the_workers() {
    let bounds = bounds(8, 8);
    let machine = Machine::with(8.0, 0.06, 1e-3);
    let mut run = Run::from(start(8));
    run.go(&machine, &bounds, MINUTE);
    let window = super::Window {
        memory_share: 0.95,
        ..machine.window(run.settings, 0.0)
    };
    let mut settings = run.settings;
    let mut reasons = Vec::new();
    for _ in 0..8 {
        let decision = super::decide(&window, settings, &mut run.history, &bounds);
        reasons.push(decision.reason.to_string());
        assert!(decision.settings.depth <= settings.depth);
        assert!(decision.settings.depth == 2 || decision.settings.workers == settings.workers);
        settings = decision.settings;
    }
    assert_eq!((settings.workers, settings.depth), (1, 2));
    assert_eq!(reasons[0], "95 % of the memory is used");
}

#[test]
fn a_batch_larger_than_the_budget_is_made_alone() {
    let bounds = Bounds {
        budget_bytes: 1.5e6,
        ..bounds(4, 4)
    };
    let mut run = Run::from(start(4));
    run.go(&Machine::with(4.0, 0.06, 1e-3), &bounds, MINUTE);
    assert_eq!(run.settings.depth, 2); // one batch is handed over while the next is made
}

#[test]
fn windows_without_time_or_batches_do_no_harm() {
    let nothing = super::Window::default();
    let broken = super::Window {
        elapsed_s: f64::NAN,
        work_s: f64::INFINITY,
        samples: -1.0,
        ..nothing
    };
    let bounds = bounds(4, 4);
    let mut run = Run::from(start(4));
    for window in [nothing, broken].iter().cycle().take(100) {
        let decision = super::decide(window, run.settings, &mut run.history, &bounds);
        assert!((1..=4).contains(&decision.settings.workers));
        assert!((1..=16).contains(&decision.settings.depth));
        run.settings = decision.settings;
    }
}

#[test]
fn every_decision_has_a_reason() {
    let mut run = Run::from(start(2));
    run.go(&Machine::with(2.0, 0.04, 0.08), &bounds(2, 2), MINUTE);
    let news = run.decisions.iter().filter(|d| d.reason.is_news());
    let reasons: Vec<_> = news.map(|d| d.reason.to_string()).collect();
    assert_eq!(
        reasons[0],
        "a batch takes 40.000 ms of work and the training 80.000 ms for one; \
         the bottleneck is the training itself"
    );
    assert_eq!(
        reasons.last().unwrap(),
        "settled; the bottleneck is the training itself"
    );
}

#[test]
fn bottlenecks_are_distinguished() {
    let window = Machine::with(2.0, 0.04, 0.001).window(start(2), 0.0);
    assert_eq!(window.bottleneck(), Bottleneck::Decoding);
    let reading = super::Window {
        cpu_s: 0.001,
        ..window
    };
    assert_eq!(reading.bottleneck(), Bottleneck::Reading);
    let interpreter = super::Window {
        serial_s: window.work_s,
        ..window
    };
    assert_eq!(interpreter.bottleneck(), Bottleneck::Interpreter);
    let collation = super::Window {
        collate_s: window.work_s,
        ..window
    };
    assert_eq!(collation.bottleneck(), Bottleneck::Collation);
}

proptest! {
    #[test]
    fn any_machine_is_tuned(
        cores in 1_usize..33,
        cpu_ms in 1.0..200.0_f64,
        blocked_ms in prop_oneof![Just(0.0), 1.0..500.0_f64],
        step_ms in 0.1..300.0_f64,
        step_cores in prop_oneof![Just(0.0), Just(1.0)],
        noise in 0.0..0.003_f64,
    ) {
        let machine = Machine {
            blocked_s: blocked_ms / 1e3,
            step_cores,
            noise,
            ..Machine::with(cores as f64, cpu_ms / 1e3, step_ms / 1e3)
        };
        let bounds = bounds(cores, 4 * cores);
        let mut run = Run::from(start(cores));
        run.go(&machine, &bounds, 2 * MINUTE);
        let rate = machine.best_from(run.settings.workers, &bounds);
        // next to a training that computes, the rate has several maxima: it may be one worker off the best
        let workers = run.settings.workers;
        let off = usize::from(step_cores > 0.0);
        let near = workers.saturating_sub(off).max(1)..=workers + off;
        let found = near.map(|workers| machine.rate(workers)).fold(0.0, f64::max);
        prop_assert!(found >= 0.95 * rate, "{:?}", run.settings);
        let rested = run.decisions.iter().position(|d| matches!(d.reason, Reason::Settled(_)));
        prop_assert!(rested.is_some());
        for decision in &run.decisions {
            prop_assert!((1..=4 * cores).contains(&decision.settings.workers));
            prop_assert!(decision.settings.depth <= bounds.most_depth);
        }
    }
}
