//! The library of `foreword-bench`: measures Foreword on this machine.
//!
//! Everything happens in a throw-away home (`sandbox`) with made-up input (`host`) and made-up
//! memories (`memories`, in made-up words: `speech`); only `mine` reads the user's own memory. Times are
//! given as multiples of spawning `/bin/true` in the same run (`spawn`), so that they mean
//! something on another machine. A bench gathers data, and `report` prints it. The program that is
//! measured is the `foreword` beside this one (`machine`).
//!
//! `agent` counts what the memory agent costs, with a model that is a server here. `search` measures
//! the speed of search (a picture: `plot`; the MCP server's memory: `server`; by meaning: `hybrid`), `vectors` that
//! of search by meaning, `retrieval` what is found, `size` the disk space of a year.
//!
//! Three more look at what holds when things go wrong: `crash` kills processes, `load` sends more
//! events than anybody would, `soak` does everything for a while. They and the crash tests share
//! `trial`, the one harness for killing and auditing, and `census`. Rows that the store has no
//! function for are read by `database`.

pub mod agent;
mod burst;
mod census;
mod crash;
pub mod database;
mod hooks;
pub mod host;
mod hybrid;
mod load;
mod machine;
mod memories;
mod mine;
mod plot;
mod process;
mod random;
mod report;
mod retrieval;
pub mod sandbox;
mod search;
mod server;
mod size;
mod soak;
mod spawn;
mod speech;
mod statistics;
mod system;
pub mod trial;
mod vectors;

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
    /// The hooks: their time from spawn to exit, and 32 of them at once
    Hooks(hooks::Args),
    /// The memory agent: what a recorded session costs with a model that counts
    Agent(agent::Args),
    /// Search: its time on made-up memories, beside FTS5's own ranking
    Search(search::Args),
    /// Search: whether it finds what answers a question, on a benchmark's data
    Retrieval(retrieval::Args),
    /// Search by meaning: loading, finding and making vectors
    Vectors(vectors::Args),
    /// Search: whether it finds, in your own memory, what later prompts came back to
    Mine(mine::Args),
    /// Kills hooks and workers, and looks whether anything is lost, doubled or stuck
    Crash(crash::Args),
    /// Many events a second for a while: what hooks take, and what the worker
    Load(load::Args),
    /// Sessions, kills and outages for a while: processes, memory, files and disk
    Soak(soak::Args),
    /// How large the data directory gets in a year of heavy use
    Size(size::Args),
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    match &args.bench {
        Bench::Hooks(args) => hooks::run(args),
        Bench::Agent(args) => agent::run(args),
        Bench::Search(args) => search::run(args),
        Bench::Retrieval(args) => retrieval::run(args),
        Bench::Vectors(args) => vectors::run(args),
        Bench::Mine(args) => mine::run(args),
        Bench::Crash(args) => crash::run(args),
        Bench::Load(args) => load::run(args),
        Bench::Soak(args) => soak::run(args),
        Bench::Size(args) => size::run(args),
    }
}
