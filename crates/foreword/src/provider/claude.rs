//! (skeleton) the claude provider.

use foreword_core::model::FailureKind;

use super::{Call, Failure, Provider, Question};
use crate::config;

pub struct Claude {
    settings: config::Claude,
}

impl Provider for Claude {
    async fn ask(&mut self, _question: &Question<'_>) -> Call {
        Call::failed(0, Failure::new(FailureKind::Missing, &self.settings.model))
    }
}

impl Claude {
    pub fn new(settings: &config::Claude, _home: &crate::home::Home) -> Claude {
        Claude {
            settings: settings.clone(),
        }
    }
}
