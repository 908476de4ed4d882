//! What is read of servers, what is stored of them, and what is missing.

use std::collections::BTreeMap;

use adjourn_agent::mcp::{McpServers, McpTransport, McpValue};
use adjourn_driver::{Environment, McpValues};
use serde_json::{Value, json};

/// Two servers, as files and as clients have them.
fn spellings() -> [Value; 2] {
    let customary = json!({ "mcpServers": {
        "files": { "command": "/bin/files", "args": ["--all"], "env": { "FILES_KEY": "hush-1" } },
        "web": { "url": "https://web/mcp", "headers": { "Authorization": "Bearer hush-2" } },
        "off": { "command": "off", "disabled": true },
    } });
    let acp = json!([
        { "name": "files", "command": "/bin/files", "args": ["--all"],
          "env": [{ "name": "FILES_KEY", "value": "hush-1" }] },
        { "type": "http", "name": "web", "url": "https://web/mcp",
          "headers": [{ "name": "Authorization", "value": "Bearer hush-2" }] },
    ]);
    [customary, acp]
}

fn values() -> BTreeMap<String, McpValues> {
    let one = |name: &str, value: &str| BTreeMap::from([(name.to_owned(), value.to_owned())]);
    let files = McpValues { variables: one("FILES_KEY", "hush-1"), ..McpValues::default() };
    let web = McpValues { headers: one("Authorization", "Bearer hush-2"), ..McpValues::default() };
    [("files".to_owned(), files), ("web".to_owned(), web)].into()
}

#[test]
fn both_spellings_are_read_and_values_are_neither_shown_nor_described() {
    for spelling in spellings() {
        let servers = McpServers::read(&spelling).unwrap();
        assert_eq!(servers.names().collect::<Vec<_>>(), ["files", "web"]);
        assert_eq!(servers.values(), values());
        assert_eq!(servers.lacks(&Environment::default()), None);
        let described = json!(servers.descriptions());
        let shown = format!("{servers:?} {described}");
        assert!(shown.contains("FILES_KEY") && shown.contains("Authorization"), "{shown}");
        assert!(!shown.contains("hush"), "{shown}");
        // Another host makes the same servers of it, and lacks the values.
        let again = McpServers::read(&described).unwrap();
        assert_eq!(again.descriptions(), servers.descriptions());
        let lacks = again.lacks(&Environment::default()).unwrap();
        assert_eq!(
            lacks,
            "it lacks values: FILES_KEY of MCP server \"files\"; \
             ADJOURN_MCP_WEB_AUTHORIZATION of MCP server \"web\"",
        );
        let given = Environment { mcp_servers: values(), ..Environment::default() };
        assert_eq!(again.lacks(&given), None);
    }
}

#[test]
fn a_value_that_names_a_variable_is_described_and_taken_from_the_environment() {
    let servers = json!({ "mcpServers": { "web": {
        "url": "${WEB}/mcp",
        "headers": { "Authorization": "Bearer ${WEB_TOKEN}", "User": "me:${WEB_TOKEN}" },
    } } });
    let servers = McpServers::read(&servers).unwrap();
    let described = json!(servers.descriptions());
    assert_eq!(
        described[0]["headers"],
        json!({ "Authorization": "Bearer ${WEB_TOKEN}", "User": null })
    );
    let again = McpServers::read(&described).unwrap();
    let lacks = again.lacks(&Environment::default()).unwrap();
    assert_eq!(
        lacks,
        "it lacks values: ADJOURN_MCP_WEB_USER, WEB, WEB_TOKEN of MCP server \"web\""
    );
    let variables = ["WEB", "WEB_TOKEN", "ADJOURN_MCP_WEB_USER"];
    let variables = variables.map(|name| (name.to_owned(), "x".to_owned())).into();
    let own = Environment { variables, ..Environment::default() };
    assert_eq!(again.lacks(&own), None);
}

#[test]
fn the_secrets_of_an_address_are_kept_as_those_of_headers_are() {
    let customary = json!({ "mcpServers": { "web": {
        "url": "https://web/mcp?key=hush-1&token=${WEB_TOKEN}&project=web&flag", "headers": {},
    } } });
    let acp = json!([{ "type": "http", "name": "web", "headers": [],
                       "url": "https://web/mcp?key=hush-1&token=${WEB_TOKEN}&project=web&flag" }]);
    for (spelling, described, values) in [
        (
            customary,
            "https://web/mcp?key=…&token=${WEB_TOKEN}&project=web&flag",
            json!({ "web": { "?key": "hush-1" } }),
        ),
        (
            acp,
            "https://web/mcp?key=…&token=…&project=web&flag",
            json!({ "web": { "?key": "hush-1", "?token": "${WEB_TOKEN}" } }),
        ),
    ] {
        let servers = McpServers::read(&spelling).unwrap();
        assert!(!format!("{servers:?}").contains("hush"), "{servers:?}");
        let given = servers.values();
        let headers = given.iter().map(|(name, values)| (name.clone(), json!(values.headers)));
        assert_eq!(Value::Object(headers.collect()), values);
        let stored = json!(servers.descriptions());
        assert_eq!(stored[0]["url"], described);
        assert!(!stored.to_string().contains("hush") && !stored.to_string().contains("?key\""));
        // Another host makes the same server of it, and lacks the values.
        let again = McpServers::read(&stored).unwrap();
        assert_eq!(json!(again.descriptions()), stored);
        assert_eq!(servers.also_in(&again).values(), given);
        let lacks = again.lacks(&Environment::default()).unwrap();
        assert!(lacks.contains("ADJOURN_MCP_WEB_KEY") && lacks.contains("WEB_TOKEN"), "{lacks}");
        let variables = ["WEB_TOKEN", "ADJOURN_MCP_WEB_TOKEN", "ADJOURN_MCP_WEB_KEY"];
        let variables = variables.map(|name| (name.to_owned(), "x".to_owned())).into();
        assert_eq!(again.lacks(&Environment { variables, ..Environment::default() }), None);
        let mut environment = Environment { mcp_servers: given, ..Environment::default() };
        environment.variables.insert("WEB_TOKEN".to_owned(), "me".to_owned());
        assert_eq!(again.lacks(&environment), None);
    }
}

