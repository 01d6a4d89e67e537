//! The rules of the thorough stage, as tables: tokens by their prefixes, labels, options of command
//! line clients, and blocks.
//!
//! It runs after the fast stage and takes as long again, so it has no place in a hook. Prefixes come from the documents
//! of the services that issue such tokens. Where a prefix also begins ordinary words the body has
//! to look random.

use std::ops::Range;

use super::assigned::{ValueEnding, contains, end_of_value, is_between, opening_quote};
use super::labels::{self, KEY_LABELS, PASSWORD_LABELS, is_uuid};
use super::rules::{
    Beginning, Prefixes, Rule,
    RuleCheck::{Exactly, Look, Random, Token, Wide},
    RuleSet, WINDOW, after_last, any_case, beginnings, beginnings_count, begins_a_word, exact,
    is_alphanumeric, is_base64_byte, is_hex, is_mixed, is_placeholder, is_scrambled, is_token_byte,
    run, run_max, webhook,
};
use crate::text::is_in;

pub static THOROUGH: RuleSet = RuleSet::new(RULES, &BEGINNINGS);
static BEGINNINGS: [Beginning; beginnings_count(RULES)] = beginnings(RULES);

/// No upper limit of a token's length.
const ANY: usize = usize::MAX;

/// Prefixes that nothing but a token begins with.
#[rustfmt::skip] // A list is read in a line.
const TOKENS: Prefixes = &[
    // Cloud and hosting
    "pscale_tkn_", "pscale_pw_", "pscale_oauth_", "sb_secret_", "vercel_blob_rw_", "apify_api_", "SWMTKN-1-", "SWMKEY-1-",
    "mdb_sa_sk_", "CCDB1_", "essu_", "dnkey-", "bedrock-api-key-", "amzn.mws.", "sha256~",
    // Code, builds and packages
    "glft-", "glimt-", "glagent-", "gloas-", "glsoat-", "glffct-", "glrtr-", "glwt-", "GR1348941", "dckr_oat_", "CCIPAT_", "CCIPRJ_",
    "bkua_", "bkpi_", "bkct_", "bkaj_", "CLOJARS_", "packagist_", "depot_project_", "depot_org_", "sntryi_", "figu_", "figo_",
    // Chat and mail
    "xoxd-", "xoxc-", "xwfp-", "xkeysib-", "xsmtpsib-", "syt_", "EAACEdEose0cBA",
    // Payment and shops
    "duffel_test_", "duffel_live_", "FLWSECK_TEST-", "FLWSECK-", "FLWPUBK_TEST-", "pdl_live_apikey_", "pdl_sdbx_apikey_",
    "pdl_ntfset_", "polar_oat_", "polar_pat_", "shippo_live_", "shippo_test_", "shptka_", "shpua_", "xnd_production_",
    "xnd_development_", "SB-Mid-server-", "Mid-server-", "klarna_live_api_", "klarna_test_api_", "access_token$production$",
    "access_token$sandbox$", "sk_org_live_", "sk_org_test_", "ek_live_", "ek_test_",
    // Models
    "pplx-", "lsv2_pt_", "lsv2_sk_", "sk-lf-", "sk-helicone-", "pcsk_", "tgp_v1_", "tvly-", "wandb_v1_", "esecret_", "api_org_", "hf_oauth_",
    // Monitoring and the rest
    "NRJS-", "NRIQ-", "NRII-", "NRRA-", "hcaik_", "hcbik_", "hcxik_", "os_v2_app_", "os_v2_org_", "rdme_", "signkey-prod-", "signkey-test-",
    "signkey-branch-", "zpka_", "s-s4t2ud-", "s-s4t2af-", "fio-u-", "CFPAT-", "secret-live-", "secret-test-", "glpat-", "gldt-",
];

