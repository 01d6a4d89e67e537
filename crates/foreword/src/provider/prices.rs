//! (skeleton) what a token costs.
