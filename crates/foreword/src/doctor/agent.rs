//! The state of the memory agent for `status`, `cost` and `doctor`: which provider is used and why,
//! whether it can be used, and its cost today.

use foreword_core::model::Millis;
use foreword_core::recall::bill::{Cost, StoodIn};
use foreword_core::store::Store;

use crate::agent::budget::{self, Budget};
use crate::agent::leash::{self, Pause, Unfit, pause};
use crate::config::provider::{self, Choice, ProviderProblem};
use crate::config::{BudgetSection, Config};
use crate::home::Home;

pub struct AgentStatus {
    pub choice: Choice,
    pub budget: BudgetSection,
    /// Why the provider cannot be used. A key that is missing here may be there for the worker, so
    /// it is no problem yet.
    pub problem: Option<ProviderProblem>,
    pub pause: Option<Pause>,
    pub unfit: Option<Unfit>,
    pub today: Cost,
    /// The batches of today that offline derived in the provider's place, with the reason.
    pub stand_ins: Vec<StoodIn>,
    /// Today's limit if it was reached: `$1.00` or `3000000 tokens`.
    pub used_up: Option<String>,
}

impl AgentStatus {
    /// `store` is none if there is no memory yet.
    pub fn look(
        home: &Home,
        config: &Config,
        store: Option<&Store>,
        now: Millis,
    ) -> rusqlite::Result<AgentStatus> {
        let choice = provider::choose(config, home);
        let name = choice.name;
        let mut agent = AgentStatus {
            choice,
            budget: config.budget.clone(),
            problem: (name.row().problem)(config, home),
            pause: None,
            unfit: None,
            today: Cost {
                usd: Some(0.0),
                ..Cost::default()
            },
            stand_ins: Vec::new(),
            used_up: None,
        };
        if let Some(store) = store {
            agent.pause = pause(store, name, now)?;
            agent.unfit = leash::unfit(store, name, name.model(config), now)?;
            agent.today = store.cost(budget::day(now))?;
            agent.stand_ins = store.stand_ins(budget::day(now))?;
            agent.used_up = Budget::new(name, config).used_up_today(store, now)?;
        }
        Ok(agent)
    }

    pub fn has_model(&self) -> bool {
        self.choice.name.has_model()
    }

    /// The number of batches that offline derived today in the provider's place.
    pub fn stood_in(&self) -> u64 {
        self.stand_ins.iter().map(|it| it.batches).sum()
    }
}