/// Prefixes that names have too.
#[rustfmt::skip] // A list is read in a line.
const RANDOM_TOKENS: Prefixes = &[
    "LTAI", "AKLT", "AKID", "AKCp", "ABSK", "cmVmdGtu", "dapi", "dose", "dkea", "fo1_", "fm1r_", "fm1a_", "napi_", "nfc_", "nfo_", "nfu_",
    "nfb_", "vcp_", "vci_", "vca_", "vcr_", "vck_", "rnd_", "ddp_", "ddo_", "ddw_", "xau_", "tid_", "tsec_", "cfut_", "cfat_", "cfk_", "cflt",
    "pul-", "pnu_", "pnb_", "ico-", "sgp_", "slk_", "squ_", "sqp_", "sqa_", "ATBB", "ATCTT3", "BBDC-", "ATTA", "nbp_", "tk-us-", "dtn_",
    "ops_", "aio_", "HRKU-", "oat_", "ATSTT", "crsr_", "sgamp_", "key_", "tok_",
    "sk_prod_", "sk_dev_", "sk_sbox_", "testsk_", "key_live_", "live_", "test_", "tok_live_", "sandbox_", "APP_USR-", "skey_",
    "e2b_", "jina_", "ls__", "rpa_", "csk-", "fw_", "fc-", "sess-", "gAAAAA", "ck-", "y0_", "AQVN", "fnA", "cu_",
    "phx_", "phs_", "phc_", "tr_prod_", "tr_dev_", "bb_live_", "unkey_", "tfp_", "secret_", "sec-c-", "p8e-", "WPL_", "retool_", "NRAL",
    "A3-", "EZAK", "EZTK", "KEY0", "API-", "BSA", "EAA", "1//0", "4/0A", "AQ.Ab", "xprv", "xapp-", "eyJrIjoi", "eyJhIjoi", "dG9rO",
];

/// Prefixes of tokens that have dots, bars or other signs in them.
#[rustfmt::skip] // A list is read in a line.
const WIDE_TOKENS: Prefixes = &[
    "dt0c01.", "dt0s01.", "dt0s02.", "dt0s16.", "sl.u.", "sl.", "hawk.", "snyk_uat.", "snyk_sat.", "mlsn.", "pat.", "sat.", "pat", "st.",
    "LLM|", "perm:", "perm-", "WPL_AP1.", "t1.", "00D", "v1.0-", "1000.", "K10", "MDAx", "0.", "dp.audit.", "dp.scim.", "whsec_",
];

/// Signs inside a token: in the middle of a run of letters and digits.
#[rustfmt::skip] // A list is read in a line.
const MIDDLES: Prefixes = &[
    ".atlasv1.", "AzFu", "AzSe", "AzCa", "+ACR", "+AEh", "+ASb", "+AMC", "ACDb", "AIoT", "JQQJ99", "Q~", "FFFFNRAL", ":APA91b",
];

/// Paths of URLs that are keys themselves.
#[rustfmt::skip] // A list is read in a line.
const WEBHOOKS: Prefixes = &[
    "hooks.slack.com/workflows/", "hooks.slack.com/triggers/", "hooks.zapier.com/hooks/catch/", "webhook.office.com/webhookb2/",
    "outlook.office.com/webhook/", "open.feishu.cn/open-apis/bot/v2/hook/", "open.larksuite.com/open-apis/bot/v2/hook/",
    "maker.ifttt.com/trigger/", "events.pagerduty.com/integration/", "hc-ping.com/", "api.netlify.com/build_hooks/",
    "api.vercel.com/v1/integrations/deploy/", "api.render.com/deploy/", "hook.eu1.make.com/", "hook.us1.make.com/", "hook.eu2.make.com/",
    "api.telegram.org/bot", "g.alchemy.com/v2/", "alchemyapi.io/v2/", "infura.io/v3/", "infura.io/ws/v3/", "rpc.ankr.com/eth/",
    "rpc.ankr.com/multichain/", "quiknode.pro/", "getblock.io/", "blastapi.io/", "p.chainstack.com/",
];

