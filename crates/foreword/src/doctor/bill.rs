//! Everything that `foreword cost` shows: calls to models, their cost, and the batches that offline
//! derived in a model's place.

use foreword_core::model::Millis;
use foreword_core::recall::bill::{Cost, ModelCost, StoodIn};
use foreword_core::store::Store;

use super::agent::AgentStatus;

pub struct Bill {
    /// None for all time.
    pub since: Option<Millis>,
    pub cost: Cost,
    pub models: Vec<ModelCost>,
    pub stand_ins: Vec<StoodIn>,
    pub agent: AgentStatus,
}

impl Bill {
    /// `store` is none if there is no memory yet.
    pub fn look(
        store: Option<&Store>,
        since: Option<Millis>,
        agent: AgentStatus,
    ) -> rusqlite::Result<Bill> {
        let start = since.unwrap_or(Millis::MIN);
        Ok(match store {
            Some(store) => Bill {
                since,
                cost: store.cost(start)?,
                models: store.cost_by_model(start)?,
                stand_ins: store.stand_ins(start)?,
                agent,
            },
            None => Bill {
                since,
                cost: agent.today.clone(),
                models: Vec::new(),
                stand_ins: Vec::new(),
                agent,
            },
        })
    }
}
