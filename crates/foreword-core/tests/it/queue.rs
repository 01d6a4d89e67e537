//! The queue delivers each event once and in order, and no event blocks the others.

use foreword_core::model::{Event, EventKind, Payload};
use foreword_core::queue::{FAILURES_MAX, Portion, Queue, Readiness};
use uuid::Uuid;

pub fn event(session: &str, at: i64, kind: EventKind) -> Event {
    let id =
        Uuid::from_u128(u128::from(at.unsigned_abs()) << 8 | u128::from(session.as_bytes()[0]));
    Event {
        id,
        key: format!("{kind}:{session}:{at}"),
        kind,
        host: "claude-code".into(),
        host_session_id: session.into(),
        prompt_id: None,
        agent_id: None,
        tool_name: None,
        tool_use_id: None,
        cwd: None,
        project_dir: None,
        project: Some("/p".into()),
        root: Some("/p".into()),
        transcript_path: None,
        branch: None,
        commit: None,
        files: Vec::new(),
        payload: Payload::default(),
        at,
    }
}

fn open(dir: &tempfile::TempDir) -> Queue {
    Queue::open(&dir.path().join("queue.db"), &dir.path().join("backups")).unwrap()
}

const PATIENT: Readiness = Readiness {
    drain: false,
    batch_max: 10,
    batch_wait: 1_000,
};
const DRAIN: Readiness = Readiness {
    drain: true,
    batch_max: 10,
    batch_wait: 0,
};

#[test]
fn an_event_from_before_the_clock_was_put_back_waits_for_nobody() {
    for at in [10_000_000, i64::MAX] {
        let dir = tempfile::tempdir().unwrap();
        let mut queue = open(&dir);
        queue.push(&event("a", at, EventKind::ToolUse)).unwrap();
        assert_eq!(queue.next_due(200, PATIENT).unwrap(), Some(200));
        assert!(
            queue
                .claim(200, PATIENT, |_| Portion::ALL)
                .unwrap()
                .is_some()
        );
    }
}

#[test]
fn a_batch_waits_for_the_stop_for_company_or_for_its_time() {
    let dir = tempfile::tempdir().unwrap();
    let mut queue = open(&dir);
    queue.push(&event("a", 100, EventKind::ToolUse)).unwrap();
    assert_eq!(queue.claim(200, PATIENT, |_| Portion::ALL).unwrap(), None);
    assert_eq!(queue.next_due(200, PATIENT).unwrap(), Some(1_100));

    queue.push(&event("a", 150, EventKind::Stop)).unwrap();
    // It is ready now, also if the worker could not take it before.
    assert_eq!(queue.next_due(200, PATIENT).unwrap(), Some(200));
    let claim = queue
        .claim(200, PATIENT, |_| Portion::ALL)
        .unwrap()
        .unwrap();
    assert_eq!(
        claim.events.iter().map(|it| it.at).collect::<Vec<_>>(),
        [100, 150]
    );
    queue.finish(claim).unwrap();

    queue.push(&event("b", 300, EventKind::ToolUse)).unwrap();
    assert!(
        queue
            .claim(1_299, PATIENT, |_| Portion::ALL)
            .unwrap()
            .is_none()
    );
    assert!(
        queue
            .claim(1_300, PATIENT, |_| Portion::ALL)
            .unwrap()
            .is_some()
    );

    for at in 400..410 {
        queue.push(&event("c", at, EventKind::ToolUse)).unwrap();
    }
    assert_eq!(
        queue
            .claim(500, PATIENT, |_| Portion::ALL)
            .unwrap()
            .unwrap()
            .host_session_id,
        "c"
    );
}

#[test]
fn an_event_pushed_twice_is_queued_once() {
    let dir = tempfile::tempdir().unwrap();
    let queue = open(&dir);
    let first = event("a", 1, EventKind::ToolUse);
    let again = Event {
        id: Uuid::from_u128(99),
        ..first.clone()
    };
    queue.push(&first).unwrap();
    queue.push(&first).unwrap();
    queue.push(&again).unwrap();
    assert_eq!(queue.counts().unwrap().pending, 1);
}

#[test]
fn claims_of_a_dead_worker_are_taken_up_by_the_next() {
    let dir = tempfile::tempdir().unwrap();
    let mut queue = open(&dir);
    queue.push(&event("a", 1, EventKind::ToolUse)).unwrap();
    let claim = queue.claim(2, DRAIN, |_| Portion::ALL).unwrap().unwrap();
    assert!(
        queue.claim(2, DRAIN, |_| Portion::ALL).unwrap().is_none(),
        "claimed events are not given twice"
    );
    drop(claim);

    let mut next = open(&dir);
    next.free_claims_of_dead_worker().unwrap();
    assert_eq!(
        next.claim(2, DRAIN, |_| Portion::ALL)
            .unwrap()
            .unwrap()
            .events
            .len(),
        1
    );
}

