//! Takes secrets and private spans out of a text, before its first write to disk.
//!
//! Every hook runs this on every event, so nothing is built at run time: constant tables
//! over the next three bytes give the rules that could match here (mostly none), and a
//! small hand-written check decides (`rules`, `assigned`). The regex crate takes 4-5 ms to
//! build its automaton, several times as long as the whole hook. A field is redacted before
//! it is cut, so that no cut can split a secret and hide it.
//!
//! Files whose whole content is secret are recognised by their names, and so are commands that
//! would show it: a value in a `.env` file need not look like a key. The content of such a file is
//! not stored at all, whichever way it was shown; only the file's name is.

mod assigned;
mod rules;

use std::borrow::Cow;

use crate::text::is_in;
use rules::PREFIX_TABLE;

/// A text without its secrets, and the number of replaced spans.
#[derive(Debug, PartialEq, Eq)]
pub struct Redacted<'a> {
    pub text: Cow<'a, str>,
    pub count: u32,
}

/// Replaces each secret by `[redacted:KIND]` and each private span by `[private]`.
pub fn redact(text: &str) -> Redacted<'_> {
    let bytes = text.as_bytes();
    let mut out = String::new();
    // Everything before this byte is already in `out`, or replaced.
    let mut copied = 0;
    let mut count = 0;
    let mut at = 0;
    while let Some(&[a, b, c]) = bytes[at..].first_chunk() {
        let candidates = PREFIX_TABLE.candidates(a, b, c);
        if candidates == 0 {
            at += 1;
            continue;
        }
        // A match that starts inside the last replaced span is part of it.
        let found = rules::find(candidates, bytes, at);
        let Some((span, label)) = found.filter(|(span, _)| span.start >= copied) else {
            at += 1;
            continue;
        };
        // Each end of a span is next to an ASCII byte or at an end of the text, so both
        // are character boundaries.
        out.push_str(&text[copied..span.start]);
        if label.starts_with('[') {
            out.push_str(label);
        } else {
            out.extend(["[redacted:", label, "]"]);
        }
        copied = span.end;
        at = span.end.max(at + 1);
        count += 1;
    }
    if count == 0 {
        return Redacted {
            text: Cow::Borrowed(text),
            count,
        };
    }
    out.push_str(&text[copied..]);
    Redacted {
        text: Cow::Owned(out),
        count,
    }
}

/// The replacement for the value of a field with a secret name (`password`); none if the value
/// is not a secret.
pub fn named(name: &str, value: &str) -> Option<String> {
    let clean = value.starts_with("[redacted:") || value.starts_with(['/', '~']);
    (!clean && assigned::is_secret_field(name, value.as_bytes()))
        .then(|| "[redacted:value]".to_owned())
}

/// Endings of files that hold keys.
const KEY_ENDINGS: &str = "pem key p12 pfx jks keystore kdbx ppk asc gpg tfvars";
/// Names of files that hold secrets.
const SECRET_NAMES: &str = ".netrc _netrc .npmrc .pypirc .pgpass .htpasswd .git-credentials .dockercfg .vault-token \
    credentials credentials.json service-account.json secrets.yml secrets.yaml secrets.json secrets.toml \
    id_rsa id_dsa id_ecdsa id_ed25519 master.key shadow";

/// Whether a file with this name holds secrets.
pub fn is_secret_file(path: &str) -> bool {
    let whole = path.replace('\\', "/").to_ascii_lowercase();
    let placed = [
        ".docker/config.json",
        ".kube/config",
        ".config/gh/hosts.yml",
        ".cargo/credentials.toml",
    ]
    .iter()
    .any(|known| whole.ends_with(known));
    let process = whole.starts_with("/proc/") && whole.ends_with("/environ");
    let name = path
        .rsplit(['/', '\\'])
        .next()
        .unwrap_or(path)
        .to_ascii_lowercase();
    let example = ["example", "sample", "template", "dist"]
        .iter()
        .any(|word| name.ends_with(word));
    let dot_env = name == ".env" || name.starts_with(".env.") || name.ends_with(".env") || name == ".envrc"
        // Patterns in a shell command: `.env*` and `.env{,.local}`.
        || name.starts_with(".env*") || name.starts_with(".env?") || name.starts_with(".env{");
    let key_file = name
        .rsplit_once('.')
        .is_some_and(|(_, ending)| is_in(KEY_ENDINGS, ending));
    let known = is_in(SECRET_NAMES, &name);
    (dot_env && !example) || key_file || known || placed || process
}