#[rustfmt::skip] // A table is read line by line.
const RULES: &[Rule] = &[
    exact(TOKENS, "token", Token(16)),
    exact(RANDOM_TOKENS, "token", Random(20, ANY)),
    exact(WIDE_TOKENS, "token", Wide(40)),
    exact(MIDDLES, "token", Look(middle)),
    exact(WEBHOOKS, "webhook", Look(webhook)),
    exact(&["hf_"], "huggingface-token", Exactly(34, is_alphanumeric)),
    exact(&["NRAL"], "newrelic-key", Look(license)),
    exact(&["Kw", "Kx", "Ky", "Kz", "L1", "L2", "L3", "L4", "L5"], "wallet-key", Random(50, 50)),
    exact(&["5H", "5J", "5K"], "wallet-key", Random(49, 49)),
    exact(&["sk_", "re_"], "token", Random(30, ANY)),
    exact(&["sk"], "token", Random(80, ANY)),
    exact(&["md-", "ak-", "as-", "wk-", "ws-"], "token", Random(22, 22)),
    exact(&["s.", "b."], "vault-token", Random(24, 24)),
    exact(&["pa-", "oy2"], "token", Random(43, 43)),
    exact(&["db-"], "token", Random(29, 29)),
    exact(&["cio"], "token", Exactly(32, is_alphanumeric)),
    exact(&["ck_", "cs_"], "token", Exactly(40, is_hex)),
    exact(&["oauth:"], "token", Exactly(30, is_alphanumeric)),
    exact(&["pat-na1-", "pat-na2-", "pat-eu1-", "sdk-", "api-", "mob-", "waka_", "HRKU-", "access-sandbox-", "access-production-",
        "access-development-", "xaat-", "xapt-", "rel-"], "token", Exactly(36, is_uuid_byte)),
    exact(&["-us"], "mailchimp-key", Look(mailchimp)),
    exact(&["LS0tLS1CRUdJTi"], "private-key", Look(encoded_private_key)),
    exact(&["MII", "MHc", "MIG", "MC4", "b3BlbnNzaC1rZXktdjE"], "private-key", Look(bare_private_key)),
    exact(&["Private-Lines:"], "private-key", Look(putty_key)),
    exact(&["\"d\"", "\\\"d\\\"", "\"k\"", "\\\"k\\\""], "private-key", Look(jwk)),
    exact(&["\ndata:\n", "\nstringData:\n"], "kubernetes-secret", Look(kubernetes_secret)),
    exact(&["://"], "token", Look(url_token)),
    any_case(&["?key=", "&key=", "?auth=", "&auth=", "?sig=", "&sig=", "&code=", "?code=", "-signature=", "?s=", "&s=", "?k=", "&k=", "?appid=", "&appid=", "?access=", "&access="], "token", Look(query)),
    any_case(&["sessionid=", "phpsessid=", "jsessionid=", "sessid=", "sid=", "_session=", "session=", "session-token=", "aspxauth="], "cookie", Look(query)),
    any_case(&["\"auth\"", "\\\"auth\\\"", "_auth", "_password"], "value", Look(encoded_pair)),
    any_case(&["password", "identified by", "identified with", " by"], "value", Look(labels::sql)),
    any_case(&["password", "account"], "value", Look(labels::netrc)),
    any_case(&["value", "default", "<string>", "<value>", "secretstring", "content"], "value", Look(labels::value_of_name)),
    exact(&["ENV ", "ARG ", "setx ", "set -x ", "set -gx ", "set -Ux ", "secret set ", "secrets set ", "--build-arg ", "#define ", "readonly "], "value", Look(labels::declared)),
    exact(&[" -", "\t-", " /p", " /r", "'-", "\"-"], "password", Look(client_option)),
    exact(&["sudo -S", "--stdin", "-stdin", "chpasswd", "vercel env add", "wrangler secret put", "secret create", "secret set", "secrets import",
        "wg pubkey", "pass insert"], "password", Look(piped)),
    any_case(ARGUMENTS, "password", Look(argument)),
    exact(&["PASS="], "value", Look(variable)),
    any_case(&["connect(", "mysqli(", "pdo(", "auth=(", "basicauth(", "login(", "values (", "credentials("], "password", Look(call)),
    exact(&["@tcp(", "@unix(", "@//"], "password", Look(before_host)),
    exact(&[":*:", ":5432:", ":5433:", ":6432:"], "password", Look(pgpass)),
    exact(&["\tTRUE\t", "\tFALSE\t"], "cookie", Look(cookie_file)),
    any_case(&["login", "creds", "credentials", "zugangsdaten", "identifiants", "credenciales", "zugang"], "password", Look(pair)),
    any_case(&["recovery codes", "backup codes", "scratch codes", "wiederherstellungscodes"], "value", Look(codes)),
    exact(&["[redacted:value]"], "value", Look(continued)),
    any_case(&["bearer \\\n"], "bearer-token", Look(continued)),
    any_case(&["mnemonic", "seed phrase", "recovery phrase", "seed words"], "value", Look(labels::mnemonic)),
    any_case(PASSWORD_LABELS, "value", Look(labels::password)),
    any_case(KEY_LABELS, "value", Look(labels::key)),
    any_case(&["key", "secret", "token", "password", "credential", "passphrase"], "value", Look(labels::beside)),
];

fn is_uuid_byte(byte: u8) -> bool {
    byte.is_ascii_hexdigit() || byte == b'-'
}

/// A token that is recognised by a sign in its middle.
fn middle(bytes: &[u8], at: usize, body: usize) -> Option<Range<usize>> {
    let fits =
        |byte: u8| is_base64_byte(byte) || is_token_byte(byte) || matches!(byte, b'~' | b'.');
    let before = bytes[at.saturating_sub(WINDOW)..at].iter().rev();
    let before = before.take_while(|&&byte| fits(byte)).count();
    let after = run_max(bytes, body, WINDOW, fits) - body;
    let seen = &bytes[at - before..body + after];
    (before >= 3 && seen.len() >= 34 && after >= 3 && is_scrambled(seen))
        .then(|| at - before..run(bytes, body, fits))
}

