//! (skeleton) the openai provider.

use foreword_core::model::FailureKind;

use super::{Call, Failure, Provider, Question};
use crate::config;

pub struct OpenAi {
    settings: config::OpenAi,
}

impl Provider for OpenAi {
    async fn ask(&mut self, _question: &Question<'_>) -> Call {
        Call::failed(0, Failure::new(FailureKind::Missing, &self.settings.model))
    }
}

impl OpenAi {
    pub fn new(settings: &config::OpenAi) -> OpenAi {
        OpenAi {
            settings: settings.clone(),
        }
    }
}
