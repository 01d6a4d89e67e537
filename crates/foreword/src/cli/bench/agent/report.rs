//! How the results of `bench agent` look: a table for people, JSON for the rest.

use std::fmt::Write as _;

use foreword_core::text;
use serde_json::{Value, json};

use super::{Ledger, Results, Run};

/// The most calls, the most input for a token that was kept, the least compression,
/// and the most memory of a worker.
const CALLS: u64 = 15;
const INPUT_PER_KEPT: f64 = 1.5;
const SENT_PER_MEMORY: f64 = 10.0;
const PEAK_MEGABYTES: f64 = 60.0;

pub fn table(results: &Results) -> String {
    let (machine, program) = (&results.machine, &results.program);
    let mut out = format!(
        "foreword {} ({}, {:.1} MB), {} cores of {}, Linux {}\n\
         {} tool uses in {} turns: {} tokens as the host sent them, {} were kept; a token is four characters\n\n",
        program.version,
        program.linkage.word(),
        program.bytes as f64 / 1e6,
        machine.cores,
        machine.cpu,
        machine.kernel,
        results.tool_uses,
        results.turns,
        results.sent,
        results.kept,
    );
    let _ = writeln!(
        out,
        "{:<26} {:>14} {:>14}  {:<8} met",
        "", "turn by turn", "at once", "goal"
    );
    for row in rows(results) {
        let [one, other] = &row.shown;
        let met = row.met.map_or("", |met| if met { "yes" } else { "NO" });
        let line = format!(
            "{:<26} {one:>14} {other:>14}  {:<8} {met}",
            row.name, row.goal
        );
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out
}

struct Row {
    name: &'static str,
    shown: [String; 2],
    goal: String,
    /// By both ways; none where there is no goal.
    met: Option<bool>,
}

fn rows(results: &Results) -> Vec<Row> {
    let runs = [&results.turn_by_turn, &results.at_once];
    let kept = results.kept as f64;
    let plain = |name, shown: fn(&Run) -> String| Row {
        name,
        shown: runs.map(shown),
        goal: String::new(),
        met: None,
    };
    let goal = |name, goal: String, number: &dyn Fn(&Run) -> f64, met: &dyn Fn(f64) -> bool| {
        let numbers = runs.map(number);
        Row {
            name,
            shown: numbers.map(|it| {
                if it.fract() == 0.0 {
                    it.to_string()
                } else {
                    format!("{it:.2}")
                }
            }),
            goal,
            met: Some(numbers.iter().all(|&it| met(it))),
        }
    };
    vec![
        plain("events stored", |run| {
            format!("{} of {}", run.stored, run.events)
        }),
        goal(
            "calls",
            format!("≤ {CALLS}"),
            &|run| run.counted.calls as f64,
            &|it| it > 0.0 && it <= CALLS as f64,
        ),
        plain("input tokens", |run| run.counted.input.to_string()),
        plain("  of them instructions", |run| {
            run.counted.instructions.to_string()
        }),
        goal(
            "input / kept",
            format!("≤ {INPUT_PER_KEPT}"),
            &|run| run.counted.input as f64 / kept,
            &|it| it > 0.0 && it <= INPUT_PER_KEPT,
        ),
        plain("output tokens", |run| run.counted.output.to_string()),
        plain("observations stored", |run| {
            let (memory, said) = (&run.memory, run.counted.observations);
            format!("{} of {said}", memory.by_the_model)
        }),
        plain("  others, offline", |run| {
            (run.memory.observations - run.memory.by_the_model).to_string()
        }),
        plain("summaries stored", |run| {
            format!("{} of {}", run.memory.summaries, run.counted.summaries)
        }),
        plain("memory tokens", |run| run.memory.tokens.to_string()),
        goal(
            "sent / memory",
            format!("≥ {SENT_PER_MEMORY}"),
            &|run| results.sent as f64 / run.memory.tokens as f64,
            &|it| it.is_finite() && it >= SENT_PER_MEMORY,
        ),
        Row {
            name: "kept / memory",
            shown: runs.map(|run| format!("{:.2}", kept / run.memory.tokens as f64)),
            goal: String::new(),
            met: None,
        },
        Row {
            name: "ledger = server",
            shown: runs.map(|run| run.ledger_word().to_owned()),
            goal: "same".to_owned(),
            met: Some(runs.iter().all(|run| run.ledger_agrees() == Some(true))),
        },
        goal(
            "worker's peak, MB",
            format!("≤ {PEAK_MEGABYTES}"),
            &Run::peak_megabytes,
            &|it| it > 0.0 && it <= PEAK_MEGABYTES,
        ),
        goal(
            "processes left over",
            "0".to_owned(),
            &|run| run.left_over as f64,
            &|it| it == 0.0,
        ),
        goal(
            "calls when idle",
            "0".to_owned(),
            &|run| run.calls_when_idle as f64,
            &|it| it == 0.0,
        ),
    ]
}

impl Run {
    fn peak_megabytes(&self) -> f64 {
        (self.peak_kilobytes as f64 * 1.024 / 10.0).round() / 100.0
    }

    fn ledger_agrees(&self) -> Option<bool> {
        let counted = Ledger {
            calls: self.counted.calls,
            input: self.counted.input,
            output: self.counted.output,
        };
        self.ledger.as_ref().map(|ledger| *ledger == counted)
    }

    fn ledger_word(&self) -> &'static str {
        match self.ledger_agrees() {
            None => "there is none",
            Some(true) => "same",
            Some(false) => "differs",
        }
    }
}

pub fn json(results: &Results) -> Value {
    let goals: Value = rows(results)
        .into_iter()
        .filter_map(|row| {
            Some((
                row.name.to_owned(),
                json!({"goal": row.goal, "met": row.met?}),
            ))
        })
        .collect();
    json!({
        "bench": "agent",
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
        "turns": results.turns,
        "tool_uses": results.tool_uses,
        "sent_tokens": results.sent,
        "kept_tokens": results.kept,
        "turn_by_turn": run(&results.turn_by_turn),
        "at_once": run(&results.at_once),
        "goals": goals,
    })
}

fn run(run: &Run) -> Value {
    let ledger = run
        .ledger
        .as_ref()
        .map(|it| json!({"calls": it.calls, "input_tokens": it.input, "output_tokens": it.output}));
    json!({
        "events": run.events,
        "stored": run.stored,
        "calls": run.counted.calls,
        "input_tokens": run.counted.input,
        "instruction_tokens": run.counted.instructions,
        "input_tokens_by_call": run.counted.inputs,
        "output_tokens": run.counted.output,
        "strange_requests": run.counted.strange,
        "observations": run.memory.observations,
        "observations_by_the_model": run.memory.by_the_model,
        "observations_answered": run.counted.observations,
        "summaries": run.memory.summaries,
        "summaries_answered": run.counted.summaries,
        "memory_tokens": run.memory.tokens,
        "ledger": ledger,
        "worker_peak_kilobytes": run.peak_kilobytes,
        "processes_left_over": run.left_over,
        "calls_when_idle": run.calls_when_idle,
    })
}
