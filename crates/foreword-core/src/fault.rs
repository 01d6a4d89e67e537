//! Named failure points: places where a test may kill this very process.
//!
//! Crash safety is only as good as the instruction it was tested at. The points
//! exist in builds with debug assertions or the `faults` feature; in a release
//! build `point` is nothing at all. The program arms a point from its
//! environment, since core does not read it.

/// Ends the process with SIGKILL here if this point is armed.
#[inline]
pub fn point(name: &str) {
    #[cfg(any(debug_assertions, feature = "faults"))]
    armed::point(name);
    #[cfg(not(any(debug_assertions, feature = "faults")))]
    let _ = name;
}

/// Whether a planted defect is switched on, so that the crash harness can prove
/// that it would notice one.
#[inline]
#[must_use]
pub fn planted(name: &str) -> bool {
    #[cfg(any(debug_assertions, feature = "faults"))]
    return armed::planted(name);
    #[cfg(not(any(debug_assertions, feature = "faults")))]
    {
        let _ = name;
        false
    }
}

/// Arms points, separated by commas: `name`, or `name:N` for its N-th passing;
/// `plant:name` plants a defect.
#[cfg(any(debug_assertions, feature = "faults"))]
pub fn arm(specs: &str) {
    armed::arm(specs);
}

/// Whether this build has points and planted defects at all.
pub const BUILT_IN: bool = cfg!(any(debug_assertions, feature = "faults"));

/// Every point that exists, so that a harness can visit them all.
pub const POINTS: &[&str] = &[
    "hook:before-insert",
    "hook:after-insert",
    "spool:before-rename",
    "spool:after-rename",
    "intake:after-insert",
    "claim:after-commit",
    "provider:before-call",
    "provider:after-call",
    "store:after-index",
    "store:before-commit",
    "store:after-commit",
    "queue:after-delete",
    "migration:before-commit",
    "migration:after-backup",
    "backup:before-rename",
    "backup:after-rename",
    "recover:after-aside",
    "recover:after-base",
    "recover:after-salvage",
];

/// Points that no worker passes on its usual road: of commands that write into a project's
/// `_memory/`, and of setting the databases of unreleased programs aside.
pub const OF_COMMANDS: &[&str] = &[
    "notes:before-rename",
    "synthesis:before-master",
    "synthesis:after-master",
    "unreleased:after-record",
];

#[cfg(any(debug_assertions, feature = "faults"))]
mod armed {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU32, Ordering};

    static ARMED: OnceLock<Vec<Armed>> = OnceLock::new();

    struct Armed {
        name: String,
        /// Passings until it goes off.
        left: AtomicU32,
    }

    pub fn arm(specs: &str) {
        let armed = specs.split(',').map(|spec| {
            let counted = spec
                .rsplit_once(':')
                .and_then(|(name, count)| Some((name, count.parse().ok()?)));
            let (name, count) = counted.unwrap_or((spec, 1));
            Armed {
                name: name.to_owned(),
                left: AtomicU32::new(count),
            }
        });
        let _ = ARMED.set(armed.collect());
    }

    fn armed() -> &'static [Armed] {
        ARMED.get().map_or(&[], Vec::as_slice)
    }

    pub fn planted(name: &str) -> bool {
        armed()
            .iter()
            .any(|armed| armed.name.strip_prefix("plant:") == Some(name))
    }

    pub fn point(name: &str) {
        for armed in armed() {
            let mut listed = super::POINTS.iter().chain(super::OF_COMMANDS);
            debug_assert!(listed.any(|it| *it == name), "unlisted point {name}");
            if armed.name == name && armed.left.fetch_sub(1, Ordering::Relaxed) == 1 {
                kill_self();
            }
        }
    }

    // `kill` through the shell would be another process and another moment; the
    // signal has to come at this instruction.
    #[expect(unsafe_code, reason = "raise(SIGKILL) has no safe form in std")]
    fn kill_self() {
        unsafe extern "C" {
            fn raise(signal: i32) -> i32;
        }
        // SAFETY: raise takes an int and touches no memory of ours.
        unsafe { raise(9) };
    }
}
