//! Install and uninstall, and every byte of the user's settings file.

use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::support::{Host, Sandbox, assert_same, tree};

const PROGRAM: &str = env!("CARGO_BIN_EXE_foreword");

/// Writes the user's settings file with this text.
fn settings(sandbox: &Sandbox, text: &str) -> PathBuf {
    let path = sandbox.user_home().join(".claude/settings.json");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, text).unwrap();
    path
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Runs a command in a project's folder; it must succeed.
fn run_in(sandbox: &Sandbox, dir: &Path, arguments: &[&str]) {
    let mut command = sandbox.command(arguments);
    let output = command.current_dir(dir).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// A command must fail with these words in its error, and leave every file as it was.
fn refuses(sandbox: &Sandbox, arguments: &[&str], words: &[&str]) {
    let before = tree(&sandbox.user_home());
    let output = sandbox.command(arguments).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{printed}");
    for word in words {
        assert!(printed.contains(word), "{word:?} is not in {printed:?}");
    }
    assert_eq!(printed.lines().count(), 1, "{printed}");
    assert_same(&before, &tree(&sandbox.user_home()));
}

#[test]
fn install_use_edit_uninstall_leaves_the_users_edit_and_nothing_of_ours() {
    let before = r#"{
    "model" : "opus",
    "hooks": {
        "Stop": [{"matcher": "", "hooks": [{"type": "command", "command": "say done"}]}]
    },

    "permissions": {"allow": ["Bash(ls:*)",   "Read"]}, "unknown-key": [ 1,2 ]
}"#;
    let sandbox = Sandbox::new();
    let path = settings(&sandbox, before);
    let plain = |text: String| {
        text.replace(PROGRAM, "PROGRAM")
            .replace(&path.display().to_string(), "settings.json")
            .replace(&sandbox.user_home().display().to_string(), "HOME")
    };
    insta::assert_snapshot!(plain(sandbox.run(&["install", "--dry-run"])), @r#"
    --- settings.json
    +++ settings.json
    @@ -1,7 +1,92 @@
     {
         "model" : "opus",
         "hooks": {
    -        "Stop": [{"matcher": "", "hooks": [{"type": "command", "command": "say done"}]}]
    +        "Stop": [{"matcher": "", "hooks": [{"type": "command", "command": "say done"}]}, {"hooks": [{"type": "command", "command": "PROGRAM", "args": ["summary"], "timeout": 5}]}],
    +        "SessionStart": [
    +            {
    +                "hooks": [
    +                    {
    +                        "type": "command",
    +                        "command": "PROGRAM",
    +                        "args": ["context"],
    +                        "timeout": 5
    +                    }
    +                ]
    +            }
    +        ],
    +        "UserPromptSubmit": [
    +            {
    +                "hooks": [
    +                    {
    +                        "type": "command",
    +                        "command": "PROGRAM",
    +                        "args": ["new"],
    +                        "timeout": 5
    +                    }
    +                ]
    +            }
    +        ],
    +        "PreToolUse": [
    +            {
    +                "matcher": "Read|Edit|MultiEdit|Write|NotebookEdit",
    +                "hooks": [
    +                    {
    +                        "type": "command",
    +                        "command": "PROGRAM",
    +                        "args": ["file-context"],
    +                        "timeout": 5
    +                    }
    +                ]
    +            }
    +        ],
    +        "PostToolUse": [
    +            {
    +                "hooks": [
    +                    {
    +                        "type": "command",
    +                        "command": "PROGRAM",
    +                        "args": ["save"],
    +                        "timeout": 5
    +                    }
    +                ]
    +            }
    +        ],
    +        "PostToolUseFailure": [
    +            {
    +                "hooks": [
    +                    {
    +                        "type": "command",
    +                        "command": "PROGRAM",
    +                        "args": ["save"],
    +                        "timeout": 5
    +                    }
    +                ]
    +            }
    +        ],
    +        "StopFailure": [
    +            {
    +                "hooks": [
    +                    {
    +                        "type": "command",
    +                        "command": "PROGRAM",
    +                        "args": ["summary"],
    +                        "timeout": 5
    +                    }
    +                ]
    +            }
    +        ],
    +        "SessionEnd": [
    +            {
    +                "hooks": [
    +                    {
    +                        "type": "command",
    +                        "command": "PROGRAM",
    +                        "args": ["cleanup"],
    +                        "timeout": 5
    +                    }
    +                ]
    +            }
    +        ]
         },
     
         "permissions": {"allow": ["Bash(ls:*)",   "Read"]}, "unknown-key": [ 1,2 ]
    --- /dev/null
    +++ HOME/.claude.json
    @@ -0,0 +1,9 @@
    +{
    +  "mcpServers": {
    +    "foreword": {
    +      "type": "stdio",
    +      "command": "PROGRAM",
    +      "args": ["mcp"]
    +    }
    +  }
    +}
    HOME/.claude/skills/summarize/SKILL.md would be written
    HOME/.claude/skills/synthesize/SKILL.md would be written
    HOME/.claude/skills/recall/SKILL.md would be written
    HOME/.claude/agents/summarize.md would be written
    HOME/.claude/agents/synthesize.md would be written
      Claude Code asks before the agent may use search, get_observations, timeline, recall, and refuses them where nobody can be asked; `foreword install --allow-tools` allows them
    "#);
    assert_eq!(read(&path), before);

    sandbox.run(&["install"]);
    let project = sandbox.project("pay");
    let host = Host::new("s1", &project);
    sandbox.run_hook("new", &project, &host.prompt("Fix the expiry test"));
    sandbox.run_hook("summary", &project, &host.stop("Fixed."));
    sandbox.drain();

    let edited = read(&path)
        .replace("\"opus\"", "\"sonnet\"")
        .replace("[ 1,2 ]", "[ 1,2, 3 ],\n    \"mine\" :true");
    std::fs::write(&path, edited).unwrap();
    sandbox.run(&["uninstall"]);
    let after = read(&path);
    let diff = similar::TextDiff::from_lines(before, after.as_str());
    insta::assert_snapshot!(diff.unified_diff().context_radius(9).to_string(), @r#"
    @@ -1,8 +1,9 @@
     {
    -    "model" : "opus",
    +    "model" : "sonnet",
         "hooks": {
             "Stop": [{"matcher": "", "hooks": [{"type": "command", "command": "say done"}]}]
         },
     
    -    "permissions": {"allow": ["Bash(ls:*)",   "Read"]}, "unknown-key": [ 1,2 ]
    +    "permissions": {"allow": ["Bash(ls:*)",   "Read"]}, "unknown-key": [ 1,2, 3 ],
    +    "mine" :true
     }
    \ No newline at end of file
    "#);
    assert_eq!(sandbox.status()["prompts"], 1, "the memory stays");
}

#[test]
fn without_an_edit_uninstall_gives_back_the_very_bytes_and_modes() {
    for text in [
        "{}",
        "",
        "{\"a\":1}",
        "{\r\n\t\"a\": 1\r\n}\r\n\r\n",
        "{ // mine\n  \"hooks\": { \"Stop\": [ ] },\n}",
    ] {
        let sandbox = Sandbox::new();
        let path = settings(&sandbox, text);
        set_mode(&path, 0o640);
        let before = tree(&sandbox.user_home().join(".claude"));
        sandbox.run(&["install"]);
        assert_ne!(read(&path), text);
        // A second install by a moved program keeps the first backup.
        let moved = sandbox.moved_program();
        let mut again = Command::new(&moved);
        sandbox.isolate(&mut again);
        assert!(again.arg("install").output().unwrap().status.success());
        assert!(read(&path).contains(moved.to_str().unwrap()));
        sandbox.run(&["uninstall"]);
        assert_eq!(tree(&sandbox.user_home().join(".claude")), before, "{text}");
        let left: Vec<_> = sandbox.files();
        assert_eq!(left, [], "copies and records go with the install");
    }
}

#[test]
fn a_file_that_was_not_there_is_gone_again_with_the_folder_made_for_it() {
    let sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.home()).unwrap();
    set_mode(&sandbox.home(), 0o700);
    let before = tree(&sandbox.user_home());
    let config = sandbox.user_home().join("some/where");
    let run = |name: &str| {
        let mut command = sandbox.command(&[name]);
        let output = command.env("CLAUDE_CONFIG_DIR", &config).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    run("install");
    assert!(config.join("settings.json").exists());
    run("uninstall");
    assert_same(&before, &tree(&sandbox.user_home()));

    run("install");
    std::fs::write(config.join("CLAUDE.md"), "mine").unwrap();
    run("uninstall");
    assert!(!config.join("settings.json").exists());
    assert!(config.join("CLAUDE.md").exists());
}

#[test]
fn the_hosts_list_of_servers_holds_ours_and_nothing_of_it_is_copied() {
    let sandbox = Sandbox::new();
    let list = sandbox.user_home().join(".claude.json");
    let before = "{\n  \"numStartups\": 4,\n  \"primaryApiKey\": \"hush-hush\"\n}";
    std::fs::write(&list, before).unwrap();
    set_mode(&list, 0o600);
    let project = sandbox.project("app");
    for arguments in [&["install"][..], &["install"], &["install", "--project"]] {
        run_in(&sandbox, &project, arguments);
    }
    for list in [&list, &project.join(".mcp.json")] {
        let text: Value = serde_json::from_str(&read(list)).unwrap();
        let ours = serde_json::json!({"type": "stdio", "command": PROGRAM, "args": ["mcp"]});
        assert_eq!(text["mcpServers"]["foreword"], ours);
    }
    for (path, bytes) in sandbox.files() {
        let copied = bytes.windows(9).any(|it| it == b"hush-hush");
        assert!(!copied, "{}", path.display());
    }
    // The host changes this file often.
    let edit = |text: &str| text.replace("4", "5");
    std::fs::write(&list, edit(&read(&list))).unwrap();
    sandbox.run(&["uninstall"]);
    assert_eq!(read(&list), edit(before));
    run_in(&sandbox, &project, &["uninstall", "--project"]);
    assert!(!project.join(".mcp.json").exists());

    // Another program's server of that name is left alone.
    std::fs::write(
        &list,
        "{\"mcpServers\": {\"foreword\": {\"command\": \"mine\"}}}",
    )
    .unwrap();
    refuses(
        &sandbox,
        &["install"],
        &["another server is called foreword", "nothing was changed"],
    );
}

#[test]
fn the_tools_that_only_read_are_allowed_if_the_user_says_so_and_no_others() {
    const RULES: [&str; 4] = [
        "mcp__foreword__search",
        "mcp__foreword__get_observations",
        "mcp__foreword__timeline",
        "mcp__foreword__recall",
    ];
    let allowed = |path: &Path| -> Vec<String> {
        let settings: Value = serde_json::from_str(&read(path)).unwrap();
        let allowed = settings["permissions"]["allow"].as_array().cloned();
        let rules = allowed.unwrap_or_default().into_iter();
        rules.map(|it| it.as_str().unwrap().to_owned()).collect()
    };
    for (before, own) in [
        ("{\n  \"a\": 1\n}\n", &[][..]),
        (
            "{\"permissions\": {\"allow\": [\"Read\",  \"mcp__foreword__search\"]}}",
            &["Read", "mcp__foreword__search"],
        ),
    ] {
        let sandbox = Sandbox::new();
        let path = settings(&sandbox, before);
        let dry = sandbox.run(&["install", "--dry-run", "--allow-tools"]);
        assert!(dry.contains("mcp__foreword__recall"), "{dry}");
        assert_eq!(read(&path), before);
        sandbox.run(&["install"]);
        assert_eq!(allowed(&path), own, "nobody was asked");
        sandbox.run(&["install", "--allow-tools"]);
        let mut rules = own.to_vec();
        rules.extend(RULES.iter().filter(|it| !own.contains(it)));
        assert_eq!(allowed(&path), rules);
        let written = read(&path);
        for again in [&["install"][..], &["install", "--allow-tools"]] {
            sandbox.run(again);
            assert_eq!(read(&path), written);
        }
        sandbox.run(&["install", "--no-allow-tools"]);
        assert_eq!(allowed(&path), own);
        sandbox.run(&["install", "--allow-tools"]);

        // Rules that the user wrote stay, whether before the install or after it.
        let edited = read(&path).replace("\"allow\": [", "\"allow\": [\"Glob\", ");
        std::fs::write(&path, edited).unwrap();
        sandbox.run(&["uninstall"]);
        assert_eq!(allowed(&path), [&["Glob"], own].concat());

        std::fs::write(&path, before).unwrap();
        sandbox.run(&["install", "--allow-tools"]);
        sandbox.run(&["uninstall"]);
        assert_eq!(read(&path), before);
    }
}

#[test]
fn a_dry_run_changes_nothing_not_even_the_data_directory() {
    let sandbox = Sandbox::new();
    let before = tree(&sandbox.user_home());
    assert!(
        sandbox
            .run(&["install", "--dry-run"])
            .starts_with("--- /dev/null\n+++ ")
    );
    assert_same(&before, &tree(&sandbox.user_home()));

    sandbox.run(&["install"]);
    let before = tree(&sandbox.user_home());
    assert!(
        sandbox
            .run(&["uninstall", "--dry-run"])
            .contains("\n+++ /dev/null\n")
    );
    assert_same(&before, &tree(&sandbox.user_home()));
}

#[test]
fn what_cannot_be_changed_safely_is_refused_and_not_touched() {
    let sandbox = Sandbox::new();
    let path = settings(&sandbox, "{\"model\": \"opus\"");
    let name = path.display().to_string();
    for broken in [
        "{\"model\": \"opus\"",
        "{\"a\": 1 \"b\": 2}",
        "[]",
        "{'a': 1}",
    ] {
        std::fs::write(&path, broken).unwrap();
        for command in ["install", "uninstall"] {
            refuses(
                &sandbox,
                &[command],
                &[&name, "correct it first", "nothing was changed"],
            );
        }
    }

    std::fs::write(&path, "{}").unwrap();
    set_mode(&path, 0o444);
    let cure = format!("chmod u+w {name}");
    refuses(
        &sandbox,
        &["install"],
        &[&name, "read-only", "nothing was changed", &cure],
    );
    refuses(&sandbox, &["install", "--dry-run"], &["read-only"]);
    set_mode(&path, 0o644);
    sandbox.run(&["install"]);
    set_mode(&path, 0o444);
    refuses(
        &sandbox,
        &["uninstall"],
        &["read-only", "nothing was changed"],
    );

    std::fs::remove_file(&path).unwrap();
    symlink("nowhere.json", &path).unwrap();
    refuses(
        &sandbox,
        &["install"],
        &[&name, "nowhere.json", "nothing was changed"],
    );
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    refuses(&sandbox, &["install"], &[&name, "nothing was changed"]);
}

#[test]
fn a_linked_file_is_written_where_the_link_leads_and_stays_a_link() {
    let sandbox = Sandbox::new();
    let path = settings(&sandbox, "");
    std::fs::remove_file(&path).unwrap();
    let dotfiles = sandbox.project("dotfiles");
    let target = dotfiles.join("claude.json");
    std::fs::write(&target, "{\"a\": 1}\n").unwrap();
    symlink(&target, &path).unwrap();
    let before = path.symlink_metadata().unwrap().file_type();

    let printed = sandbox.run(&["install"]);
    let words = format!("a link; written to {}\n", target.display());
    assert!(printed.contains(&words), "{printed}");
    assert!(read(&target).contains("\"hooks\""));
    assert_eq!(path.symlink_metadata().unwrap().file_type(), before);

    set_mode(&target, 0o444);
    refuses(
        &sandbox,
        &["uninstall"],
        &["read-only", &target.display().to_string()],
    );
    set_mode(&target, 0o644);
    assert!(sandbox.run(&["uninstall"]).contains(&words));
    assert_eq!(read(&target), "{\"a\": 1}\n");
    assert!(path.is_symlink());
}

#[test]
fn a_project_is_connected_at_its_top_and_each_install_is_taken_back_by_itself() {
    let sandbox = Sandbox::new();
    let user = settings(&sandbox, "{\"user\": 1}");
    let [app, other] = ["app", "other"].map(|name| sandbox.project(name));
    std::fs::create_dir(app.join(".git")).unwrap();
    std::fs::write(app.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    std::fs::create_dir(app.join("src")).unwrap();
    let before = [tree(&app), tree(&other)];

    for (dir, arguments) in [
        (&app.join("src"), &["install", "--project"][..]),
        (&other, &["install", "--project"]),
        (&app, &["install"]),
    ] {
        run_in(&sandbox, dir, arguments);
    }
    for file in [
        &user,
        &app.join(".claude/settings.json"),
        &other.join(".claude/settings.json"),
    ] {
        let text: Value = serde_json::from_str(&read(file)).unwrap();
        assert_eq!(text["hooks"]["Stop"][0]["hooks"][0]["command"], PROGRAM);
    }
    let mode = |path: PathBuf| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(app.join(".claude/settings.json")), 0o644);

    sandbox.run(&["uninstall"]);
    assert_eq!(read(&user), "{\"user\": 1}");
    run_in(&sandbox, &app.join("src"), &["uninstall", "--project"]);
    assert_eq!(tree(&app), before[0]);
    assert!(other.join(".claude/settings.json").exists());
    run_in(&sandbox, &other, &["uninstall", "--project"]);
    assert_eq!(tree(&other), before[1]);
}

#[test]
fn a_hook_of_the_plugin_does_nothing_where_an_install_does_the_work() {
    let sandbox = Sandbox::new();
    sandbox.keep_workers_away();
    let [app, other] = ["app", "other"].map(|name| sandbox.project(name));
    let host = Host::new("s1", &app);
    let seen = |project: &Path, plugin: bool| {
        let before = sandbox.spooled();
        let input = host.bash("make", "done").to_string();
        let mut command = sandbox.hook_command("save", project);
        if plugin {
            command.env("CLAUDE_PLUGIN_ROOT", "/plugins/foreword");
        }
        let mut child = command.spawn().unwrap();
        let _ = std::io::Write::write_all(&mut child.stdin.take().unwrap(), input.as_bytes());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.stdout, br#"{"continue":true,"suppressOutput":true}"#);
        assert_eq!(output.status.code(), Some(0));
        sandbox.spooled() > before
    };
    assert!(seen(&app, true), "nothing is installed: the plugin works");

    run_in(&sandbox, &app, &["install", "--project"]);
    assert!(!seen(&app, true));
    assert!(seen(&app, false), "the installed hook works");
    assert!(seen(&other, true), "in another project the plugin works");

    sandbox.run(&["install"]);
    assert!(!seen(&other, true));
    assert!(seen(&other, false));

    sandbox.run(&["uninstall"]);
    assert!(seen(&other, true));
    run_in(&sandbox, &app, &["uninstall", "--project"]);
    assert!(seen(&app, true));
}

#[test]
fn a_link_on_the_path_is_what_hooks_run_so_that_an_upgrade_keeps_them_working() {
    let sandbox = Sandbox::new();
    let bin = sandbox.user_home().join("bin");
    std::fs::create_dir(&bin).unwrap();
    symlink(PROGRAM, bin.join("foreword")).unwrap();
    let mut command = sandbox.command(&["install"]);
    assert!(command.env("PATH", &bin).status().unwrap().success());
    let text = read(&sandbox.user_home().join(".claude/settings.json"));
    let text: Value = serde_json::from_str(&text).unwrap();
    let hook = &text["hooks"]["Stop"][0]["hooks"][0];
    assert_eq!(hook["command"], bin.join("foreword").to_str().unwrap());
    let status = sandbox.run(&["status"]);
    assert!(status.contains("Claude Code is connected\n"), "{status}");
}

#[test]
fn the_program_says_what_it_is_and_describes_itself() {
    let sandbox = Sandbox::new();
    let version = sandbox.run(&["--version"]);
    let sqlite = format!("SQLite {})\n", rusqlite::version());
    assert!(version.starts_with(concat!("foreword ", env!("CARGO_PKG_VERSION"), " (")));
    assert!(version.ends_with(&sqlite), "{version}");

    for (shell, word) in [
        ("bash", "complete -F _foreword"),
        ("zsh", "#compdef foreword"),
        ("fish", "complete -c foreword"),
    ] {
        let page = sandbox.run(&["completions", shell]);
        assert!(page.contains(word) && page.contains("uninstall"), "{shell}");
    }
    let page = sandbox.run(&["man"]);
    assert!(page.contains(".TH foreword 1"));
    for word in ["UNINSTALL", "\\-\\-dry\\-run", "DOCTOR", "DRAIN"] {
        assert!(page.contains(word), "{word} is not in the manual page");
    }
    assert!(!page.contains("Hook: "), "hooks are not for people");
}

#[test]
fn skills_and_agents_come_and_go_and_what_is_not_ours_stays() {
    let sandbox = Sandbox::new();
    settings(&sandbox, "{}");
    let config = sandbox.user_home().join(".claude");
    let theirs = config.join("skills/recall/SKILL.md");
    std::fs::create_dir_all(theirs.parent().unwrap()).unwrap();
    std::fs::write(&theirs, "---\nname: recall\n---\nmine\n").unwrap();
    let before = tree(&config);

    let printed = sandbox.run(&["install"]);
    let stays = "was edited or is not ours, so it was not changed.";
    assert!(
        printed.contains(&format!("{} {stays}", theirs.display())),
        "{printed}"
    );
    assert!(
        printed.contains("/summarize, /synthesize and /recall are installed"),
        "{printed}"
    );
    let skill = read(&config.join("skills/summarize/SKILL.md"));
    let rule = format!("\nallowed-tools: Bash({PROGRAM} summarize:*)\n");
    assert!(skill.contains(&rule), "{skill}");
    assert!(skill.contains(&format!(
        "\n   {PROGRAM} summarize ${{CLAUDE_SESSION_ID}} --draft - <<"
    )));
    let agent = read(&config.join("skills/synthesize/SKILL.md"));
    assert!(agent.contains("\nagent: synthesize\n"), "{agent}");
    let installed = tree(&config);
    sandbox.run(&["install"]);
    assert_same(&installed, &tree(&config));

    let edited = config.join("agents/summarize.md");
    std::fs::write(&edited, read(&edited) + "and mine\n").unwrap();
    let printed = sandbox.run(&["uninstall"]);
    assert!(
        printed.contains(&format!("{} {stays}", edited.display())),
        "{printed}"
    );
    std::fs::remove_file(&edited).unwrap();
    std::fs::remove_dir(config.join("agents")).unwrap();
    assert_same(&before, &tree(&config));
}

#[test]
fn the_plugin_has_the_hooks_that_install_writes() {
    let sandbox = Sandbox::new();
    let path = settings(&sandbox, "");
    sandbox.run(&["install"]);
    let plugin = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugin");
    let hooks = read(&plugin.join("hooks/hooks.json"));
    assert_eq!(hooks, read(&path).replace(PROGRAM, "foreword"));
    let manifest = read(&plugin.join(".claude-plugin/plugin.json"));
    let version = format!("\"version\": \"{}\"", env!("CARGO_PKG_VERSION"));
    assert!(manifest.contains(&version), "{manifest}");
}
