//! `foreword status`: shows what was captured, what is pending and what failed.

use foreword_core::text::rfc3339;
use serde_json::json;

use super::JsonArgs;
use crate::agent::leash::Unfit;
use crate::doctor::agent::AgentStatus;
use crate::doctor::status::{Status, gather, is_off_here};
use crate::host::Permission;
use crate::{service, show};

pub fn run(args: &JsonArgs) -> anyhow::Result<()> {
    let status = gather(service::home_to_write()?)?;
    show::print(args.json(), || as_json(&status), || show::status(&status));
    Ok(())
}

fn as_json(status: &Status) -> serde_json::Value {
    let (provider, reason) = match &status.agent {
        Ok(agent) => (
            Some(agent.choice.name.as_str()),
            agent.choice.reason.clone(),
        ),
        Err(error) => (None, error.clone()),
    };
    let agent = status.agent.as_ref().ok();
    let pause = agent.and_then(|agent| agent.pause.as_ref());
    let stood_in = agent.and_then(|agent| agent.stand_ins.first());
    json!({
        "pending": status.queue.pending + status.spooled,
        "skipped": status.queue.skipped,
        "last_event_at": status.last_event_at.map(rfc3339),
        "observations": status.totals.observations,
        "summaries": status.totals.summaries,
        "prompts": status.totals.prompts,
        "sessions": status.totals.sessions,
        "projects": status.totals.projects,
        "worker": {"running": status.worker_pid.is_some(), "pid": status.worker_pid},
        "provider": provider,
        "provider_reason": reason,
        "provider_problem": agent.and_then(|agent| agent.problem.as_ref()).map(|problem| &problem.reason),
        "paused": pause.map(show::pause_json),
        "unfit": agent.and_then(|agent| agent.unfit.as_ref()).map(Unfit::line),
        "cost_today_usd": agent.and_then(|agent| agent.today.usd),
        "calls_today": agent.map(|agent| agent.today.calls),
        "budget_usd": agent.map(|agent| agent.budget.daily_usd),
        "stand_ins": agent.map(AgentStatus::stood_in),
        "stand_ins_reason": stood_in.map(|it| it.why.as_str()),
        "embedded": status.embedded,
        "server": status.server,
        "tools_allowed": status.permission == Permission::Allowed,
        "off": is_off_here(),
        "switched_off": status.off,
        "repository": status.repository,
        "home": status.home.dir(),
        "lost": status.not_kept.lost(),
        "problems": status.problems,
    })
}
