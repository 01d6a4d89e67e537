//! Foreword as a user meets it: the real program, real files, real signals.

mod audit;
mod support;

mod spine;

mod crash;
mod pipes;
