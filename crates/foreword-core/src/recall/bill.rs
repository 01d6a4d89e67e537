//! What calls to models cost, and what came of it, to be shown to the user.

use rusqlite::named_params;

use crate::model::Millis;
use crate::store::Store;

/// The totals since a time, to be shown to the user.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Cost {
    pub calls: u64,
    pub failed: u64,
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cache_read_tokens: u64,
    pub cache_write_tokens: u64,
    /// None if there were answers and none of them has a known price.
    pub usd: Option<f64>,
    /// Calls whose price is not known and that are not in `usd`.
    pub unpriced: u64,
    /// Tokens of the events in batches that were answered.
    pub raw_tokens: u64,
    /// Tokens of the observations and summaries that models wrote.
    pub memory_tokens: u64,
}

/// The calls to one model of a provider, and their cost.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelCost {
    pub provider: String,
    /// None for calls that failed before a model was named.
    pub model: Option<String>,
    pub calls: u64,
    pub failed: u64,
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub usd: Option<f64>,
}

/// Batches that the offline provider processed in place of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoodIn {
    pub batches: u64,
    pub last_at: Millis,
    pub why: String,
}

impl Store {
    pub fn cost(&self, since: Millis) -> rusqlite::Result<Cost> {
        let cost = self.connection.query_row(
            "select coalesce(sum(requests), 0) as calls,
                    count(*) filter (where state = 'failed' and requests > 0) as failed,
                    coalesce(sum(input_tokens), 0) as input,
                    coalesce(sum(output_tokens), 0) as output,
                    coalesce(sum(cache_read_tokens), 0) as cache_read,
                    coalesce(sum(cache_write_tokens), 0) as cache_write,
                    sum(cost_usd) filter (where requests > 0) as usd,
                    coalesce(sum(requests) filter (where cost_usd is null and output_tokens > 0), 0) as unpriced,
                    coalesce(sum(raw_tokens) filter (where state = 'answered' and requests > 0), 0) as raw
             from ledger
             where at >= :since",
            named_params! {":since": since},
            |row| {
                Ok(Cost {
                    calls: row.get("calls")?,
                    failed: row.get("failed")?,
                    input_tokens: row.get("input")?,
                    output_tokens: row.get("output")?,
                    cache_read_tokens: row.get("cache_read")?,
                    cache_write_tokens: row.get("cache_write")?,
                    usd: row.get("usd")?,
                    unpriced: row.get("unpriced")?,
                    raw_tokens: row.get("raw")?,
                    memory_tokens: 0,
                })
            },
        )?;
        Ok(Cost {
            usd: cost.usd.or((cost.unpriced == 0).then_some(0.0)),
            memory_tokens: self.memory_tokens(since)?,
            ..cost
        })
    }

    /// The size of what models wrote, in tokens of four characters.
    fn memory_tokens(&self, since: Millis) -> rusqlite::Result<u64> {
        self.connection.query_row(
            "select (
                 select coalesce(sum(length(title) + length(subtitle) + length(facts) + length(narrative)
                     + length(concepts)), 0)
                 from observations
                 where provider <> 'offline' and at >= :since
             ) / 4 + (
                 select coalesce(sum(length(request) + length(investigated) + length(learned)
                     + length(completed) + length(next_steps) + length(notes)), 0)
                 from summaries
                 where provider <> 'offline' and at >= :since
             ) / 4",
            named_params! {":since": since},
            |row| row.get(0),
        )
    }

    /// The cost by provider and model, the one with most calls first.
    pub fn cost_by_model(&self, since: Millis) -> rusqlite::Result<Vec<ModelCost>> {
        let mut statement = self.connection.prepare_cached(
            "select provider, model,
                    sum(requests) as calls,
                    count(*) filter (where state = 'failed') as failed,
                    sum(input_tokens) as input,
                    sum(output_tokens) as output,
                    sum(cost_usd) as usd
             from ledger
             where at >= :since and requests > 0
             group by provider, model
             order by calls desc, provider, model",
        )?;
        let rows = statement.query_map(named_params! {":since": since}, |row| {
            Ok(ModelCost {
                provider: row.get("provider")?,
                model: row.get("model")?,
                calls: row.get("calls")?,
                failed: row.get("failed")?,
                input_tokens: row.get("input")?,
                output_tokens: row.get("output")?,
                usd: row.get("usd")?,
            })
        })?;
        rows.collect()
    }

    /// How often the offline provider stood in for a model, by reason, the latest first.
    pub fn stand_ins(&self, since: Millis) -> rusqlite::Result<Vec<StoodIn>> {
        let mut statement = self.connection.prepare_cached(
            "select count(*) as batches, max(at) as last_at, coalesce(note, '') as why
             from ledger
             where provider = 'offline' and at >= :since
             group by why
             order by max(id) desc",
        )?;
        let rows = statement.query_map(named_params! {":since": since}, |row| {
            Ok(StoodIn {
                batches: row.get("batches")?,
                last_at: row.get("last_at")?,
                why: row.get("why")?,
            })
        })?;
        rows.collect()
    }
}