/// 36 letters and digits before `NRAL`.
fn license(bytes: &[u8], at: usize, body: usize) -> Option<Range<usize>> {
    let before = bytes[at.saturating_sub(WINDOW)..at].iter().rev();
    let before = before.take_while(|it| it.is_ascii_alphanumeric()).count();
    let ends = bytes.get(body).is_none_or(|&byte| !is_token_byte(byte));
    (before == 36 && ends).then(|| at - before..body)
}

/// 32 digits and `-us12`.
fn mailchimp(bytes: &[u8], at: usize, body: usize) -> Option<Range<usize>> {
    let before = bytes[at.saturating_sub(33)..at].iter().rev();
    let hex = before.take_while(|&&byte| is_hex(byte)).count();
    let end = run_max(bytes, body, 3, |byte| byte.is_ascii_digit());
    (hex == 32 && (body + 1..body + 3).contains(&end)).then(|| at - 32..end)
}

/// A PEM file in base64, as in a kubeconfig's `client-key-data`. Certificates stay.
fn encoded_private_key(bytes: &[u8], at: usize, body: usize) -> Option<Range<usize>> {
    let head = decoded(&bytes[at..run_max(bytes, at, 96, is_base64_byte)]);
    contains(&head, "PRIVATE KEY").then(|| at..run(bytes, body, is_base64_byte))
}

/// The body of a private key without its first line, known by how its encoding begins.
fn bare_private_key(bytes: &[u8], at: usize, _body: usize) -> Option<Range<usize>> {
    const BEGINNINGS: &[&str] = &[
        "IBAAKC",
        "IBADAN",
        "CAQEEI",
        "AgEAMB",
        "AgEBBD",
        "CAQAwBQYDK2",
        "b3BlbnNzaC1rZXktdjE",
    ];
    let head = &bytes[at..run_max(bytes, at, 20, is_base64_byte)];
    if !begins_a_word(bytes, at)
        || head.len() < 20
        || !BEGINNINGS.iter().any(|it| contains(head, it))
    {
        return None;
    }
    Some(at..base64_lines(bytes, at))
}

/// The end of lines in base64, each perhaps with the sign of a diff before it.
fn base64_lines(bytes: &[u8], start: usize) -> usize {
    let mut end = run(bytes, start, is_base64_byte);
    loop {
        let next = run_max(bytes, end, 8, |byte| b"\r\n +-\\\"',".contains(&byte));
        let next = if bytes[end..].starts_with(b"\\n") {
            end + 2
        } else {
            next
        };
        let line = run(bytes, next, is_base64_byte);
        if next == end || line - next < 16 {
            return end;
        }
        end = line;
    }
}

fn putty_key(bytes: &[u8], _at: usize, body: usize) -> Option<Range<usize>> {
    let start = run_max(bytes, body, 16, |byte| {
        byte.is_ascii_digit() || byte.is_ascii_whitespace()
    });
    let end = base64_lines(bytes, start);
    (end - start >= 32).then_some(start..end)
}

/// The private part of a JSON web key.
fn jwk(bytes: &[u8], at: usize, body: usize) -> Option<Range<usize>> {
    let around = &bytes[at.saturating_sub(8 * WINDOW)..bytes.len().min(body + 8 * WINDOW)];
    let start = run_max(bytes, body, 8, |byte| b" :\\\"\n".contains(&byte));
    let end = run_max(bytes, start, WINDOW, is_token_byte);
    (end - start >= 40 && contains(around, "kty")).then(|| start..run(bytes, start, is_token_byte))
}

/// The data of a Kubernetes secret: everything that is indented below `data:`.
fn kubernetes_secret(bytes: &[u8], at: usize, body: usize) -> Option<Range<usize>> {
    let document = &bytes[at.saturating_sub(8 * WINDOW)..bytes.len().min(body + 32 * WINDOW)];
    let kind = memchr::memmem::find(document, b"kind: Secret\n").is_some()
        || document.ends_with(b"kind: Secret");
    if !kind {
        return None;
    }
    let mut end = body;
    while matches!(bytes.get(end), Some(b' ')) {
        end = run(bytes, end, |byte| byte != b'\n') + 1;
    }
    let end = end.min(bytes.len());
    (end > body).then(|| body..end - usize::from(bytes[end - 1] == b'\n'))
}