#[test]
fn what_an_acp_client_writes_is_taken_as_it_is() {
    let servers = json!([{ "name": "a", "command": "/a", "args": ["${HOME}"], "env": [] }]);
    let servers = McpServers::read(&servers).unwrap();
    let again = McpServers::read(&json!(servers.descriptions())).unwrap();
    assert_eq!(again.lacks(&Environment::default()), None);
    let Some(McpTransport::Stdio { args, env, .. }) = again.iter().map(|s| &s.transport).next()
    else {
        panic!("{again:?}")
    };
    assert_eq!((args.as_slice(), env.len()), (["${HOME}".to_owned()].as_slice(), 0));
    assert_eq!(format!("{:?}", McpValue::Text("hush".to_owned())), "…");
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    for (servers, problem) in [
        (json!({}), "mcpServers: it is missing"),
        (json!({ "mcpServers": 7 }), "mcpServers: expected servers by name, or a list of them"),
        (json!([{ "command": "a" }]), "mcpServers[0].name: expected a text"),
        (json!({ "mcpServers": { "a": {} } }), "mcpServers.a: expected a command, or an url"),
        (
            json!({ "mcpServers": { "a": { "command": "a", "args": "b" } } }),
            "mcpServers.a.args: expected a list of texts",
        ),
        (
            json!({ "mcpServers": { "a": { "command": "a", "env": { "B": ["hush"] } } } }),
            "mcpServers.a.env.B: expected a text",
        ),
        (
            json!([{ "type": "http", "name": "a", "url": "http://me:hush@b", "headers": [] }]),
            "mcpServers[0].url: a user or a password in it would be stored; use a header",
        ),
        (
            json!({ "mcpServers": { "a": { "url": "ftp://b" } } }),
            "mcpServers.a.url: expected an address of HTTP",
        ),
        (
            json!([{ "type": "sse", "name": "a", "url": "http://b", "headers": [] }]),
            "mcpServers[0].type: servers with HTTP and SSE are not spoken with; streamable HTTP is",
        ),
        (
            json!([{ "name": "a", "command": "b" }, { "name": "a", "command": "c" }]),
            "mcpServers[1]: another server is called \"a\"",
        ),
    ] {
        assert_eq!(McpServers::read(&servers).unwrap_err().to_string(), problem);
    }
}

#[test]
fn a_file_that_is_none_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("mcp.json");
    let missing = McpServers::load(&path).unwrap_err().to_string();
    assert!(missing.starts_with("cannot read ") && missing.ends_with("mcp.json"), "{missing}");
    std::fs::write(&path, "{").unwrap();
    assert!(McpServers::load(&path).unwrap_err().to_string().contains("mcp.json: "));
    std::fs::write(&path, spellings()[0].to_string()).unwrap();
    assert_eq!(McpServers::load(&path).unwrap(), McpServers::read(&spellings()[0]).unwrap());
}

/// What one file has for a server is no business of another server that has only its name.
#[test]
fn a_server_has_values_for_the_same_server_alone() {
    let read = |servers: Value| McpServers::read(&json!({ "mcpServers": servers })).unwrap();
    let files = |command: &str, args: &[&str], cwd: &str| {
        json!({ "command": command, "args": args, "cwd": cwd,
                "env": { "FILES_KEY": "hush-1", "OTHER": "hush-3" } })
    };
    let web = |url: &str| json!({ "url": url, "headers": { "Authorization": "Bearer hush-2" } });
    let known =
        read(json!({ "files": files("files", &["-a"], "d"), "web": web("https://web/mcp") }));
    let same = json!({ "files": { "command": "files", "args": ["-a"], "cwd": "d",
                                  "env": { "FILES_KEY": null } },
                       "web": { "url": "https://web/mcp",
                                "headers": { "Authorization": "Bearer ${WEB}" } } });
    assert_eq!(known.also_in(&read(same)).values(), values(), "and no variable that is not named");
    for others in [
        json!({ "files": files("other", &["-a"], "d"), "web": web("https://web/mcp2") }),
        json!({ "files": files("files", &["-b"], "d"), "web": web("http://web/mcp") }),
        json!({ "files": files("files", &["-a"], "e"), "web": files("files", &["-a"], "d") }),
        json!({ "web": files("files", &["-a"], "d"), "files": web("https://web/mcp") }),
        json!({ "file": files("files", &["-a"], "d"), "Web": web("https://web/mcp") }),
    ] {
        let both = known.also_in(&read(others.clone()));
        assert!(both.is_empty(), "{others}: {both:?}");
    }
}
