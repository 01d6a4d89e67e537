//! How the results of `bench hooks` look: a table for people, JSON for the rest.

use std::fmt::Write as _;
use std::time::Duration;

use foreword_core::text;
use serde_json::{Map, Value, json};

use super::burst::{AT_ONCE, Burst, EVENTS};
use super::hooks::{Measured, Results, Round};
use super::machine::Linkage;
use super::spawn::{REFERENCE, Sample};
use super::statistics::{PERCENTILES, milliseconds, percentile};

pub fn table(results: &Results) -> String {
    let mut out = String::new();
    let (machine, program) = (&results.machine, &results.program);
    let _ = writeln!(
        out,
        "foreword {} ({}, {:.1} MB), {} cores of {}, Linux {}\n\
         times in ms; × is the multiple of {REFERENCE} at the same percentile, median of {} rounds\n",
        program.version,
        program.linkage.word(),
        program.bytes as f64 / 1e6,
        machine.cores,
        machine.cpu,
        machine.kernel,
        results.rounds,
    );
    let _ = writeln!(
        out,
        "{:<20} {:>6} {:>7} {:>7} {:>7}  {:>6} {:>6} {:>6}  {:>6}  {:<14} met",
        "scenario", "true", "p50", "p95", "p99", "p50 ×", "p95 ×", "p99 ×", "faults", "goal ×"
    );
    for measured in &results.scenarios {
        let _ = writeln!(
            out,
            "{:<20} {:>6.2} {:>7.2} {:>7.2} {:>7.2}  {:>6.2} {:>6.2} {:>6.2}  {:>6}  {:<14} {}{}",
            measured.key,
            measured.reference(50),
            measured.hook(50),
            measured.hook(95),
            measured.hook(99),
            measured.ratio(50),
            measured.ratio(95),
            measured.ratio(99),
            percentile(&measured.minor_faults(), 50).unwrap_or(0),
            goal(measured),
            yes_or_no(measured.met()),
            measured
                .note
                .as_ref()
                .map(|note| format!(" ({note})"))
                .unwrap_or_default(),
        );
    }
    if let Some(burst) = &results.burst {
        let _ = writeln!(out, "{}", burst_line(burst));
    }
    out
}

fn goal(measured: &Measured) -> String {
    let goals = PERCENTILES
        .iter()
        .filter_map(|&percent| measured.goal.at(percent));
    let goals: Vec<String> = goals.map(|goal| goal.to_string()).collect();
    goals.join(" / ")
}

fn burst_line(burst: &Burst) -> String {
    format!(
        "{:<20} {EVENTS} events, {AT_ONCE} hooks at once: {} failed, {} stored, {} keys; \
         {:.1} s, drained after {:.1} s  {}",
        "burst",
        burst.failed,
        burst.stored.events,
        burst.stored.keys,
        burst.took.as_secs_f64(),
        burst.drained.as_secs_f64(),
        yes_or_no(burst.met()),
    )
}

fn yes_or_no(met: bool) -> &'static str {
    if met { "yes" } else { "NO" }
}

pub fn json(results: &Results) -> Value {
    let mut scenarios: Map<String, Value> = results
        .scenarios
        .iter()
        .map(|measured| (measured.key.to_owned(), scenario(measured)))
        .collect();
    if let Some(burst) = &results.burst {
        scenarios.insert("burst".to_owned(), burst_json(burst));
    }
    json!({
        "bench": "hooks",
        "at": text::rfc3339(results.at),
        "machine": {
            "cores": results.machine.cores,
            "cpu": results.machine.cpu,
            "kernel": results.machine.kernel,
        },
        "program": {
            "version": results.program.version,
            "linkage": results.program.linkage.word(),
            "bytes": results.program.bytes,
        },
        "reference": REFERENCE,
        "rounds": results.rounds,
        "samples": results.samples,
        "scenarios": scenarios,
    })
}

fn scenario(measured: &Measured) -> Value {
    json!({
        "hook_ms": by_percentile(|percent| measured.hook(percent)),
        "reference_ms": by_percentile(|percent| measured.reference(percent)),
        "ratio": by_percentile(|percent| measured.ratio(percent)),
        "ratio_to_reference_p50": by_percentile(|percent| measured.ratio_to_median(percent)),
        "minor_faults": percentile(&measured.minor_faults(), 50),
        "minor_faults_least": measured.minor_faults().iter().min(),
        "reference_minor_faults": percentile(&measured.reference_minor_faults(), 50),
        "goal": {"p50": measured.goal.p50, "p95": measured.goal.p95, "p99": measured.goal.p99},
        "met": measured.met(),
        "note": measured.note,
        "raw": measured.rounds.iter().map(raw).collect::<Value>(),
    })
}

fn by_percentile(number: impl Fn(u32) -> f64) -> Value {
    let numbers = PERCENTILES.iter();
    numbers
        .map(|&percent| (format!("p{percent}"), Value::from(rounded(number(percent)))))
        .collect()
}

fn rounded(number: f64) -> f64 {
    (number * 1000.0).round() / 1000.0
}

/// Microseconds, in the order in which they were taken.
fn raw(round: &Round) -> Value {
    let micros = |samples: &[Sample]| {
        samples
            .iter()
            .map(|sample| Value::from(sample.took.as_micros() as u64))
            .collect::<Value>()
    };
    json!({"reference_us": micros(&round.reference), "hook_us": micros(&round.hook)})
}

fn burst_json(burst: &Burst) -> Value {
    let at =
        |percent| percentile(&burst.spawns, percent).map(|it: Duration| rounded(milliseconds(it)));
    json!({
        "events": EVENTS,
        "at_once": AT_ONCE,
        "failed": burst.failed,
        "processed_events": burst.stored.processed,
        "stored_events": burst.stored.events,
        "distinct_keys": burst.stored.keys,
        "hooks_done_ms": rounded(milliseconds(burst.took)),
        "drained_ms": rounded(milliseconds(burst.drained)),
        "hook_ms": {"p50": at(50), "p95": at(95), "p99": at(99)},
        "met": burst.met(),
    })
}

impl Linkage {
    pub fn word(self) -> &'static str {
        match self {
            Linkage::Static => "static",
            Linkage::Dynamic => "plain",
        }
    }
}
