//! Tools that take alternatives: what a model is told of them, and what comes of a wrong mixture.

use adjourn_agent::{Agent, FunctionTool, ToolError};
use adjourn_testkit::provider::openai::{calls, says};
use adjourn_testkit::provider::{Server, anthropic};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::anthropic::MODEL;
use super::model_at;
use crate::fixture::{Ran, events, keys, text};

/// What the tool `find` takes.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum Find {
    /// Finds one.
    ById { id: u32 },
    /// Finds all.
    ByName { name: String, exact: bool },
}

fn find(ran: &Ran) -> FunctionTool {
    let ran = ran.clone();
    FunctionTool::new("find", "Finds a person.", move |find: Find| {
        ran.push(&match find {
            Find::ById { id } => format!("number {id}"),
            Find::ByName { name, exact } => format!("{name}, {exact}"),
        });
        async { Ok::<_, ToolError>("found") }
    })
}

#[tokio::test]
async fn a_model_is_told_of_alternatives_and_of_what_mixes_them() {
    let mixed = calls("", "a", "find", &json!({ "name": "Ada" }));
    let right = calls("", "b", "find", &json!({ "name": "Ada", "exact": true }));
    let server = Server::start(vec![mixed, right, says("There she is.")]).await;
    let ran = Ran::default();
    let agent = Agent::builder_with(model_at("openai/gpt-5", &server)).keys(keys());
    let agent = agent.tool(find(&ran)).build().unwrap();
    assert_eq!(text(&events(agent.run("Find Ada.")).await), "There she is.");
    assert_eq!(ran.names(), ["Ada, true"]);
    let asked = server.asked();
    let tools = asked[0].body["tools"].as_array().unwrap();
    let told = tools.iter().find(|tool| tool["function"]["name"] == "find").unwrap();
    let schema = &told["function"]["parameters"];
    assert_eq!(schema["type"], "object");
    assert_eq!(schema.get("anyOf"), None);
    for name in ["id", "name", "exact"] {
        assert!(schema["properties"][name].is_object(), "{schema:#}");
    }
    let forms = "{id} (Finds one.); {name, exact} (Finds all.).";
    assert!(schema["description"].as_str().unwrap().ends_with(forms), "{schema:#}");
    // The whole schema refused the first call: it names no person by itself.
    let refused = asked[1].body["messages"].as_array().unwrap().last().unwrap();
    let why = refused["content"].as_str().unwrap();
    assert!(why.contains("the arguments of find are not right"), "{why}");
}

#[tokio::test]
async fn anthropic_is_told_the_same() {
    let server = Server::start(vec![anthropic::says(&["Hello."])]).await;
    let agent = Agent::builder_with(model_at(MODEL, &server)).keys(keys());
    let agent = agent.tool(find(&Ran::default())).build().unwrap();
    events(agent.run("Hello?")).await;
    let body = server.body();
    let tools = body["tools"].as_array().unwrap();
    let told = tools.iter().find(|tool| tool["name"] == "find").unwrap();
    assert_eq!(told["input_schema"]["type"], "object");
    assert_eq!(told["input_schema"].get("anyOf"), None);
    assert!(told["input_schema"]["properties"]["name"].is_object(), "{told:#}");
}
