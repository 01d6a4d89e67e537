//! Formats the cost of models, pauses of a provider, and the result of `redo`.

use std::fmt::Write as _;

use foreword_core::model::Kind;
use foreword_core::recall::bill::{Cost, StoodIn};
use foreword_core::store::DerivedItem;
use foreword_core::text::{self, count, one_line};
use serde_json::{Value, json};

use crate::agent::leash::{Pause, Unfit};
use crate::agent::provider::prices;
use crate::config::provider::Name;
use crate::doctor::agent::AgentStatus;
use crate::doctor::ask::SampleAnswer;
use crate::doctor::bill::Bill;
use crate::local_time;
use crate::worker::redo::{Plan, RedoTarget, Redone};

/// `$0.12`; less than a cent is shown in full.
pub fn usd(amount: f64) -> String {
    if amount > 0.0 && amount < 0.01 {
        format!("${amount:.4}")
    } else {
        format!("${amount:.2}")
    }
}

fn known_usd(amount: Option<f64>) -> String {
    amount.map_or_else(|| "price not known".to_owned(), usd)
}

pub fn bill(bill: &Bill) -> String {
    let Cost {
        calls,
        failed,
        input_tokens,
        output_tokens,
        cache_read_tokens,
        cache_write_tokens,
        usd: cost,
        unpriced,
        raw_tokens,
        memory_tokens,
    } = bill.cost;
    let mut out = String::new();
    let mut line = |name: &str, text: String| {
        let _ = writeln!(out, "{name:<12}{text}");
    };
    let failed = match failed {
        0 => String::new(),
        failed => format!(", {failed} failed"),
    };
    let since = match bill.since {
        Some(since) => format!("since {}", local_time::minute(since)),
        None => "in all".to_owned(),
    };
    line("calls", format!("{calls}{failed} ({since})"));
    let cached = format!("{cache_read_tokens} from the cache, {cache_write_tokens} written to it");
    let tokens = format!("{input_tokens} in ({cached}), {output_tokens} out");
    line("tokens", tokens);
    let unpriced = match (cost, unpriced) {
        (Some(_), 1..) => {
            format!(", and {}", count(unpriced, "call", "calls")) + " whose price is not known"
        }
        _ => String::new(),
    };
    let (usd, as_of) = (known_usd(cost), prices::AS_OF);
    line(
        "cost",
        format!("{usd}{unpriced} (list prices of {as_of}; the claude CLI counts its own)"),
    );
    line("budget", today(&bill.agent));
    if raw_tokens > 0 {
        line("memory", ratio(raw_tokens, memory_tokens));
    }
    if !bill.models.is_empty() {
        let _ = writeln!(out);
    }
    for model in &bill.models {
        let name = model.model.as_deref().unwrap_or("(no answer)");
        let cost = match model.output_tokens {
            0 => String::new(),
            _ => known_usd(model.usd),
        };
        let line = format!(
            "{:<10}  {:<24} {:>6} calls {:>5} failed {:>9} in {:>8} out  {cost}",
            model.provider,
            one_line(name),
            model.calls,
            model.failed,
            model.input_tokens,
            model.output_tokens,
        );
        let _ = writeln!(out, "{}", line.trim_end());
    }
    for stood_in in &bill.stand_ins {
        let _ = writeln!(out, "{}", stand_in(stood_in));
    }
    out
}

fn ratio(raw: u64, memory: u64) -> String {
    let ratio = if memory > 0 && raw > memory {
        format!(" ({:.0}:1)", raw as f64 / memory as f64)
    } else {
        String::new()
    };
    format!("{raw} tokens of tool output became {memory} tokens of memory{ratio}")
}

/// `$0.12 of $1.00 today, 14 calls`.
pub fn today(agent: &AgentStatus) -> String {
    let calls = count(agent.today.calls, "call", "calls");
    match agent.today.usd {
        Some(spent) => format!(
            "{} of {} today, {calls}",
            usd(spent),
            usd(agent.budget.daily_usd)
        ),
        None => format!("{calls} today, of a model whose price is not known"),
    }
}

pub fn stand_in(stood_in: &StoodIn) -> String {
    format!(
        "{} went offline: {}",
        count(stood_in.batches, "batch", "batches"),
        one_line(&stood_in.why)
    )
}

