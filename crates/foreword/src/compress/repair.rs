use super::reply;
use foreword_core::model::{Event, Observation, ObservationType, Origin, Summary};
pub fn observation(found: &reply::Observation, events: &[&Event], seed: String) -> Option<Observation> {
    Some(Observation { seed, kind: ObservationType::parse(&found.kind).unwrap_or(ObservationType::Discovery), title: found.title.clone(), subtitle: found.subtitle.clone(), facts: found.facts.clone(), narrative: found.narrative.clone(), concepts: found.concepts.clone(), files: vec![], origin: Origin::Agent, agent_id: None, events: events.iter().map(|e| e.id).collect(), at: events.last().map_or(0, |e| e.at) })
}
pub fn summary(found: &reply::Summary, _events: &[&Event]) -> Option<Summary> {
    Some(Summary { request: found.request.clone(), completed: found.completed.clone(), ..Summary::default() })
}
