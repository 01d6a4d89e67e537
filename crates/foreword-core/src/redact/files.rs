//! Files whose whole content is secret, recognised by their names, and commands that would show it.
//!
//! A value in a `.env` file need not look like a key. The content of such a file is not stored at
//! all, whichever way it was shown; only the file's name is.

use crate::text::is_in;

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
    gcloud auth print-access-token, az keyvault secret show, aws ssm get-parameter, aws ssm get-parameters, \
    doppler secrets, infisical secrets, security find-generic-password, security find-internet-password, op item get, \
    bw get, lpass show, railway variables, az account get-access-token, az storage keys list, gopass show, chamber read";

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
