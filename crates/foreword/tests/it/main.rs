//! Foreword as a user meets it: the real program, real files, real signals.

mod audit;
mod support;

mod spine;

mod commands;
mod concurrency;
mod crash;
mod pipes;
mod storage;
mod worker;
