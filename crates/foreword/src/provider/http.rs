//! (skeleton) what the HTTP providers share.