/// `https://TOKEN@host`.
fn url_token(bytes: &[u8], _at: usize, body: usize) -> Option<Range<usize>> {
    let end = run_max(bytes, body, 4 * WINDOW, is_token_byte);
    let user = &bytes[body..end];
    let secret =
        bytes.get(end) == Some(&b'@') && user.len() >= 16 && is_mixed(user) && is_scrambled(user);
    secret.then_some(body..end)
}

/// A random value after `key=` in a URL, or after the name of a cookie that identifies a session.
fn query(bytes: &[u8], at: usize, body: usize) -> Option<Range<usize>> {
    let fits = |byte: u8| is_token_byte(byte) || b"%+/=.~:".contains(&byte);
    let value = &bytes[body..run_max(bytes, body, WINDOW, fits)];
    let is_name = !bytes[at].is_ascii_alphanumeric() || begins_a_word(bytes, at);
    let secret =
        is_name && value.len() >= 16 && is_mixed(value) && is_scrambled(value) && !is_uuid(value);
    secret.then(|| body..run(bytes, body, fits))
}

/// `user:password` in base64, or a random value, as in `.npmrc` and `.docker/config.json`.
fn encoded_pair(bytes: &[u8], _at: usize, body: usize) -> Option<Range<usize>> {
    let start = run_max(bytes, body, 8, |byte| b" :=\\\"'".contains(&byte));
    let end = run_max(bytes, start, 4 * WINDOW, is_base64_byte);
    let value = &bytes[start..end];
    let text = decoded(value);
    let pair = text.contains(&b':')
        && text
            .iter()
            .all(|byte| byte.is_ascii_graphic() || *byte == b' ');
    let secret = start > body
        && value.len() >= 8
        && (pair || value.len() >= 16 && is_mixed(value) && is_scrambled(value));
    secret.then(|| start..run(bytes, start, is_base64_byte))
}

/// The bytes that a text in base64 stands for.
fn decoded(text: &[u8]) -> Vec<u8> {
    let digit = |byte: u8| match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    let digits: Vec<u8> = text.iter().map_while(|&byte| digit(byte)).collect();
    let group = |group: &[u8]| {
        let number = group
            .iter()
            .fold(0_u32, |number, &digit| number << 6 | u32::from(digit))
            << (6 * (4 - group.len()));
        let bytes = number.to_be_bytes();
        bytes[1..group.len().max(1)].to_vec()
    };
    digits.chunks(4).flat_map(group).collect()
}

/// Options that are followed by a password.
struct Client {
    programs: &'static str,
    /// A word that the command has to contain, too.
    word: &'static str,
    /// With `+` after it, the value may follow without a space.
    options: &'static str,
    /// The sign in the value after which the password begins: `user%password`.
    after: &'static str,
}

const fn client(
    programs: &'static str,
    word: &'static str,
    options: &'static str,
    after: &'static str,
) -> Client {
    Client {
        programs,
        word,
        options,
        after,
    }
}

#[rustfmt::skip] // A table is read line by line.
const CLIENTS: &[Client] = &[
    client("redis-cli valkey-cli keydb-cli", "", "-a --pass", ""),
    client("docker podman nerdctl buildah skopeo helm oras crane regctl az oc cf ibmcloud", "login", "-p --password -p+", ""),
    client("mongo mongosh mongodump mongorestore mongoexport mongoimport mongostat mongotop", "", "-p -p+ --password", ""),
    client("7z 7za 7zz 7zr rar unrar", "", "-p+ -hp+", ""),
    client("zip unzip zipcloak funzip", "", "-P -P+", ""),
    client("sqlcmd bcp osql isql mosquitto_pub mosquitto_sub ipmitool tsql", "", "-P -P+", ""),
    client("ldapsearch ldapmodify ldapadd ldapdelete ldappasswd ldapwhoami ldapcompare", "", "-w -w+ -s", ""),
    client("cqlsh hdbsql rdesktop ncftpput ncftpget influx clickhouse-client cypher-shell evil-winrm neo4j-admin beeline", "", "-p -p+ --password", ""),
    client("mysql mysqldump mysqladmin mariadb mariadb-dump sshpass mysqlimport", "", "-p+", ""),
    client("sshpass", "", "-p", ""),
    client("plink pscp psftp putty", "", "-pw", ""),
    client("keytool jarsigner", "", "-storepass -keypass -srcstorepass -deststorepass -new", ""),
    client("openssl", "", "-passin -passout -pass", ":"),
    client("openssl", "", "-k -K -hmac", ""),
    client("gpg gpg2 cryptsetup restic borg", "", "--passphrase", ""),
    client("smbclient rpcclient smbmap net winexe mount.cifs", "", "-U -U+ --user", "%"),
    client("lftp ncftp", "", "-u", ","),
    client("curl http https xh wget", "", "-u --user -u+ -U --proxy-user", ":"),
    client("curl", "", "-b --cookie", "="),
    client("snmpwalk snmpget snmpset snmpbulkwalk", "", "-A -X", ""),
    client("xfreerdp wfreerdp xfreerdp3", "", "/p:+", ""),
    client("gh glab", "secret", "-b --body -v --value", ""),
    client("rabbitmqadmin psexec psexec64 PsExec.exe wmic nxc crackmapexec netexec", "", "-p", ""),
    client("kinit kadmin", "", "-w", ""),
    client("security", "", "-p -w -P", ""),
    client("cmdkey net schtasks runas", "", "/pass:+ /p:+ /rp /password:+", ""),
    client("aws", "SecureString", "--value", ""),
    client("openvpn rsync gocryptfs", "", "--password", ""),
    client("vncpasswd x11vnc", "", "-passwd", ""),
];

