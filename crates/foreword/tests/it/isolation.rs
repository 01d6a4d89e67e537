//! Sessions of Foreword's own agent are not remembered, even if the variable that marks them is lost.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::{Host, Sandbox};

/// A session that differs from a user's only in the folder it runs in.
fn session(sandbox: &Sandbox, folder: &Path) {
    let host = Host::new("s", folder);
    sandbox.run_hook("context", folder, &host.start("startup"));
    sandbox.run_hook("new", folder, &host.prompt("What was done?"));
    sandbox.run_hook("summary", folder, &host.stop("Nothing."));
}

fn dropped(sandbox: &Sandbox) -> Value {
    let dropped: Value = serde_json::from_str(&sandbox.run(&["dropped", "--json"])).unwrap();
    dropped["dropped"].clone()
}

#[test]
fn what_happens_where_the_memory_agent_runs_is_its_own() {
    let sandbox = Sandbox::new();
    let agent = sandbox.home().join("agent");
    std::fs::create_dir_all(agent.join("below")).unwrap();
    session(&sandbox, &agent);
    session(&sandbox, &agent.join("below"));
    assert!(!sandbox.home().join("spool").exists());
    assert!(!sandbox.home().join("queue.db").exists());
    let rows = dropped(&sandbox);
    assert_eq!(rows.as_array().unwrap().len(), 1, "{rows}");
    assert_eq!(rows[0]["reason"], json!("one of Foreword's own agent runs"));
    assert_eq!(rows[0]["count"], json!(6));
}

#[test]
fn it_is_recognised_through_a_link_to_the_data_directory() {
    let sandbox = Sandbox::new();
    let real = sandbox.user_home().join("elsewhere");
    std::fs::create_dir_all(real.join("agent")).unwrap();
    std::os::unix::fs::symlink(&real, sandbox.home()).unwrap();
    session(&sandbox, &real.join("agent"));
    assert_eq!(dropped(&sandbox)[0]["count"], json!(3));
}

#[test]
fn a_project_of_the_same_name_is_a_project() {
    let sandbox = Sandbox::new();
    let project = sandbox.project("agent");
    session(&sandbox, &project);
    sandbox.drain();
    let sessions = sandbox.count("memory.db", "select count(*) from sessions");
    assert_eq!((sessions, dropped(&sandbox)), (1, json!([])));
}
