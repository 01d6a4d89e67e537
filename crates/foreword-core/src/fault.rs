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

/// Arms one point: `name`, or `name:N` for its N-th passing; `plant:name` plants a defect.
#[cfg(any(debug_assertions, feature = "faults"))]
pub fn arm(spec: &str) {
    armed::arm(spec);
}

/// Every point that exists, so that a harness can visit them all.
pub const POINTS: &[&str] = &[
    "hook:before-insert",
    "hook:after-insert",
    "spool:before-rename",
    "spool:after-rename",
    "intake:after-insert",
    "claim:after-commit",
    "store:before-commit",
    "store:after-commit",
    "queue:after-delete",
    "migration:before-commit",
    "migration:after-backup",
];

#[cfg(any(debug_assertions, feature = "faults"))]
mod armed {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU32, Ordering};

    static ARMED: OnceLock<(String, u32)> = OnceLock::new();
    static PASSED: AtomicU32 = AtomicU32::new(0);

    pub fn arm(spec: &str) {
        let (name, count) = match spec.rsplit_once(':') {
            Some((name, count)) => match count.parse() {
                Ok(count) => (name, count),
                Err(_) => (spec, 1),
            },
            None => (spec, 1),
        };
        let _ = ARMED.set((name.to_owned(), count));
    }

    pub fn planted(name: &str) -> bool {
        ARMED
            .get()
            .is_some_and(|(armed, _)| armed.strip_prefix("plant:") == Some(name))
    }

    pub fn point(name: &str) {
        let Some((armed, count)) = ARMED.get() else {
            return;
        };
        debug_assert!(super::POINTS.contains(&name), "unlisted point {name}");
        if armed == name && PASSED.fetch_add(1, Ordering::Relaxed) + 1 == *count {
            kill_self();
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
