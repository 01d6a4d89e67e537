//! Files whose whole content is secret, and commands that would show it.
//!
//! Nothing in a `.env` has to look like a key. So what such a file holds is not
//! kept at all, however it was shown; its name is.

/// Whether a file is of a kind that holds secrets.
#[must_use]
pub fn is_secret_file(path: &str) -> bool {
    let name = path
        .rsplit(['/', '\\'])
        .next()
        .unwrap_or(path)
        .to_ascii_lowercase();
    let example = ["example", "sample", "template", "dist"]
        .iter()
        .any(|word| name.ends_with(word));
    let dot_env =
        name == ".env" || name.starts_with(".env.") || name.ends_with(".env") || name == ".envrc";
    let key_file = [
        ".pem",
        ".key",
        ".p12",
        ".pfx",
        ".jks",
        ".keystore",
        ".kdbx",
        ".ppk",
        ".asc",
        ".gpg",
        ".tfvars",
    ]
    .iter()
    .any(|extension| name.ends_with(extension));
    let known = matches!(
        name.as_str(),
        ".netrc"
            | "_netrc"
            | ".npmrc"
            | ".pypirc"
            | ".pgpass"
            | ".htpasswd"
            | ".git-credentials"
            | ".dockercfg"
            | ".vault-token"
            | "credentials"
            | "credentials.json"
            | "service-account.json"
            | "secrets.yml"
            | "secrets.yaml"
            | "secrets.json"
            | "secrets.toml"
            | "id_rsa"
            | "id_dsa"
            | "id_ecdsa"
            | "id_ed25519"
            | "master.key"
            | "shadow"
    );
    (dot_env && !example) || key_file || known
}

/// Commands that print the environment.
const SHOW_ENVIRONMENT: &[&str] = &["printenv", "env", "set", "export", "declare"];

/// Whether a shell command would show a secret file or the environment.
#[must_use]
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
        names_secret_file || shows_environment(program, part)
    })
}

/// `env` alone or with a filter shows; `env FOO=1 make` runs something.
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
        _ => {
            debug_assert!(!SHOW_ENVIRONMENT.contains(&program));
            false
        }
    }
}

fn unquoted(word: &str) -> &str {
    word.trim_matches(['"', '\'', '{', '}'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_files_are_known_by_their_names() {
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
        ] {
            assert!(!is_secret_file(path), "{path}");
        }
    }

    #[test]
    fn commands_that_would_show_them_are_known_too() {
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
        ] {
            assert!(!shows_secrets(command), "{command}");
        }
    }
}