/// Whether a shell command would show a secret file or the environment.
pub fn shows_secrets(command: &str) -> bool {
    let parts = command.split(['|', ';', '&', '\n', '(', ')', '`']);
    parts.into_iter().any(|part| {
        let mut words = part.split_whitespace().map(unquoted);
        let program = words
            .clone()
            .find(|word| !word.contains('='))
            .unwrap_or_default();
        let program = program.rsplit('/').next().unwrap_or(program);
        let names_secret_file = words.any(|word| {
            let path = word
                .rsplit(['=', '<', '>', ':', '@'])
                .next()
                .unwrap_or(word);
            is_secret_file(path)
        });
        names_secret_file || shows_environment(program, part) || prints_secrets(program, part)
    })
}

/// Whether a command prints the environment: `env` alone does, `env FOO=1 make` runs a program.
fn shows_environment(program: &str, part: &str) -> bool {
    let mut rest = part
        .split_whitespace()
        .map(unquoted)
        .skip_while(|word| !word.ends_with(program))
        .skip(1);
    match program {
        "printenv" => true,
        "env" | "set" | "declare" => rest.next().is_none(),
        "export" => rest.next().is_none_or(|word| word == "-p"),
        _ => false,
    }
}

/// Programs that run another program, perhaps on another machine: `sudo env`, `docker exec app env`.
const RUN_ANOTHER: &str = "sudo doas docker podman nerdctl kubectl oc ssh xargs time sh bash";

/// Commands that print secrets: a program and arguments that follow in this order.
const PRINT_SECRETS: &str = "docker inspect, podman inspect, kubectl get secret, kubectl get secrets, heroku config, \
    aws get-secret-value, gcloud secrets access, vault read, vault kv get, op read, pass show, gh auth token, \
    gcloud auth print-access-token";

/// Whether a command prints secrets or another environment.
fn prints_secrets(program: &str, part: &str) -> bool {
    let words = || part.split_whitespace().map(unquoted);
    let last = words().next_back().unwrap_or_default();
    let last = last.rsplit('/').next().unwrap_or(last);
    let runs_another = is_in(RUN_ANOTHER, program)
        && (last == "env" || words().any(|word| word.ends_with("printenv")));
    runs_another
        || PRINT_SECRETS.split(", ").any(|command| {
            let (mut command, mut words) = (command.split(' '), words());
            command.next() == Some(program)
                && command.all(|it| words.any(|word| word == it || extends(it, word)))
        })
}

/// Whether a word is the argument with something after it: `config:get`, `secret/x`.
fn extends(argument: &str, word: &str) -> bool {
    word.strip_prefix(argument)
        .is_some_and(|rest| rest.starts_with([':', '/']))
}

/// The part of such a command that is stored: the words of its first line that hold no value.
/// Words that are quoted, assigned, echoed or fed to it (`<<EOF`) may be the secret itself.
pub fn without_values(command: &str) -> String {
    const CUT: &str = "[… cut …]";
    let mut kept: Vec<&str> = Vec::new();
    let mut open_quote = None;
    let mut echoes = false;
    let line = command.lines().next().unwrap_or_default();
    let mut cut = line.len() < command.trim_end().len();
    for word in line.split_whitespace() {
        let was_open = open_quote.is_some();
        for character in word.chars() {
            match open_quote {
                None if matches!(character, '"' | '\'' | '`') => open_quote = Some(character),
                Some(quote) if character == quote => open_quote = None,
                _ => {}
            }
        }
        if matches!(word, "|" | "||" | "&&" | ";") || word.starts_with('>') {
            echoes = false;
        }
        if word.contains("<<") && !was_open {
            cut = true;
            break;
        }
        if was_open || echoes || word.contains(['=', '"', '\'', '`']) {
            if kept.last() != Some(&CUT) {
                kept.push(CUT);
            }
            continue;
        }
        kept.push(word);
        let program = word.rsplit(['/', '(']).next().unwrap_or(word);
        echoes |= matches!(program, "echo" | "printf");
    }
    if cut && kept.last() != Some(&CUT) {
        kept.push(CUT);
    }
    kept.join(" ")
}

