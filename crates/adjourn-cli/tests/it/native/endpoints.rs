//! Where the models of agents are, and what they are asked with, as the settings say.

use serde_json::{Value, json};

use super::network::{ANTHROPIC, KEY, OPENAI, Provider};
use super::texts;
use crate::home::Home;

/// Settings with two agents whose models have the same name, at two servers.
fn settings(left: &Provider, right: &Provider) -> String {
    format!(
        r#"
[agent.left]
model = "openai/qwen3"
base_url = "{}"
api_key_variable = "LEFT_KEY"
reasoning_effort = "low"
max_output_tokens = 500

[agent.right]
model = "openai/qwen3"
base_url = "{}"
api_key_variable = "RIGHT_KEY"
"#,
        left.url(),
        right.url()
    )
}

#[test]
fn two_servers_that_speak_alike_work_side_by_side() {
    let left = Provider::start(vec![(OPENAI.says)("Left.")]);
    let right = Provider::start(vec![(OPENAI.says)("Right.")]);
    let home = Home::new().with_variable("LEFT_KEY", KEY).with_variable("RIGHT_KEY", "sk-right");
    home.config(&settings(&left, &right));
    for (agent, answer) in [("left", "Left.\n"), ("right", "Right.\n")] {
        let told = home.told(&["run", "hello?", "--agent", agent, "--name", agent, "--keep"]);
        assert_eq!((told.code, told.data.as_str()), (0, answer), "{told:?}");
    }
    let (on_left, on_right) = (left.asked(), right.asked());
    assert!(on_left[0].head.contains(&format!("bearer {KEY}")), "{}", on_left[0].head);
    assert!(on_right[0].head.contains("bearer sk-right"), "{}", on_right[0].head);
    assert_eq!(on_left[0].body["reasoning_effort"], "low", "{}", on_left[0].body);
    assert_eq!(on_right[0].body.get("reasoning_effort"), None, "{}", on_right[0].body);
    let most = |body: &Value| {
        let named = ["max_tokens", "max_completion_tokens"].map(|name| body[name].as_u64());
        named.into_iter().flatten().next()
    };
    assert_eq!(most(&on_left[0].body), Some(500), "{}", on_left[0].body);
    assert_eq!(most(&on_right[0].body), None, "{}", on_right[0].body);

    // A session keeps where its model is, whatever the settings say later; the key stays the host's.
    home.config("");
    let serving = home.serve();
    assert_eq!(home.told(&["prompt", "left", "again", "--detach"]).code, 0);
    home.until_shown("left", |shown| shown["state"] == "idle" && shown["runs"] == 2);
    assert_eq!(texts(&home, "left"), ["hello?", "Left.", "again", "Left."]);
    assert_eq!(left.asked().len(), 2);
    assert_eq!(serving.terminate(), 0);
    let journal = home.told(&["log", "left", "--json"]).data;
    assert!(journal.contains("LEFT_KEY") && !journal.contains(KEY), "{journal}");
}

#[test]
fn a_host_without_the_variable_says_which_it_is() {
    let provider = Provider::start(vec![(OPENAI.says)("Left.")]);
    let home = Home::new();
    home.config(&settings(&provider, &provider));
    let told = home.told(&["run", "hello?", "--agent", "left"]);
    assert_eq!(told.code, 2, "{told:?}");
    assert!(told.talk.contains("set LEFT_KEY in the environment"), "{told:?}");
}

/// Another model is somewhere else, and must not be given the key.
#[test]
fn another_model_than_the_agents_own_is_reached_as_usual() {
    let own = Provider::start(vec![(OPENAI.says)("Own.")]);
    let other = Provider::start(vec![(ANTHROPIC.says)("Other.")]);
    let home = Home::new()
        .with_variable("LEFT_KEY", KEY)
        .with_variable("ANTHROPIC_API_KEY", "sk-other")
        .with_variable("ANTHROPIC_BASE_URL", other.url());
    home.config(&settings(&own, &own));
    let arguments = ["run", "hello?", "--agent", "left", "--model", ANTHROPIC.model];
    let told = home.told(&arguments);
    assert_eq!((told.code, told.data.as_str()), (0, "Other.\n"), "{told:?}");
    assert!(own.asked().is_empty());
    assert!(other.asked()[0].head.contains("x-api-key: sk-other"));
}

#[test]
fn what_holds_is_shown_and_what_is_wrong_is_told_with_its_line() {
    let provider = Provider::start(vec![(OPENAI.says)("Left.")]);
    let home = Home::new();
    home.config(&settings(&provider, &provider));
    let rows = home.jsons(&["config"]);
    for (key, value) in [
        ("base_url", json!(provider.url())),
        ("api_key_variable", json!("LEFT_KEY")),
        ("reasoning_effort", json!("low")),
        ("max_output_tokens", json!(500)),
    ] {
        let is_it = |row: &&Value| row["key"] == format!("agent.left.{key}");
        assert_eq!(rows.iter().find(is_it).unwrap()["value"], value, "{key}");
    }
    for (setting, problem) in [
        ("base_url = \"localhost\"", "base_url: the base URL of model openai/m: "),
        ("base_url = \"https://ann:hush-1@host/v1\"", "without a user and a password"),
        ("base_url = \"https://host/v1?key=hush-1\"", "ends with its path"),
        ("base_url = 5", "base_url: expected a string, found an integer"),
        ("api_key_variable = \"sk-hush-1\"", "api_key_variable: expected the name of a variable"),
        (
            "api_key_variable = \"CORP_LLM\"",
            "api_key_variable: expected a name that says that it is",
        ),
        ("reasoning_effort = \"plenty\"", "reasoning_effort: model openai/m: reasoning effort"),
        ("max_output_tokens = 0", "max_output_tokens: expected a number of tokens"),
        ("max_output_tokens = \"5\"", "max_output_tokens: expected a number of tokens, found"),
    ] {
        home.config(&format!("[agent.a]\nmodel = \"openai/m\"\n{setting}\n"));
        let told = home.told(&["ls"]);
        assert_eq!(told.code, 2, "{told:?}");
        assert!(told.talk.contains("config.toml:3: agent.a."), "{told:?}");
        assert!(told.talk.contains(problem), "{setting}: {told:?}");
        assert!(!told.talk.contains("hush-1"), "{told:?}");
    }
    home.config("[agent.a]\nmodel = \"scripted:a.jsonl\"\nbase_url = \"http://host/v1\"\n");
    let told = home.told(&["ls"]);
    assert!(told.talk.contains("go with no scripted model"), "{told:?}");
}
