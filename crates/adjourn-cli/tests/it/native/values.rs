//! Values of MCP servers: hosts have those of the files that name the servers, and give them to no
//! other server.

use adjourn_testkit::receiver::Receiver;
use serde_json::{Value, json};

use super::tools::{CALLS, SERVER, results};
use super::{model, only_session};
use crate::acp::editor::Editor;
use crate::home::{Home, Told};

/// Writes a file with a server of tools whose variable is written down in it, and returns its path.
fn words(home: &Home, word: &str) -> String {
    let server = home.file("server.sh", SERVER);
    let servers = json!({ "mcpServers": { "words": {
        "command": "sh", "args": [server], "env": { "WORD": word } } } });
    home.file("mcp.json", &servers.to_string())
}

#[test]
fn what_is_written_in_the_file_of_a_server_reaches_its_servers_in_every_task() {
    let home = Home::new();
    let (servers, model) = (words(&home, "seven!!"), model(&home, CALLS));
    let listen = ["--listen", "127.0.0.1:0", "--insecure-open"];
    let agent = ["--model", &model, "--mcp", &servers];
    let (serving, said) = home.serve_with(&[&listen[..], &agent].concat());
    let (_, address) = said.split_once("an A2A agent on http://").unwrap();
    let url = format!("http://{}", address.split_once("/a2a").unwrap().0);
    home.json(&["a2a", "send", &url, "go", "--detach"]);
    let id = only_session(&home);
    home.until(&id, "reason", "more");
    assert_eq!(results(&home, &id), ["the word has 7 letters"]);
    assert_eq!(serving.terminate(), 0);
    // Another process of the same command goes on with the task.
    let (serving, _) = home.serve_with(&[&listen[..], &agent].concat());
    assert_eq!(home.told(&["resume", &id, "--detach"]).code, 0);
    home.until(&id, "outcome", "completed");
    assert_eq!(results(&home, &id)[1], "the word has 7 letters");
    assert_eq!(serving.terminate(), 0);
}

#[test]
fn an_editor_that_starts_its_agent_again_goes_on_with_what_the_file_says() {
    for (version, method) in [(1, "session/load"), (2, "session/resume")] {
        let home = Home::new();
        let (servers, model) = (words(&home, "seven!!"), model(&home, CALLS));
        let arguments = ["--model", &model, "--mcp", &servers];
        let greeting = match version {
            1 => json!({ "protocolVersion": 1 }),
            _ => json!({ "protocolVersion": 2, "info": { "name": "ed", "version": "1" },
                         "capabilities": {} }),
        };
        let mut editor = Editor::of_agent(&home, &arguments, &greeting);
        let new = json!({ "cwd": home.path(""), "mcpServers": [] });
        let made = editor.call("session/new", new).unwrap();
        let session = made["sessionId"].as_str().unwrap().to_owned();
        editor.prompt(&session, "go");
        home.until(&session, "reason", "more");
        assert_eq!(editor.close(), 0);
        let mut editor = Editor::of_agent(&home, &arguments, &greeting);
        let load = json!({ "sessionId": session, "cwd": home.path(""), "mcpServers": [] });
        editor.call(method, load).unwrap();
        editor.prompt(&session, "go on");
        home.until(&session, "outcome", "completed");
        let expected = ["the word has 7 letters"; 2];
        assert_eq!(results(&home, &session), expected, "{}", editor.dialog());
        assert_eq!(editor.close(), 0);
    }
}

/// Describes a server that is given a header.
fn described(at: &Receiver, authorization: &str) -> String {
    let headers = json!({ "Authorization": authorization });
    json!({ "mcpServers": { "api": { "url": at.url("/mcp"), "headers": headers } } }).to_string()
}

/// Returns with which headers a server was asked; nothing if it was not.
fn asked(receiver: &Receiver) -> Vec<String> {
    let came = std::iter::from_fn(|| receiver.came());
    came.map(|request| request.header("authorization").unwrap_or("none").to_owned()).collect()
}

#[test]
fn what_is_written_down_for_a_server_is_not_sent_to_another_one_of_its_name() {
    let home = Home::new().with_variable("DEV_TOKEN", "dev");
    model(&home, r#"{"text": "Over."}"#);
    let (prod, dev, moved) = (Receiver::new(), Receiver::new(), Receiver::new());
    home.config("[agent.reviewer]\nmodel = \"scripted:../../answers.jsonl\"\nmcp = \"mcp.json\"\n");
    let settle = |at, token| home.file(".config/adjourn/mcp.json", &described(at, token));
    settle(&prod, "Bearer PROD-LITERAL");
    let done = |told: Told| assert_eq!(told.code, 0, "{told:?}");
    done(home.told(&["run", "go", "--agent", "reviewer"]));
    assert_eq!(asked(&prod)[..1], ["Bearer PROD-LITERAL"], "the server of the settings has it");
    // A command that names another server by the same name.
    let servers = home.file("dev.json", &described(&dev, "Bearer ${DEV_TOKEN}"));
    let run = ["run", "go", "--agent", "reviewer", "--mcp", &servers];
    done(home.told(&run));
    assert_eq!(asked(&dev)[..1], ["Bearer dev"]);
    // The same server, to which the command gives something else.
    let servers = home.file("dev.json", &described(&prod, "Bearer hers"));
    asked(&prod);
    done(home.told(&["run", "go", "--agent", "reviewer", "--mcp", &servers]));
    assert_eq!(asked(&prod)[..1], ["Bearer hers"]);
    // A session that was made before the settings named another address.
    done(home.told(&["new", "--agent", "reviewer", "--name", "before"]));
    settle(&moved, "Bearer NEW-LITERAL");
    let told = home.told(&["prompt", "before", "go"]);
    assert_eq!(told.code, 1, "{told:?}");
    let lacks = "it lacks values: ADJOURN_MCP_API_AUTHORIZATION of MCP server \"api\"; give the host \
                 variables with these names";
    assert!(told.talk.contains(lacks), "{told:?}");
    assert_eq!((asked(&prod), asked(&moved)), (vec![], vec![]));
    let own = "ADJOURN_MCP_API_AUTHORIZATION";
    let mut prompting = home.command(&["resume", "before"]);
    prompting.env(own, "Bearer mine");
    home.ended(prompting);
    let _: Value = home.until("before", "outcome", "completed");
    assert_eq!(asked(&prod)[..1], ["Bearer mine"]);
    assert_eq!(asked(&moved), Vec::<String>::new());
}
