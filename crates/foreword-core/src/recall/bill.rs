//! What calls to models cost, and how much memory they wrote, to be shown to the user.

use rusqlite::named_params;
use serde::{Deserialize, Serialize};

use crate::db::Rows as _;
use crate::model::Millis;
use crate::store::Store;

/// The totals since a time, to be shown to the user.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    pub calls: u64,
    pub failed: u64,
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cache_read_tokens: u64,
    pub cache_write_tokens: u64,
    /// None if there were answers and none of them has a known price.
    #[serde(rename(serialize = "cost_usd"))]
    pub usd: Option<f64>,
    /// Calls whose price is not known and that are not in `usd`.
    #[serde(rename(serialize = "unpriced_calls"))]
    pub unpriced: u64,
    /// Tokens of the events in batches that were answered.
    pub raw_tokens: u64,
    /// Tokens of the observations and summaries that models wrote.
    pub memory_tokens: u64,
}

/// The calls to one model of a provider, and their cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelCost {
    pub provider: String,
    /// None for calls that failed before a model was named.
    pub model: Option<String>,
    pub calls: u64,
    pub failed: u64,
    pub input_tokens: u64,
    pub output_tokens: u64,
    #[serde(rename(serialize = "cost_usd"))]
    pub usd: Option<f64>,
}

/// Batches that the offline provider processed in place of a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoodIn {
    pub batches: u64,
    #[serde(serialize_with = "crate::text::serialize_time")]
    pub last_at: Millis,
    #[serde(rename(serialize = "reason"))]
    pub why: String,
}

impl Store {
    /// Tokens of memory are counted as four characters of what models wrote.
    pub fn cost(&self, since: Millis) -> rusqlite::Result<Cost> {
        let cost: Cost = self.connection.one(
            "select coalesce(sum(requests), 0) as calls,
                    count(*) filter (where state = 'failed' and requests > 0) as failed,
                    coalesce(sum(input_tokens), 0) as input_tokens,
                    coalesce(sum(output_tokens), 0) as output_tokens,
                    coalesce(sum(cache_read_tokens), 0) as cache_read_tokens,
                    coalesce(sum(cache_write_tokens), 0) as cache_write_tokens,
                    sum(cost_usd) filter (where requests > 0) as usd,
                    coalesce(sum(requests) filter (where cost_usd is null and output_tokens > 0), 0) as unpriced,
                    coalesce(sum(raw_tokens) filter (where state = 'answered' and requests > 0), 0) as raw_tokens,
                    (
                        select coalesce(sum(length(title) + length(subtitle) + length(facts) + length(narrative)
                            + length(concepts)), 0)
                        from observations
                        where provider <> 'offline' and at >= :since
                    ) / 4 + (
                        select coalesce(sum(length(request) + length(investigated) + length(learned)
                            + length(completed) + length(next_steps) + length(notes)), 0)
                        from summaries
                        where provider <> 'offline' and at >= :since
                    ) / 4 as memory_tokens
             from ledger
             where at >= :since",
            named_params! {":since": since},
        )?;
        Ok(Cost {
            usd: cost.usd.or((cost.unpriced == 0).then_some(0.0)),
            ..cost
        })
    }

    /// The cost by provider and model, the one with most calls first.
    pub fn cost_by_model(&self, since: Millis) -> rusqlite::Result<Vec<ModelCost>> {
        self.connection.all(
            "select provider, model,
                    sum(requests) as calls,
                    count(*) filter (where state = 'failed') as failed,
                    sum(input_tokens) as input_tokens,
                    sum(output_tokens) as output_tokens,
                    sum(cost_usd) as usd
             from ledger
             where at >= :since and requests > 0
             group by provider, model
             order by calls desc, provider, model",
            named_params! {":since": since},
        )
    }

    /// How often the offline provider stood in for a model, by reason, the latest first.
    pub fn stand_ins(&self, since: Millis) -> rusqlite::Result<Vec<StoodIn>> {
        self.connection.all(
            "select count(*) as batches, max(at) as last_at, coalesce(note, '') as why
             from ledger
             where provider = 'offline' and at >= :since
             group by why
             order by max(id) desc",
            named_params! {":since": since},
        )
    }
}