fn unquoted(word: &str) -> &str {
    word.trim_matches(['"', '\'', '{', '}'])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Built at run time, so that no scanner takes this file for a leak.
    fn body(length: usize) -> String {
        "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0"
            .chars()
            .cycle()
            .take(length)
            .collect()
    }

    #[test]
    fn each_common_secret_is_taken_out_and_its_surroundings_stay() {
        let upper = body(16).to_uppercase();
        let secrets = [
            (format!("sk-ant-api03-{}", body(40)), "anthropic-key"),
            (format!("sk-proj-{}", body(48)), "openai-key"),
            (format!("sk_live_{}", body(24)), "stripe-key"),
            (format!("ghp_{}", body(36)), "github-token"),
            (format!("github_pat_{}", body(60)), "github-token"),
            (format!("glpat-{}", body(20)), "gitlab-token"),
            (format!("AKIA{upper}"), "aws-key-id"),
            (format!("xoxb-{}", body(30)), "slack-token"),
            (format!("AIza{}", body(35)), "google-key"),
            (format!("npm_{}", body(36)), "npm-token"),
            (format!("pypi-{}", body(60)), "pypi-token"),
            (format!("hf_{}", body(34)), "huggingface-token"),
            (
                format!("eyJ{}.eyJ{}.{}", body(20), body(30), body(43)),
                "jwt",
            ),
        ];
        for (secret, label) in secrets {
            let text = format!("before é {secret} after");
            let redacted = redact(&text);
            assert_eq!(redacted.text, format!("before é [redacted:{label}] after"));
            assert_eq!(redacted.count, 1);
        }
    }

    #[test]
    fn a_secret_at_the_end_of_a_sentence_is_one() {
        let text = format!("The password={}.", "hunter2secret99");
        assert_eq!(redact(&text).text, "The password=[redacted:value]");
    }

    #[test]
    fn text_from_our_own_index_is_replaced() {
        // Built from two parts, so that the rule does not match this file itself.
        let (begin, end) = ("<foreword-memory project=\"app\">", "</foreword-");
        let index = format!("{begin}\n#12 the limit is 7\n{end}memory>");
        assert_eq!(
            redact(&format!("a {index} b")).text,
            "a [from Foreword's memory] b"
        );
        for other in ["<foreword-memory project=", "a <foreword-memory> b"] {
            assert_eq!(redact(other).text, other);
        }
    }

    #[test]
    fn only_the_value_is_replaced_after_a_secret_name() {
        let secret = body(14);
        let cases = [
            (
                format!("DB_PASSWORD={secret}\nX=1"),
                "DB_PASSWORD=[redacted:value]\nX=1",
            ),
            (
                format!("{{\"api_key\": \"{secret}\"}}"),
                "{\"api_key\": \"[redacted:value]\"}",
            ),
            (
                format!("\\\"secret\\\":\\\"{secret}\\\""),
                "\\\"secret\\\":\\\"[redacted:value]\\\"",
            ),
            (
                format!("postgres://app:{secret}@db/x"),
                "postgres://app:[redacted:password]@db/x",
            ),
            (
                format!("Authorization: Bearer {secret}{secret}"),
                "Authorization: Bearer [redacted:bearer-token]",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(redact(&text).text, expected);
        }
    }

    #[test]
    fn code_about_secrets_is_left_alone() {
        for text in [
            "let token = parser.next_token2();",
            "password: String,",
            "if (secret === undefined) return;",
            "token: &'a str, api_key: Option<String>",
            "class=\"task-list sk-navbar-item-container-wide\"",
            "postgres://app:${DB_PASSWORD}@db/x",
            "https://example.com/a:b@c",
            "let x = eyJ.foo; AKIAX",
            "-----BEGIN CERTIFICATE-----",
            "git@github.com:acme/pay.git",
            "Unexpected token: `foo_bar_baz_1`",
            "invalid token: identifier1234",
            "TOKEN=parse_token2(input)",
            "password: \"must-be-8-chars\"",
            "secret: my-secret-name-v2",
            "npm_config_user_agent_of_the_package_manager_node_v20",
            "a <private /> b",
            "mkdir -p /a/b && cargo test -p foreword1",
            "--token <TOKEN>  --password PASSWORD",
            "the password is checked; a token is made; pass the test",
            "it passes: 12345678 of 9",
        ] {
            assert_eq!(redact(text).text, text);
            assert_eq!(redact(text).count, 0);
        }
    }

    #[test]
    fn private_spans_are_replaced_nested_unclosed_and_in_any_case() {
        for (text, expected) in [
            ("a <private>x</private> b", "a [private] b"),
            (
                "a <PRIVATE>x <private>y</private> z</Private> b",
                "a [private] b",
            ),
            ("a <private>x", "a [private]"),
            ("a <private>é<b>", "a [private]"),
            ("a <privateer> b", "a <privateer> b"),
        ] {
            assert_eq!(redact(text).text, expected);
        }
    }

    #[test]
    fn a_private_key_is_replaced_whole_even_when_its_end_is_missing() {
        let key = format!("-----BEGIN OPENSSH PRIVATE KEY-----\n{}\n", body(70));
        let whole = format!("x {key}-----END OPENSSH PRIVATE KEY----- y");
        assert_eq!(redact(&whole).text, "x [redacted:private-key] y");
        assert_eq!(redact(&format!("x {key}")).text, "x [redacted:private-key]");
    }

    #[test]
    fn the_work_grows_linearly_with_the_text_whatever_is_repeated() {
        let after = [
            "", "a", "-", "_", " ", "=", ": ", ":\"", "a.", "a1-", "\\", "\n",
        ];
        let work = |unit: &str, length: usize| {
            let _ = redact(&unit.repeat(length / unit.len()));
            rules::bytes_read::take()
        };
        for prefix in rules::prefixes() {
            for unit in after.iter().map(|it| format!("{prefix}{it}")) {
                for unit in [unit.clone(), format!("-{unit}"), format!("x{unit}")] {
                    let (once, twice) = (work(&unit, 2_000), work(&unit, 4_000));
                    assert!(twice <= once * 9 / 4 + 2000, "{unit:?}: {once}, {twice}");
                }
            }
        }
    }

    #[test]
    fn a_long_repetition_of_a_prefix_does_not_grow_the_text() {
        for unit in [
            "sk-",
            "eyJ",
            "-eyJ",
            "token=",
            "TOKEN=",
            "bearer ",
            "password: \"",
            "<private",
            "://",
        ] {
            let text = unit.repeat((400 << 10) / unit.len());
            assert!(redact(&text).text.len() <= 2 * text.len(), "{unit}");
        }
    }

    #[test]
    fn secret_files_are_recognised_by_their_names() {
        for path in [
            "/app/.env",
            ".env.production",
            "prod.env",
            "certs/server.pem",
            "/home/dev/.ssh/id_rsa",
            "~/.netrc",
            "/home/dev/.aws/credentials",
            "config/master.key",
            "terraform.tfvars",
            "C:\\keys\\site.PFX",
            ".envrc",
            ".env*",
            "/home/dev/.kube/config",
            "/home/dev/.docker/config.json",
            "/proc/1/environ",
        ] {
            assert!(is_secret_file(path), "{path}");
        }
        for path in [
            "src/env.rs",
            ".env.example",
            ".env.sample",
            "environment.ts",
            "id_rsa.pub",
            "keyboard.rs",
            "README.md",
            "src/credentials.rs",
            "package.json",
            "app/config.json",
            ".git/config",
        ] {
            assert!(!is_secret_file(path), "{path}");
        }
    }

    #[test]
    fn commands_that_would_show_secrets_are_recognised() {
        for command in [
            "cat .env",
            "cd app && cat ./.env.local | head",
            "grep KEY /app/.env",
            "printenv",
            "env",
            "env | sort",
            "printenv DATABASE_URL",
            "source .env && echo $X",
            "sed -n 1,5p config/prod.env",
            "openssl rsa -in server.key",
            "less ~/.ssh/id_ed25519",
            "FOO=1 cat .env",
            "export -p",
            "docker run --env-file=.env x",
            "cat <.env",
            "kubectl create secret generic x --from-file=tls.key",
            "echo $(cat .env)",
            "set",
            "curl --netrc-file .netrc x",
            "cat .env*",
            "sudo env",
            "docker exec app env",
            "kubectl exec pod -- printenv",
            "kubectl get secret/x -o yaml",
            "cat /proc/1/environ | tr '\\0' '\\n'",
            "heroku config -a x",
            "docker inspect app",
            "vault kv get secret/x",
        ] {
            assert!(shows_secrets(command), "{command}");
        }
        for command in [
            "cargo test",
            "env RUST_LOG=1 cargo test",
            "ls -la",
            "cat src/env.rs",
            "export FOO=1",
            "set -e",
            "cp .env.example x",
            "echo printed",
            "git commit -m 'read the environment'",
            "cat id_rsa.pub",
            "docker ps",
            "kubectl get pods",
            "sudo apt install x",
        ] {
            assert!(!shows_secrets(command), "{command}");
        }
    }

    #[test]
    fn of_a_command_that_writes_a_secret_file_no_value_is_kept() {
        for (command, kept) in [
            ("cat .env", "cat .env"),
            ("cat > .env <<'EOF'\nFOO=x1\nEOF", "cat > .env [… cut …]"),
            ("echo \"FOO=x 1\" >> .env", "echo [… cut …] >> .env"),
            ("echo x1 | tee .env", "echo [… cut …] | tee .env"),
            ("FOO=x1 cat .env", "[… cut …] cat .env"),
            ("sed -i 's/a b/x1/' .env", "sed -i [… cut …] .env"),
            (
                "cd app && cat .env\necho x1",
                "cd app && cat .env [… cut …]",
            ),
        ] {
            assert_eq!(without_values(command), kept);
        }
    }
}
