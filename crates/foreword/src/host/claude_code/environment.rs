//! Variables of Claude Code's: those by which it finds its login, and those that keep it quiet
//! when the `claude` provider runs it as a memory agent.

/// The login of the claude CLI, and the service it sends requests to. `*` stands for any end.
pub const LOGIN: &[&str] = &[
    "CLAUDE_CONFIG_DIR",
    "ANTHROPIC_*",
    "CLAUDE_CODE_USE_*",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "DISABLE_*",
];

/// Variables that are passed on only if the switch of their back end is on.
pub const BACK_ENDS: &[(&str, &[&str])] = &[
    (
        "CLAUDE_CODE_USE_BEDROCK",
        &["AWS_*", "CLAUDE_CODE_SKIP_BEDROCK_AUTH"],
    ),
    (
        "CLAUDE_CODE_USE_VERTEX",
        &[
            "GOOGLE_*",
            "CLOUD_ML_*",
            "VERTEX_REGION_*",
            "CLAUDE_CODE_SKIP_VERTEX_AUTH",
        ],
    ),
];

/// Switch off everything but one plain request. Those with a comment were seen to matter; the
/// others are documented by the client.
pub const QUIET: &[(&str, &str)] = &[
    // An `@path` anywhere in the question had the client read that file, wherever it was,
    // and send it along; also with no tools at all.
    ("CLAUDE_CODE_DISABLE_FILE_MENTIONS", "1"),
    ("CLAUDE_CODE_DISABLE_ATTACHMENTS", "1"),
    // The user's own CLAUDE.md comes with `--setting-sources user`, as do their rules.
    ("CLAUDE_CODE_DISABLE_CLAUDE_MDS", "1"),
    ("CLAUDE_CODE_DISABLE_AUTO_MEMORY", "1"),
    // One request is one request: it is us who try again, later, and count.
    ("CLAUDE_CODE_MAX_RETRIES", "0"),
    ("CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK", "1"),
    ("CLAUDE_CODE_DISABLE_REFUSAL_RETRY", "1"),
    // Else any 400 is asked again without each of them.
    ("CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS", "1"),
    // The first is not enough for models that choose themselves how long to think.
    ("MAX_THINKING_TOKENS", "0"),
    ("CLAUDE_CODE_DISABLE_THINKING", "1"),
    ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
    ("DISABLE_TELEMETRY", "1"),
    ("DISABLE_AUTOUPDATER", "1"),
    ("DISABLE_ERROR_REPORTING", "1"),
];

/// Limits the tokens of an answer.
pub const ANSWER_MAX: &str = "CLAUDE_CODE_MAX_OUTPUT_TOKENS";
