//! The library of `foreword-bench`: measures Foreword on this machine.
//!
//! Everything happens in a throw-away home (`sandbox`) with made-up input (`host`) and made-up
//! memories (`memories`, in made-up words: `speech`); only `mine` reads the user's own memory. Times are
//! given as multiples of spawning `/bin/true` in the same run (`spawn`), so that they mean
//! something on another machine. A bench gathers data, and `report` prints it. The program that is
//! measured is the `foreword` beside this one (`machine`).
//!
//! `derive` measures what one more event of a long turn costs the worker, `redaction` both stages of
//! redaction.
//! `hands` measures what a person's changes cost, and kills them.
//! `agent` counts the calls and tokens of the memory agent; its model is a server in this process.
//! `agent::live` has a real model asked.
//! `search` measures the speed of search (`plot` draws it, `server` measures the MCP server's memory,
//! `hybrid` search by meaning), `vectors` the vector index alone, `retrieval` and `mine` the quality
//! of the results, `size` the disk space of a year.
//!
//! Three more test reliability: `crash` kills processes, `load` sends many events a second, `soak`
//! combines sessions, kills and outages. They and the crash tests share `trial`, which starts, kills
//! and audits; `load` and `soak` also use `census`, which samples processes, memory and files.
//! `database` reads rows that the store has no function for.
//!
//! A module uses only modules listed above it, which the test `floors` of `crates/foreword` checks.

mod machine;
mod process;
mod random;
mod statistics;
mod system;

pub mod database;
mod plot;
mod report;

pub mod host;
pub mod sandbox;
mod spawn;

mod speech;

mod memories;

pub mod agent;

mod derive;

mod redaction;

mod burst;
mod hooks;

mod census;
pub mod trial;

mod crash;
mod hands;
mod load;
mod soak;

mod server;
mod vectors;

mod hybrid;

mod search;

mod retrieval;
mod size;

mod mine;

use clap::Subcommand;

/// Measures Foreword on this machine.
#[derive(clap::Parser)]
#[command(name = "foreword-bench", version, max_term_width = 100)]
pub struct Args {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Subcommand)]
enum Bench {
    /// Hooks: their time from spawn to exit, and 32 of them at once
    Hooks(hooks::Args),
    /// The memory agent: calls and tokens for a recorded session
    Agent(agent::Args),
    /// A real model: what it makes of recorded sessions, and what that costs
    Live(agent::live::Args),
    /// Deriving without a model: the time for one more event of a long turn
    Derive(derive::Args),
    /// Redaction: the time of its two stages for 5 KB of text
    Redaction(redaction::Args),
    /// Search: its time on made-up memories, compared with FTS5's own ranking
    Search(search::Args),
    /// Search: whether it finds the sessions that answer a benchmark's questions
    Retrieval(retrieval::Args),
    /// Search by meaning: loading, finding and making vectors
    Vectors(vectors::Args),
    /// Search in your own memory: whether a prompt finds the earlier sessions with the same files
    Mine(mine::Args),
    /// Kills hooks and workers, then checks that no event is lost, stored twice or stuck
    Crash(crash::Args),
    /// Changes by hand in a large memory: their time; or, killed, whether they are made wholly or not at all
    Hands(hands::Args),
    /// Many events a second for some minutes: times of hooks, memory and files of the worker
    Load(load::Args),
    /// Sessions, kills and outages for some minutes: processes, memory, files and disk
    Soak(soak::Args),
    /// How large the data directory gets in a year of heavy use
    Size(size::Args),
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    match &args.bench {
        Bench::Hooks(args) => hooks::run(args),
        Bench::Agent(args) => agent::run(args),
        Bench::Live(args) => agent::live::run(args),
        Bench::Derive(args) => derive::run(args),
        Bench::Redaction(args) => redaction::run(args),
        Bench::Search(args) => search::run(args),
        Bench::Retrieval(args) => retrieval::run(args),
        Bench::Vectors(args) => vectors::run(args),
        Bench::Mine(args) => mine::run(args),
        Bench::Crash(args) => crash::run(args),
        Bench::Hands(args) => hands::run(args),
        Bench::Load(args) => load::run(args),
        Bench::Soak(args) => soak::run(args),
        Bench::Size(args) => size::run(args),
    }
}
