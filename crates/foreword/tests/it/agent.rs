//! The memory agent from end to end: events go from hooks through the worker to a
//! provider, and come back as memory. Only the model is replaced: `anthropic` and
//! `openai` ask scripted servers over real HTTP, `claude` runs the real client.
//!
//! `conformance` has tests that every provider must pass, `calls` looks at the requests to the
//! model, `conversation` at those of one session, `logs` at the log files, and `table` lists every failure of a call with its effect on
//! the events. Tests that need neither a provider nor a process are in `src/worker/tests.rs`.

#[cfg(feature = "full-tests")]
mod calls;
#[cfg(feature = "full-tests")]
mod conformance;
#[cfg(feature = "full-tests")]
mod conversation;
#[cfg(feature = "full-tests")]
mod logs;
pub mod server;
#[cfg(feature = "full-tests")]
mod table;
pub mod world;

/// Makes one test for each function and each provider.
#[cfg(feature = "full-tests")]
macro_rules! for_each {
    ($providers:tt $sentences:tt) => {
        $crate::agent::for_each!(@ $providers $sentences);
    };
    (@ [$($module:ident $provider:ident),*] $sentences:tt) => {
        $($crate::agent::for_each!(@@ $module $provider $sentences);)*
    };
    (@@ $module:ident $provider:ident [$($sentence:ident),* $(,)?]) => {
        mod $module {
            use crate::agent::world::Provider;
            $(
                #[test]
                fn $sentence() {
                    super::$sentence(Provider::$provider);
                }
            )*
        }
    };
}
#[cfg(feature = "full-tests")]
use for_each;