#[test]
fn events_that_workers_die_of_go_one_by_one_and_are_skipped_at_last() {
    let dir = tempfile::tempdir().unwrap();
    let mut queue = open(&dir);
    queue.push(&event("a", 1, EventKind::ToolUse)).unwrap();
    queue.push(&event("a", 2, EventKind::ToolUse)).unwrap();
    let mut sizes = Vec::new();
    while let Some(claim) = queue.claim(9, DRAIN, |_| Portion::ALL).unwrap() {
        sizes.push(claim.events.len());
        queue.free_claims_of_dead_worker().unwrap();
    }
    assert_eq!(sizes, [2, 2, 2, 1, 1, 1, 1, 1, 1]);
    let counts = queue.counts().unwrap();
    assert_eq!((counts.pending, counts.skipped), (0, 2));
    assert!(
        queue.skipped().unwrap()[0]
            .last_error
            .as_deref()
            .unwrap()
            .contains("crashed")
    );
}

#[test]
fn one_poisoned_event_does_not_take_its_batch_along() {
    let dir = tempfile::tempdir().unwrap();
    let mut queue = open(&dir);
    for at in 1..=3 {
        queue.push(&event("a", at, EventKind::ToolUse)).unwrap();
    }
    let mut now = 10;
    let mut stored = Vec::new();
    for _ in 0..20 {
        let Some(claim) = queue.claim(now, DRAIN, |_| Portion::ALL).unwrap() else {
            now = match queue.next_due(now, DRAIN).unwrap() {
                Some(due) => due,
                None => break,
            };
            continue;
        };
        if claim.events.iter().any(|event| event.at == 2) {
            queue.fail(claim, "poison", now).unwrap();
        } else {
            stored.extend(claim.events.iter().map(|event| event.at));
            queue.finish(claim).unwrap();
        }
    }
    assert_eq!(stored, [1, 3]);
    let skipped = queue.skipped().unwrap();
    assert_eq!(skipped.len(), 1);
    assert_eq!(skipped[0].last_error.as_deref(), Some("poison"));
    assert_eq!(
        now,
        10 + 1_000 + 2_000,
        "tried {FAILURES_MAX} times, the first again within two seconds"
    );
}

#[test]
fn a_row_that_cannot_be_read_is_set_aside() {
    let dir = tempfile::tempdir().unwrap();
    let mut queue = open(&dir);
    queue.push(&event("a", 1, EventKind::ToolUse)).unwrap();
    queue.push(&event("a", 2, EventKind::ToolUse)).unwrap();
    #[expect(
        clippy::disallowed_methods,
        reason = "damages a row behind the queue's back"
    )]
    let outside = rusqlite::Connection::open(dir.path().join("queue.db")).unwrap();
    outside
        .execute("update events set event = '{' where at = 1", [])
        .unwrap();
    let claim = queue.claim(9, DRAIN, |_| Portion::ALL).unwrap().unwrap();
    assert_eq!(claim.events.iter().map(|it| it.at).collect::<Vec<_>>(), [2]);
    assert!(
        queue.skipped().unwrap()[0]
            .last_error
            .as_deref()
            .unwrap()
            .starts_with("unreadable")
    );
}

#[test]
fn a_claim_that_an_outage_left_behind_is_taken_back_and_counts_as_no_crash() {
    let dir = tempfile::tempdir().unwrap();
    let mut queue = open(&dir);
    queue.push(&event("a", 100, EventKind::Stop)).unwrap();
    for _ in 0..10 {
        // Neither finished nor given back: queue.db could not be written.
        let claim = queue
            .claim(200, PATIENT, |_| Portion::ALL)
            .unwrap()
            .unwrap();
        assert_eq!(claim.events.len(), 1);
        drop(claim);
        assert_eq!(queue.claim(200, PATIENT, |_| Portion::ALL).unwrap(), None);
        queue.take_back_claims().unwrap();
    }
    assert_eq!(queue.skipped().unwrap(), []);
}

#[test]
fn what_a_killed_hook_left_half_written_is_swept_away_after_an_hour() {
    let dir = tempfile::tempdir().unwrap();
    let spool = dir.path().join("spool");
    std::fs::create_dir(&spool).unwrap();
    let partial = spool.join(".x.partial");
    std::fs::write(&partial, "{").unwrap();
    std::fs::write(spool.join("y.json"), "{").unwrap();
    let written = std::fs::metadata(&partial).unwrap().modified().unwrap();
    let written = written
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_millis();
    let written = i64::try_from(written).unwrap();
    foreword_core::spool::sweep(&spool, written + 3_000_000).unwrap();
    assert!(partial.exists());
    foreword_core::spool::sweep(&spool, written + 4_000_000).unwrap();
    assert!(!partial.exists() && spool.join("y.json").exists());
}
