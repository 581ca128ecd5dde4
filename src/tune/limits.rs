//! Tests of the limits that the tuner never exceeds, and of its reaction to shortages.

use proptest::prelude::*;

use super::machine::{MINUTE, Machine, Run, start};
use super::{Bounds, Decision, History, Reason, Settings, Window, decide};

fn python(cores: usize, budget_bytes: f64) -> Bounds {
    Bounds {
        cores: cores as f64,
        most_workers: 16 * cores,
        most_depth: 32 * cores,
        budget_bytes,
        whole_batches: true,
        workers_are_fixed: false,
        depth_is_fixed: false,
    }
}

/// Feeds the tuner windows of a machine, each modified by `change`.
fn run(machine: &Machine, bounds: &Bounds, change: impl Fn(Window) -> Window) -> Vec<Decision> {
    let (mut settings, mut history) = (start(bounds.most_workers.div_ceil(16)), History::default());
    let mut decisions = Vec::new();
    for _ in 0..2 * MINUTE {
        let window = change(machine.window(settings, 0.0));
        let decision = decide(&window, settings, &mut history, bounds);
        settings = decision.settings;
        decisions.push(decision);
    }
    decisions
}

fn waiting() -> Machine {
    Machine {
        blocked_s: 0.64,
        ..Machine::with(2.0, 0.002, 1e-3)
    }
}

#[test]
fn each_python_worker_has_a_batch_in_hand_and_one_is_handed_over() {
    for decision in run(&waiting(), &python(2, 1e9), |window| window) {
        assert!(decision.settings.depth > decision.settings.workers);
    }
}

#[test]
fn python_workers_that_wait_are_as_many_as_may_be() {
    let decisions = run(&waiting(), &python(2, 1e9), |window| window);
    let last = decisions.last().unwrap().settings;
    assert!(last.workers > 24, "{last:?}");
}

#[test]
fn workers_fit_into_the_memory_that_one_was_seen_to_take() {
    let mut most = 0;
    for decision in run(&waiting(), &python(2, 1e9), |window| {
        let mut window = Window {
            worker_bytes: 1e9,
            ..window
        };
        window.machine.free_bytes = 10e9 - 1e9 * (window.work_s * window.batches / 2.0);
        window
    }) {
        most = most.max(decision.settings.workers);
    }
    assert!((3..=10).contains(&most), "{most}");
}

#[test]
fn an_exhausted_quota_gets_no_more_workers() {
    let machine = Machine::with(2.0, 0.02, 1e-3);
    let bounds = Bounds {
        most_workers: 8,
        ..python(8, 1e9)
    };
    let one = Settings {
        workers: 1,
        depth: 2,
    };
    let window = |settings| {
        let mut window = machine.window(settings, 0.0);
        window.machine.throttled = 0.5;
        window
    };
    let (mut settings, mut history) = (one, History::after_the_jump());
    for _ in 0..MINUTE {
        let decision = decide(&window(settings), settings, &mut history, &bounds);
        settings = decision.settings;
        assert_eq!(settings.workers, 1);
    }
}

#[test]
fn memory_is_given_back_when_everything_waits_for_it() {
    let decisions = run(&Machine::with(2.0, 0.02, 1e-3), &python(2, 1e9), |window| {
        let mut window = window;
        window.machine.memory_stall = 0.2;
        window
    });
    assert_eq!(
        decisions[0].reason.to_string(),
        "for 20 % of the time everything waits for memory"
    );
    let last = decisions.last().unwrap();
    assert_eq!((last.settings.workers, last.settings.depth), (1, 2));
    let reports = decisions.iter().filter(|d| d.reason.is_news()).count();
    assert!(reports < 6, "{reports} lines for one thing");
}

#[test]
fn advice_on_fixed_settings_is_given_once() {
    let bounds = Bounds {
        workers_are_fixed: true,
        depth_is_fixed: true,
        ..python(4, 1e9)
    };
    let decisions = run(&Machine::with(4.0, 0.04, 0.08), &bounds, |window| window);
    assert!(decisions.iter().all(|d| d.settings == start(4)));
    let news: Vec<_> = decisions.iter().filter(|d| d.reason.is_news()).collect();
    let [only] = news[..] else {
        panic!("{news:#?}");
    };
    assert_eq!(
        only.reason.to_string(),
        "num_workers=4 is obeyed; AUTO would begin with 1, for a batch takes 40.000 ms of work and \
         the training 80.000 ms for one; the bottleneck is the training itself"
    );
}

#[test]
fn a_fixed_depth_per_worker_is_kept() {
    let bounds = Bounds {
        depth_is_fixed: true,
        ..python(2, 1e9)
    };
    for decision in run(&waiting(), &bounds, |window| window) {
        assert_eq!(decision.settings.depth, 2 * decision.settings.workers);
    }
}