/// Phrases of commands and settings that a secret follows as a word of its own.
#[rustfmt::skip] // A list is read in a line.
const ARGUMENTS: Prefixes = &[
    "add-authtoken ", "authtoken ", "importprivkey ", "stats auth ", "alias set ", "config host add ", "http-basic.", "openssl passwd ", "> auth ",
    "requirepass ", "masterauth ", "change_password ", "add_user ", "wpa_passphrase ", "htpasswd -b", "htpasswd -n", "rclone obscure ",
    "bundle config ", "sqlplus ", "impdp ", "expdp ", "rman target ", "enable secret ", "enable password ", "snmp-server community ",
    "username ", "login user-token ", "gh auth login --with-token ", "config set ", "aws configure set ", "net use ", "passwd-s3fs ",
];

/// The last word of a command, or the one that looks like a password: these have no option for it.
fn argument(bytes: &[u8], at: usize, body: usize) -> Option<Range<usize>> {
    let line = run_max(bytes, body, 2 * WINDOW, |byte| {
        !matches!(byte, b'\n' | b'|' | b';' | b'&' | b'`')
    });
    if !begins_a_word(bytes, at) && bytes[at] != b'>' {
        return None;
    }
    let mut start = body;
    while start < line {
        start = run_max(bytes, start, line - start, |byte| {
            byte.is_ascii_whitespace()
        });
        let (word, ending) = opening_quote(bytes, start).unwrap_or((start, ValueEnding::Space));
        let end = end_of_value(bytes, word, ending, WINDOW);
        // `user:password`, `user/password@host`.
        let value = &bytes[word..end];
        let user = value
            .iter()
            .position(|byte| b":/".contains(byte))
            .filter(|_| !contains(value, "://"));
        let from = word + user.map_or(0, |at| at + 1);
        let host = bytes[from..end]
            .iter()
            .position(|&byte| byte == b'@')
            .filter(|_| user.is_some());
        let to = host.map_or(end, |at| from + at);
        if labels::is_password_word(&bytes[from..to]) {
            return Some(from..to);
        }
        start = end.max(start) + 1;
    }
    None
}

/// `SSHPASS=…`: a name in capitals that ends in `PASS`.
fn variable(bytes: &[u8], at: usize, body: usize) -> Option<Range<usize>> {
    let (start, ending) = opening_quote(bytes, body).unwrap_or((body, ValueEnding::Space));
    let value = &bytes[start..end_of_value(bytes, start, ending, WINDOW)];
    let in_name = at > 0 && bytes[at - 1].is_ascii_uppercase();
    (in_name && labels::is_password(value)).then(|| start..end_of_value(bytes, start, ending, ANY))
}

/// A string that looks like a password, among the arguments of a call that opens a connection.
fn call(bytes: &[u8], _at: usize, body: usize) -> Option<Range<usize>> {
    let end = run_max(bytes, body, 2 * WINDOW, |byte| {
        byte != b')' && byte != b'\n'
    });
    let (mut at, mut strings) = (body, 0);
    while at < end {
        let Some((start, ending)) = opening_quote(bytes, at) else {
            at += 1;
            continue;
        };
        let close = end_of_value(bytes, start, ending, 2 * WINDOW);
        if strings > 0 && labels::is_password_word(&bytes[start..close]) {
            return Some(start..close);
        }
        strings += 1;
        at = close + 1;
    }
    None
}

