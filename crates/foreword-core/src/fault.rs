//! Named failure points: places where a test may kill the process.
//!
//! Crash tests need the process to die at an exact instruction, between two writes. The
//! points exist in builds with debug assertions or the `faults` feature; in a release
//! build `point` does nothing. The program arms points from an environment variable,
//! since core does not read the environment.

/// Ends the process with SIGKILL here if this point is armed.
#[inline]
pub fn point(name: &str) {
    #[cfg(any(debug_assertions, feature = "faults"))]
    armed::point(name);
    #[cfg(not(any(debug_assertions, feature = "faults")))]
    let _ = name;
}

/// Whether a deliberate defect is switched on. The crash tests switch one on to prove that
/// they would notice it.
#[inline]
pub fn planted(name: &str) -> bool {
    #[cfg(any(debug_assertions, feature = "faults"))]
    return armed::planted(name);
    #[cfg(not(any(debug_assertions, feature = "faults")))]
    {
        let _ = name;
        false
    }
}

/// Arms points, separated by commas: `name`, or `name:N` to kill when it is reached for the
/// N-th time; `plant:name` switches on a deliberate defect.
#[cfg(any(debug_assertions, feature = "faults"))]
pub fn arm(specs: &str) {
    armed::arm(specs);
}

/// Whether this build contains points and deliberate defects.
pub const BUILT_IN: bool = cfg!(any(debug_assertions, feature = "faults"));

/// The points that hooks and workers reach; the crash tests kill the process at each of them.
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

/// Points that an ordinary run of a worker does not reach: in commands that write into a project's
/// `_memory/` or change items by hand, and where the databases of unreleased versions are set aside.
pub const OF_COMMANDS: &[&str] = &[
    "notes:before-rename",
    "synthesis:before-master",
    "synthesis:after-master",
    "unreleased:after-record",
    "forget:before-file",
    "forget:before-commit",
    "forget:after-commit",
    "hands:before-commit",
    "undo:after-item",
    "undo:before-commit",
    "undo:after-commit",
];

#[cfg(any(debug_assertions, feature = "faults"))]
mod armed {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU32, Ordering};

    static ARMED: OnceLock<Vec<Armed>> = OnceLock::new();

    struct Armed {
        name: String,
        /// How many times the point is still to be reached before it kills.
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

    // Running `kill` would start another process and take effect later; the signal has to
    // come at this instruction.
    #[expect(unsafe_code, reason = "raise(SIGKILL) has no safe form in std")]
    fn kill_self() {
        unsafe extern "C" {
            fn raise(signal: i32) -> i32;
        }
        // SAFETY: raise takes an int and touches no memory of ours.
        unsafe { raise(9) };
    }
}
