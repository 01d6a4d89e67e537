use super::reply;
use foreword_core::model::{Event, Observation, Summary};
pub fn observation(_said: reply::Observation, _events: &[&Event], _seed: String) -> Option<Observation> { None }
pub fn summary(_said: reply::Summary, _events: &[&Event]) -> Summary { Summary::default() }
