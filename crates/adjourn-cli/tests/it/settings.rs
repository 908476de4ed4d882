//! Settings: flags over variables over a file over defaults, and every mistake by its place.

use std::os::unix::fs::PermissionsExt;

use expect_test::expect;

use crate::home::Home;

const FILE: &str = r#"
store = "agents/store.db"
tenant = "acme"

[serve]
listen = "127.0.0.1:7070"
token_file = "~/token"

[host]
max_running = 8
drain = "1500ms"
cache = 100

[acp]
on_disconnect = "suspend"
"#;

/// Returns a table whose columns do not depend on the length of this home's path.
fn squeezed(text: &str) -> String {
    let words = |line: &str| {
        line.split("  ")
            .map(str::trim)
            .filter(|word| !word.is_empty())
            .collect::<Vec<_>>()
            .join("  ")
    };
    text.lines().map(|line| words(line) + "\n").collect()
}

#[test]
fn without_anything_the_defaults_hold() {
    let home = Home::new();
    let told = home.told(&["config"]);
    assert_eq!(told.code, 0, "{told:?}");
    expect![[r#"
        store  ~/.local/share/adjourn/store.db  default
        tenant  local  default
        as  ann  default
        events.source  cli  default
        serve.listen  -  default
        serve.token  -  default
        serve.token_file  -  default
        serve.tokens_file  -  default
        serve.public_name  -  default
        serve.push  public  default
        host.max_running  64  default
        host.warm_for  5m  default
        host.max_warm  8  default
        host.drain  30s  default
        host.cancel_grace  2s  default
        host.cache  4096  default
        failures.retries  4  default
        failures.delay  1s  default
        failures.longest_delay  30s  default
        failures.longest_park  7d  default
        failures.retry_on  connection, overloaded, rate_limit, timeout, transient_provider, unavailable  default
        failures.ask_on  auth_required  default
        retention.ended  30d  default
        log.level  -  default
        log.format  text  default
        acp.profile  adjourn  default
        acp.status_words  auto  default
        acp.on_disconnect  continue  default
        a2a.profile  adjourn  default
        the file is ~/.config/adjourn/config.toml, which is not there
    "#]]
    .assert_eq(&squeezed(&home.plain(&(told.data.clone() + &told.talk))));
    let columns: Vec<_> = told.data.lines().map(|line| line.find("default").unwrap()).collect();
    assert!(columns.windows(2).all(|pair| pair[0] == pair[1]), "it is aligned: {}", told.data);
    assert!(!home.path(".local").exists(), "looking makes nothing");
}

#[test]
fn flags_override_variables_which_override_the_file() {
    let home = Home::new();
    std::fs::create_dir_all(home.path(".config/adjourn")).unwrap();
    home.file(".config/adjourn/config.toml", FILE);
    let mut command = home.command(&["config", "--json", "--store", "/flag.db"]);
    command.env("ADJOURN_TENANT", "other").env("ADJOURN_TOKEN", "secret").env("ADJOURN_DRAIN", "");
    let told = home.ended(command);
    assert_eq!(told.code, 0, "{told:?}");
    expect![[r#"
        {"key":"store","value":"/flag.db","source":"--store"}
        {"key":"tenant","value":"other","source":"ADJOURN_TENANT"}
        {"key":"as","value":"ann","source":"default"}
        {"key":"events.source","value":"cli","source":"default"}
        {"key":"serve.listen","value":"127.0.0.1:7070","source":"~/.config/adjourn/config.toml:6"}
        {"key":"serve.token","value":"(hidden)","source":"ADJOURN_TOKEN"}
        {"key":"serve.token_file","value":"~/token","source":"~/.config/adjourn/config.toml:7"}
        {"key":"serve.tokens_file","value":null,"source":"default"}
        {"key":"serve.public_name","value":null,"source":"default"}
        {"key":"serve.push","value":"public","source":"default"}
        {"key":"host.max_running","value":8,"source":"~/.config/adjourn/config.toml:10"}
        {"key":"host.warm_for","value":"5m","source":"default"}
        {"key":"host.max_warm","value":8,"source":"default"}
        {"key":"host.drain","value":"1s500ms","source":"~/.config/adjourn/config.toml:11"}
        {"key":"host.cancel_grace","value":"2s","source":"default"}
        {"key":"host.cache","value":100,"source":"~/.config/adjourn/config.toml:12"}
        {"key":"failures.retries","value":4,"source":"default"}
        {"key":"failures.delay","value":"1s","source":"default"}
        {"key":"failures.longest_delay","value":"30s","source":"default"}
        {"key":"failures.longest_park","value":"7d","source":"default"}
        {"key":"failures.retry_on","value":"connection, overloaded, rate_limit, timeout, transient_provider, unavailable","source":"default"}
        {"key":"failures.ask_on","value":"auth_required","source":"default"}
        {"key":"retention.ended","value":"30d","source":"default"}
        {"key":"log.level","value":null,"source":"default"}
        {"key":"log.format","value":"text","source":"default"}
        {"key":"acp.profile","value":"adjourn","source":"default"}
        {"key":"acp.status_words","value":"auto","source":"default"}
        {"key":"acp.on_disconnect","value":"suspend","source":"~/.config/adjourn/config.toml:15"}
        {"key":"a2a.profile","value":"adjourn","source":"default"}
    "#]]
    .assert_eq(&home.plain(&told.data));
    let store = &home.jsons(&["config"])[0];
    assert_eq!(home.plain(store["value"].as_str().unwrap()), "~/.config/adjourn/agents/store.db");
}

#[test]
fn a_number_may_be_written_in_any_way_that_the_file_allows() {
    let home = Home::new();
    for (written, value) in
        [("0x10", 16), ("0o20", 16), ("0b1_0000", 16), ("1_000", 1000), ("+7", 7)]
    {
        let path = home.file("c.toml", &format!("[host]\nmax_running = {written}"));
        let rows = home.jsons(&["config", "--config", &path]);
        let row = rows.iter().find(|row| row["key"] == "host.max_running").unwrap();
        assert_eq!(row["value"], value, "{written}");
    }
}

#[test]
fn what_hosts_do_about_failed_steps_can_be_set() {
    let home = Home::new();
    let file = "[failures]\nretries = 0\ndelay = \"90s\"\nretry_on = \"\"\nask_on = \"quota,auth\"";
    let path = home.file("c.toml", file);
    let rows = home.jsons(&["config", "--config", &path]);
    let value = |key: &str| rows.iter().find(|row| row["key"] == key).unwrap()["value"].clone();
    assert_eq!(value("failures.retries"), 0);
    assert_eq!(value("failures.delay"), "1m30s");
    assert_eq!(value("failures.retry_on"), "");
    assert_eq!(value("failures.ask_on"), "auth, quota");
    for (wrong, problem) in [
        ("retries = -1", "failures.retries: expected a whole number from 0 on"),
        ("ask_on = \"a b\"", "failures.ask_on: expected kinds of failures"),
    ] {
        let path = home.file("c.toml", &format!("[failures]\n{wrong}"));
        let told = home.told(&["config", "--config", &path]);
        assert_eq!(told.code, 2, "{told:?}");
        assert!(told.talk.contains(problem), "{told:?}");
    }
}

#[test]
fn this_machine_may_be_called_by_its_name() {
    let home = Home::new();
    let (serving, said) = home.serve_with(&["--listen", "localhost:0", "--insecure-open"]);
    assert!(said.starts_with("listening on http://127.0.0.1:"), "{said}");
    assert_eq!(serving.terminate(), 0);
    let mut command = home.command(&["config", "--json"]);
    command.env("ADJOURN_LISTEN", "localhost:7070");
    assert!(home.ended(command).data.contains(r#""value":"127.0.0.1:7070""#));
}

#[test]
fn a_mistake_names_file_line_and_key() {
    let home = Home::new();
    let mistakes = [
        "store = 5",
        "stroe = \"x\"",
        "[host]\nmax_running = \"many\"",
        "[host]\n\nmax_running = 0",
        "[host]\nmax_running = 1.5",
        "host.drain = 30",
        "host.drain = \"soon\"",
        "host = 3",
        "[serve]\nlisten = \"everywhere\"",
        "[serve]\ntoken = \"secret\"",
        "[[serve]]",
        "[nowhere]\nx = 1",
        "[acp]\nprofile = \"odd\"",
        "[acp]\non_disconnect = true",
        "tenant = \"\"",
        "store = ",
        "a = 1\na = 2",
    ];
    let mut said = String::new();
    for mistake in mistakes {
        home.file("c.toml", mistake);
        let told = home.told(&["ls", "--config", home.path("c.toml").to_str().unwrap()]);
        assert_eq!((told.code, told.data.as_str()), (2, ""), "{mistake}: {told:?}");
        said += &home.plain(&told.talk);
    }
    expect![[r#"
        error: ~/c.toml:1: store: expected a string, found an integer
        error: ~/c.toml:1: there is no setting "stroe"
        hint: `adjourn config --defaults` lists them
        error: ~/c.toml:2: host.max_running: expected a whole number, found a string
        error: ~/c.toml:3: host.max_running: expected a whole number from 1 on
        error: ~/c.toml:2: host.max_running: expected a whole number, found a float
        error: ~/c.toml:1: host.drain: expected a string, found an integer
        error: ~/c.toml:1: host.drain: expected a duration like 500ms, 90s, 30m, 1h30m or 2d
        error: ~/c.toml:1: host: expected a section, found an integer
        error: ~/c.toml:2: serve.listen: expected an address and a port: 127.0.0.1:7070 or localhost:7070
        error: ~/c.toml:2: serve.token: a token does not belong in this file
        hint: put it into a file of its own and name that: token_file = "token"; or set ADJOURN_TOKEN
        error: ~/c.toml:1: serve: expected a section, found an array
        error: ~/c.toml:1: there is no setting "nowhere"
        hint: `adjourn config --defaults` lists them
        error: ~/c.toml:2: acp.profile: expected one of adjourn, rfc
        error: ~/c.toml:2: acp.on_disconnect: expected a string, found a boolean
        error: ~/c.toml:1: tenant: expected a text that is not blank
        error: ~/c.toml:1: "store =" cannot be read
        hint: expected a section, as [host], or a setting: max_running = 16 or drain = "30s", each once
        error: ~/c.toml:2: "a = 2" cannot be read
        hint: expected a section, as [host], or a setting: max_running = 16 or drain = "30s", each once
    "#]].assert_eq(&said);
    assert!(!home.path(".local").exists(), "nothing was opened");

    let told = home.told(&["ls", "--config", "nowhere.toml"]);
    assert_eq!(told.code, 2);
    assert!(told.talk.starts_with("error: cannot read nowhere.toml"), "{}", told.talk);
    let mut command = home.command(&["ls"]);
    command.env("ADJOURN_MAX_RUNNING", "some");
    let told = home.ended(command);
    assert_eq!(told.code, 2);
    let expected = "error: ADJOURN_MAX_RUNNING: expected a whole number from 1 on\n";
    assert_eq!(told.talk, expected);
}

#[test]
fn the_default_file_is_complete_and_says_what_holds_anyway() {
    let home = Home::new();
    let file = home.told(&["config", "--defaults"]).data;
    // Every setting is a comment, and what it says when it is none is what holds without it.
    let live: String = file
        .lines()
        .map(|line| line.strip_prefix("# ").filter(|line| line.contains(" = ")).unwrap_or(line))
        .flat_map(|line| [line, "\n"])
        .collect();
    home.file("c.toml", &file);
    let path = home.path("c.toml");
    let with = |text: &str| {
        std::fs::write(&path, text).unwrap();
        home.jsons(&["config", "--config", path.to_str().unwrap()])
    };
    for row in with(&file) {
        assert_eq!(row["source"], "default", "{row}");
    }
    let (defaults, live) = (with(&file), with(&live));
    for (default, live) in defaults.iter().zip(&live) {
        let key = default["key"].as_str().unwrap();
        assert!(key == "serve.token" || live["source"] != "default", "{key} is not in the file");
        if !default["value"].is_null() {
            assert_eq!(default["value"], live["value"], "{key}");
        }
    }
}

#[test]
fn a_token_is_read_from_its_file_and_one_that_others_can_read_is_named() {
    let home = Home::new();
    home.file("token", "\n");
    let token = home.path("token");
    let arguments = ["serve", "--listen", "127.0.0.1:0", "--token-file", token.to_str().unwrap()];
    let told = home.told(&arguments);
    assert_eq!(told.code, 2, "{told:?}");
    assert!(told.talk.contains("token: holds no token\nhint: --token-file"), "{}", told.talk);
    home.file("token", "only for this test\n");
    std::fs::set_permissions(&token, PermissionsExt::from_mode(0o644)).unwrap();
    let (serving, said) = home.serve_with(&arguments[1..]);
    assert!(said.contains("token can be read by others: chmod 600 "), "{said}");
    assert_eq!(serving.terminate(), 0);
}

#[test]
fn a_flag_that_is_empty_is_refused() {
    let home = Home::new();
    for arguments in [
        &["serve", "--listen", "0.0.0.0:0", "--token", ""][..],
        &["serve", "--token", " "],
        &["event", "a", "--source", ""],
        &["event", "a", "--tenant", ""],
    ] {
        let told = home.told(arguments);
        assert_eq!((told.code, told.data.as_str()), (2, ""), "{told:?}");
        assert!(told.talk.contains("expected a text that is not blank"), "{}", told.talk);
    }
}
