//! The memory agent from end to end: what hooks are told goes through the worker to a
//! provider, and comes back as memory. Only the model is replaced: `anthropic` and
//! `openai` ask scripted servers over real HTTP, `claude` runs the real client.
//!
//! `conformance` are sentences that hold for every provider, `calls` those that need a
//! call to look at, `logs` what is noted of it all, and `table` everything that can go wrong, with
//! what becomes of the events. What does not depend on a provider or a process is tested round by
//! round in `src/worker/tests.rs`.

#[cfg(feature = "full-tests")]
mod calls;
#[cfg(feature = "full-tests")]
mod conformance;
#[cfg(feature = "full-tests")]
mod logs;
pub mod server;
#[cfg(feature = "full-tests")]
mod table;
pub mod world;

/// Makes a test of each sentence for each provider.
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