#[test]
fn batches_that_grow_beyond_the_budget_are_fewer_at_once() {
    let bounds = Bounds {
        most_workers: 4,
        whole_batches: false,
        ..python(4, 10e6)
    };
    let machine = Machine::with(4.0, 0.04, 1e-3);
    let mut run = Run::from(start(4));
    run.go(&machine, &bounds, MINUTE);
    let window = Window {
        batch_bytes: 3e6,
        ..machine.window(run.settings, 0.0)
    };
    let decision = decide(&window, run.settings, &mut run.history, &bounds);
    assert_eq!(decision.settings.depth, 3);
    assert_eq!(
        decision.reason.to_string(),
        "the batches in flight, 3.0 MB each, exceed the memory budget of 10 MB"
    );
}

#[test]
fn an_epoch_tries_anew_only_what_has_rested_for_long() {
    let (machine, bounds) = (Machine::with(4.0, 0.05, 0.02), python(4, 1e9));
    let mut run = Run::from(start(4));
    run.go(&machine, &bounds, MINUTE);
    run.history.rearm();
    let before = run.decisions.len();
    run.go(&machine, &bounds, 5 * MINUTE + 1);
    let tried = |decisions: &[Decision]| {
        decisions
            .iter()
            .any(|d| matches!(d.reason, Reason::Trying(..)))
    };
    assert!(!tried(&run.decisions[before..]));
    run.history.rearm();
    let before = run.decisions.len();
    run.go(&machine, &bounds, MINUTE);
    assert!(tried(&run.decisions[before..]));
}

#[test]
fn bursts_of_storage_do_not_make_it_oscillate() {
    let fast = Machine {
        blocked_s: 0.02,
        ..Machine::with(4.0, 0.02, 0.01)
    };
    let slow = Machine {
        blocked_s: 0.06,
        ..fast
    };
    let bounds = Bounds {
        whole_batches: false,
        ..python(4, 1e9)
    };
    let mut run = Run::from(start(4));
    for window in 0..10 * MINUTE {
        run.go(if window % 4 == 3 { &slow } else { &fast }, &bounds, 1);
    }
    let late = &run.decisions[5 * MINUTE..];
    let moves = late.windows(2).filter(|d| d[0].settings != d[1].settings);
    assert!(moves.count() <= 10, "in five minutes");
}

#[test]
fn slow_samples_are_bridged_by_batches_ahead() {
    let bounds = Bounds {
        whole_batches: false,
        ..python(2, 1e9)
    };
    let machine = Machine::with(2.0, 0.02, 0.01);
    let late = |window| Window {
        tail_s: 0.5,
        ..window
    };
    let decisions = run(&machine, &bounds, late);
    assert!(decisions[0].settings.depth > start(2).depth);
}

proptest! {
    #[test]
    fn no_machine_gets_more_than_its_budgets(
        cores in 1_usize..17,
        cpu_ms in 1.0..200.0_f64,
        blocked_ms in prop_oneof![Just(0.0), 1.0..500.0_f64],
        step_ms in 0.1..300.0_f64,
        batch_bytes in 1e3..1e9_f64,
        worker_bytes in prop_oneof![Just(0.0), 1e6..1e10_f64],
        free_bytes in 0.0..64e9_f64,
        tail_s in 0.0..1.0_f64,
        whole_batches: bool,
    ) {
        let machine = Machine {
            blocked_s: blocked_ms / 1e3,
            ..Machine::with(cores as f64, cpu_ms / 1e3, step_ms / 1e3)
        };
        let bounds = Bounds { whole_batches, ..python(cores, 2e9) };
        let mut workers = cores;
        let decisions = run(&machine, &bounds, |window| {
            let mut window = Window { tail_s, batch_bytes, worker_bytes, ..window };
            window.machine.free_bytes = free_bytes;
            window
        });
        for Decision { settings, .. } in decisions {
            prop_assert!((1..=bounds.most_workers).contains(&settings.workers));
            prop_assert!((2..=bounds.most_depth).contains(&settings.depth));
            prop_assert!(settings.depth as f64 * batch_bytes <= 2e9 || settings.depth == 2);
            let further = settings.workers.saturating_sub(workers) as f64;
            prop_assert!(further * worker_bytes <= free_bytes / 2.0);
            workers = settings.workers;
        }
    }

    #[test]
    fn no_step_is_longer_for_long(
        cores in 2_usize..17,
        cpu_ms in 1.0..100.0_f64,
        step_ms in 10.0..300.0_f64,
    ) {
        let machine = Machine {
            step_cores: 1.0,
            ..Machine::with(cores as f64, cpu_ms / 1e3, step_ms / 1e3)
        };
        let bounds = Bounds { whole_batches: false, most_workers: cores, ..python(cores, 1e9) };
        let mut run = Run::from(start(cores));
        run.go(&machine, &bounds, 2 * MINUTE);
        let visited: Vec<_> = run.decisions.iter().map(|d| d.settings.workers).collect();
        let worse = visited.iter().enumerate().filter(|(at, now)| {
            visited[..*at].iter().any(|before| {
                machine.rate(*before) >= machine.rate(**now)
                    && 1.03 * machine.step(*before) < machine.step(**now)
            })
        });
        let worse = worse.count();
        prop_assert!(worse <= 8, "{worse} windows at more for nothing: {visited:?}");
    }
}
