//! Which tools there are, and which of them a person has to allow.

use std::sync::{Arc, Mutex};

use adjourn_agent::Effect;
use adjourn_agent::directory::DirectoryTool;
use adjourn_driver::{BoxFuture, CallContent, Client, PermissionAnswer, PermissionRequest};
use serde_json::json;

use super::Desk;
use crate::fixture::{agent, events, model};

#[test]
fn looking_is_free_and_each_change_needs_a_permission_by_its_kind() {
    let desk = Desk::new();
    let free = desk.tools.clone().allow_all();
    for which in DirectoryTool::ALL {
        let (kind, looks) = match which {
            DirectoryTool::Read | DirectoryTool::List => ("read", true),
            DirectoryTool::Search => ("search", true),
            DirectoryTool::Write | DirectoryTool::Edit => ("edit", false),
            DirectoryTool::Run => ("execute", false),
        };
        let tool = desk.tool(which);
        let spec = tool.spec();
        let effect = if looks { Effect::Idempotent } else { Effect::SideEffecting };
        let told = (spec.kind.as_deref(), spec.permission, spec.effect);
        assert_eq!(told, (Some(kind), !looks, effect), "{which}");
        assert!(!free.tools([which])[0].spec().permission);
        assert_eq!(which.as_str().parse(), Ok(which));
    }
    assert_eq!(
        "delete".parse::<DirectoryTool>().unwrap_err().to_string(),
        "\"delete\" is none of read, write, edit, list, search and run"
    );
}

/// A client that allows for good what it is asked for, and remembers what that was.
#[derive(Default)]
struct Always(Mutex<Vec<CallContent>>);

impl Client for Always {
    fn permission(&self, request: PermissionRequest) -> BoxFuture<'static, PermissionAnswer> {
        self.0.lock().unwrap().push(request.call);
        Box::pin(std::future::ready(PermissionAnswer::Granted { always: true }))
    }
}

#[tokio::test(start_paused = true)]
async fn a_person_sees_what_a_call_does_and_may_allow_it_for_good() {
    let desk = Desk::new();
    let write =
        |path: &str| json!({ "tool": "write_file", "arguments": { "path": path, "content": "x" } });
    let read = json!({ "tool": "read_file", "arguments": { "path": "a", "line": 1 } });
    let model = model(json!([
        { "calls": [write("a")] }, { "calls": [write("b"), read] }, { "text": "Done." },
    ]));
    let client = Arc::new(Always::default());
    let agent = agent(&model).tools(desk.tools.tools(DirectoryTool::ALL));
    let agent = agent.client(client.clone()).build().unwrap();
    events(agent.run("Write.")).await;
    assert_eq!((desk.text("a"), desk.text("b")), ("x".to_owned(), "x".to_owned()));
    let asked = client.0.lock().unwrap().clone();
    assert_eq!(asked.len(), 1, "it was allowed for good: {asked:?}");
    assert_eq!(asked[0].title.as_deref(), Some("Write a"));
    assert_eq!(asked[0].kind.as_deref(), Some("edit"));
    let path = desk.path().canonicalize().unwrap().join("a");
    assert_eq!(asked[0].locations, [json!({ "path": path })]);
}

#[test]
fn a_long_path_is_cut_in_the_title_and_not_where_editors_go() {
    let desk = Desk::new();
    let path = format!("{}/a.txt", vec!["directory"; 30].join("/"));
    let shown = desk.tool(DirectoryTool::Read).describe(&json!({ "path": path, "line": 7 }));
    assert!(shown.title.unwrap().len() < path.len());
    let whole = desk.path().canonicalize().unwrap().join(path);
    assert_eq!(shown.locations, [json!({ "path": whole, "line": 7 })]);
}
