//! (skeleton) the anthropic provider.

use foreword_core::model::FailureKind;

use super::{Call, Failure, Provider, Question};
use crate::config;

pub struct Anthropic {
    settings: config::Anthropic,
}

impl Provider for Anthropic {
    async fn ask(&mut self, _question: &Question<'_>) -> Call {
        Call::failed(0, Failure::new(FailureKind::Missing, &self.settings.model))
    }
}

impl Anthropic {
    pub fn new(settings: &config::Anthropic) -> Anthropic {
        Anthropic {
            settings: settings.clone(),
        }
    }
}