/// `user:password@tcp(host)`, `user/password@//host`.
fn before_host(bytes: &[u8], at: usize, _body: usize) -> Option<Range<usize>> {
    let before = &bytes[at.saturating_sub(WINDOW)..at];
    let password = after_last(before, |byte| {
        matches!(byte, b':' | b'/' | b'"' | b'\'' | b' ' | b'\n')
    });
    let start = at - password.len();
    let separated = start > 0 && matches!(bytes[start - 1], b':' | b'/');
    (separated && password.len() >= 4 && !is_placeholder(password)).then_some(start..at)
}

/// `host:port:database:user:password`, a line of a `.pgpass` file.
fn pgpass(bytes: &[u8], at: usize, _body: usize) -> Option<Range<usize>> {
    let before = &bytes[at.saturating_sub(WINDOW)..at];
    let line = after_last(before, |byte| {
        byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'')
    });
    let from = at - line.len();
    let end = run_max(bytes, from, 2 * WINDOW, |byte| {
        byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'')
    });
    let fields = bytes[from..end]
        .iter()
        .enumerate()
        .filter(|(_, byte)| **byte == b':');
    let fourth = fields.map(|(at, _)| from + at + 1).nth(3)?;
    if contains(&bytes[from..fourth], "::") {
        return None;
    }
    (end - fourth >= 4 && !is_placeholder(&bytes[fourth..end])).then_some(fourth..end)
}

/// The last column of a file of cookies: `domain TRUE / TRUE time name value`.
fn cookie_file(bytes: &[u8], _at: usize, body: usize) -> Option<Range<usize>> {
    let time = run_max(bytes, body, 12, |byte| byte.is_ascii_digit());
    let name = run_max(bytes, time, 64, |byte| byte != b'\n' && byte != b' ');
    let columns = &bytes[time..name];
    let value = columns.iter().rposition(|&byte| byte == b'\t')? + time + 1;
    let secret = time > body && columns[0] == b'\t' && value > time + 1 && name - value >= 8;
    secret.then(|| value..run(bytes, value, |byte| byte.is_ascii_graphic()))
}

/// `login: user / password`.
fn pair(bytes: &[u8], at: usize, body: usize) -> Option<Range<usize>> {
    let line = run_max(bytes, body, 96, |byte| {
        byte != b'\n' && !b"(){};<>\"".contains(&byte)
    });
    let slash = bytes[body..line]
        .iter()
        .position(|byte| matches!(byte, b'/' | b','))?;
    let start = run_max(bytes, body + slash + 1, 4, |byte| byte == b' ');
    let end = end_of_value(bytes, start, ValueEnding::Space, WINDOW);
    let is_word =
        begins_a_word(bytes, at) && !bytes.get(body).is_some_and(u8::is_ascii_alphanumeric);
    (is_word && labels::is_password_word(&bytes[start..end])).then_some(start..end)
}

/// Lines with one short code each.
fn codes(bytes: &[u8], _at: usize, body: usize) -> Option<Range<usize>> {
    let start = (run_max(bytes, body, 40, |byte| byte != b'\n') + 1).min(bytes.len());
    let mut end = start;
    loop {
        let code = run_max(bytes, end, 8, |byte| {
            b" \t-*.)".contains(&byte) || byte.is_ascii_digit() && bytes.get(end + 1) == Some(&b'.')
        });
        let close = run_max(bytes, code, 40, |byte| is_token_byte(byte) || byte == b' ');
        let is_code = close - code >= 6 && bytes[code..close].iter().any(u8::is_ascii_digit);
        if !is_code
            || bytes
                .get(close)
                .is_some_and(|&byte| byte != b'\n' && byte != b'\r')
        {
            break;
        }
        end = run_max(bytes, close, 2, |byte| matches!(byte, b'\r' | b'\n'));
    }
    (end > start + 12).then(|| start..end.min(bytes.len()))
}

/// The further lines of a value, each a random word: a folded text in YAML, a continued command.
fn continued(bytes: &[u8], _at: usize, body: usize) -> Option<Range<usize>> {
    let (mut start, mut end) = (None, body);
    loop {
        let line = run_max(bytes, end, 64, |byte| byte.is_ascii_whitespace());
        let close = run(bytes, line, |byte| {
            is_token_byte(byte) || is_base64_byte(byte)
        });
        let whole = bytes
            .get(close)
            .is_none_or(|byte| matches!(byte, b'\n' | b'\r' | b'"' | b'\''));
        let indented = line > end || end == body && bytes[body - 1] == b'\n';
        if !indented || !whole || close - line < 16 || !is_scrambled(&bytes[line..close]) {
            break;
        }
        start.get_or_insert(line);
        end = close;
    }
    start.map(|start| start..end)
}