pub fn pause(pause: &Pause) -> String {
    format!(
        "since {}, until {} ({}): {}; `foreword retry` asks at once",
        local_time::minute(pause.since),
        local_time::minute(pause.until),
        pause.kind,
        one_line(&pause.reason)
    )
}

pub fn unfit(unfit: &Unfit) -> String {
    format!(
        "{}; memory is made offline until {}, or `foreword retry` asks at once",
        one_line(&unfit.line()),
        local_time::minute(unfit.until)
    )
}

/// How a model answered the question of `doctor --ask`.
pub fn sample_answer(answer: &SampleAnswer) -> String {
    let seconds = answer.seconds;
    match &answer.usable {
        Ok(titles) => {
            let titles: Vec<String> = titles.iter().map(|it| one_line(it)).collect();
            let titles = titles.join("; ");
            format!("answered in {seconds:.1} s, and the answer can be used: {titles}\n")
        }
        Err(why) => format!(
            "answered in {seconds:.1} s, and the answer cannot be used: {}\n",
            one_line(why)
        ),
    }
}

pub fn pause_json(pause: &Pause) -> Value {
    json!({
        "since": text::rfc3339(pause.since),
        "until": text::rfc3339(pause.until),
        "kind": pause.kind,
        "reason": pause.reason,
    })
}

pub fn bill_json(bill: &Bill) -> Value {
    let (today, budget) = (&bill.agent.today, &bill.agent.budget);
    let mut value = json!(bill.cost);
    value["since"] = bill.since.map(text::rfc3339).into();
    value["today"] = json!({"calls": today.calls, "cost_usd": today.usd});
    value["budget"] = json!({"daily_usd": budget.daily_usd, "session_usd": budget.session_usd});
    value["models"] = json!(bill.models);
    value["stand_ins"] = json!(bill.stand_ins);
    value
}

pub fn redo_plan(
    subject: &RedoTarget,
    provider: Name,
    plan: &Plan,
    made: &[DerivedItem],
) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "session {}: {}, {}",
        one_line(&subject.session.id),
        count(subject.kept.turns as u64, "turn", "turns"),
        count(plan.events as u64, "event", "events")
    );
    let (name, tokens) = (provider.as_str(), plan.input_tokens);
    let times = count(plan.batches as u64, "time", "times");
    let _ = match provider {
        Name::Agent | Name::Offline => {
            writeln!(out, "  offline would derive from them; no model is asked")
        }
        _ => writeln!(
            out,
            "  {name} would be asked {times}, about {tokens} tokens"
        ),
    };
    let _ = if made.is_empty() {
        writeln!(out, "  nothing was made of them before")
    } else {
        writeln!(out, "  would be replaced: {}", numbers(made.iter()))
    };
    out + &gone(subject)
}

pub fn redone(
    subject: &RedoTarget,
    provider: Name,
    redone: Redone,
    before: &[DerivedItem],
    after: &[DerivedItem],
) -> String {
    let is_in =
        |made: &DerivedItem, others: &[DerivedItem]| others.iter().any(|it| it.id == made.id);
    let mut out = String::new();
    let _ = writeln!(
        out,
        "session {}: {} again, by {}: {} in {}",
        one_line(&subject.session.id),
        count(
            subject.kept.turns as u64,
            "turn was processed",
            "turns were processed"
        ),
        match provider {
            Name::Offline => "rules, without a model",
            name => name.as_str(),
        },
        count(redone.events as u64, "event", "events"),
        count(redone.batches as u64, "batch", "batches")
    );
    for (name, made, others, wanted) in [
        ("replaced", after, before, true),
        ("removed", before, after, false),
        ("added", after, before, false),
    ] {
        let numbers = numbers(made.iter().filter(|it| is_in(it, others) == wanted));
        if !numbers.is_empty() {
            let _ = writeln!(out, "  {name}: {numbers}");
        }
    }
    out + &gone(subject)
}

fn gone(subject: &RedoTarget) -> String {
    match subject.kept.gone as u64 {
        0 => String::new(),
        1 => "  1 turn stays as it is: its events are gone\n".to_owned(),
        gone => format!("  {gone} turns stay as they are: their events are gone\n"),
    }
}

fn numbers<'a>(made: impl Iterator<Item = &'a DerivedItem>) -> String {
    let words = made.map(|made| match made.kind {
        Kind::Summary => format!("#{} (summary)", made.id),
        _ => format!("#{}", made.id),
    });
    words.collect::<Vec<_>>().join(", ")
}