/// The password after an option: the program decides which options have one.
fn client_option(bytes: &[u8], at: usize, _body: usize) -> Option<Range<usize>> {
    let before = &bytes[at.saturating_sub(2 * WINDOW)..at];
    let command = after_last(before, |byte| {
        matches!(byte, b'\n' | b'|' | b';' | b'&' | b'`' | b'(')
    });
    let option_start = at + 1;
    let in_list = matches!(bytes[at], b'"' | b'\'');
    let option = &bytes[option_start..run_max(bytes, option_start, 32, |byte| {
        !(byte.is_ascii_whitespace() || in_list && byte == bytes[at])
    })];
    let words = || command.split(|byte| byte.is_ascii_whitespace() || b"\"'/$,[\\".contains(byte));
    let runs = |list: &str| {
        words().any(|word| {
            std::str::from_utf8(word).is_ok_and(|word| {
                // The sign of a diff may stand before the first word.
                let word = word.trim_start_matches(['+', '-']);
                word.len() > 1 && is_in(list, word)
            })
        })
    };
    for client in CLIENTS {
        let find = |name: &&str| match name.strip_suffix('+') {
            Some(name) => option.starts_with(name.as_bytes()) && option.len() > name.len(),
            None => option.split(|&byte| byte == b'=').next() == Some(name.as_bytes()),
        };
        let Some(name) = client.options.split(' ').find(find) else {
            continue;
        };
        if !runs(client.programs) || !client.word.is_empty() && !runs(client.word) {
            continue;
        }
        let option_end = option_start + name.trim_end_matches('+').len();
        let option_end =
            option_end + usize::from(in_list && bytes.get(option_end) == Some(&bytes[at]));
        let gap_max = if name.ends_with('+') { 0 } else { 4 };
        let gap = run_max(bytes, option_end, gap_max, |byte| {
            matches!(byte, b' ' | b'=') || in_list && byte == b','
        });
        let (start, ending) = opening_quote(bytes, gap).unwrap_or((gap, ValueEnding::Space));
        let value = &bytes[start..end_of_value(bytes, start, ending, WINDOW)];
        let skipped = match client.after {
            "" => Some(0),
            sign => value
                .iter()
                .position(|&byte| byte == sign.as_bytes()[0])
                .map(|at| at + 1),
        };
        let Some(skipped) = skipped else {
            continue;
        };
        let password = &value[skipped..];
        let is_source = ["file:", "env:", "fd:", "stdin"]
            .iter()
            .any(|it| value.starts_with(it.as_bytes()));
        let secret = password.len() >= 3
            && !is_source
            && !is_placeholder(password)
            && !is_between(password)
            && !matches!(password[0], b'-' | b'/' | b'@' | b'.');
        if secret {
            return Some(start + skipped..end_of_value(bytes, start, ending, ANY));
        }
    }
    None
}

/// A password that is written to a program's standard input: `echo X | sudo -S`, `<<< X`.
fn piped(bytes: &[u8], at: usize, body: usize) -> Option<Range<usize>> {
    let here = run_max(bytes, body, 32, |byte| byte != b'\n' && byte != b'<');
    let value_start = if bytes[here..].starts_with(b"<<<") {
        here + 3
    } else {
        let from = at.saturating_sub(2 * WINDOW);
        let before = &bytes[from..at];
        let pipe = before.iter().rposition(|&byte| byte == b'|')?;
        let command = after_last(&before[..pipe], |byte| matches!(byte, b'\n' | b';' | b'&'));
        let echo = ["echo ", "printf "].iter().find_map(|it| {
            let at = memchr::memmem::find(command, it.as_bytes())?;
            Some(at + it.len())
        })?;
        from + pipe - command.len() + echo
    };
    let options = run_max(bytes, value_start, 16, |byte| b" -nesr%\\".contains(&byte));
    let value_start = if bytes[value_start..options].contains(&b'-') {
        options
    } else {
        run_max(bytes, value_start, 4, |byte| byte == b' ')
    };
    let (start, ending) =
        opening_quote(bytes, value_start).unwrap_or((value_start, ValueEnding::Space));
    let end = end_of_value(bytes, start, ending, WINDOW);
    let user = bytes[start..end].iter().position(|&byte| byte == b':');
    let start = start
        + user
            .filter(|_| bytes[at..body].starts_with(b"chpasswd"))
            .map_or(0, |at| at + 1);
    (end - start >= 3 && !is_placeholder(&bytes[start..end])).then_some(start..end)
}
