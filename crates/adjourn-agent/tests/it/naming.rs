//! Models by their names.

use std::collections::BTreeMap;

use adjourn_agent::{ApiKey, Model, ModelOptions, NamedModelError, ScriptedModel, named_model};

fn refusal(name: &str, options: &ModelOptions) -> String {
    match named_model(name, options) {
        Err(error) => error.to_string(),
        Ok(model) => panic!("{} was made", model.id()),
    }
}

#[test]
fn a_scripted_model_is_named_by_its_file() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("script.json");
    std::fs::write(&file, r#"[{ "text": "Hello." }]"#).unwrap();
    let options = ModelOptions::default();
    let model = named_model(&format!("scripted:{}", file.display()), &options).unwrap();
    assert_eq!(model.id(), ScriptedModel::parse("[]").unwrap().id());
    let missing = refusal("scripted:/nowhere/script.json", &options);
    assert!(missing.contains("/nowhere/script.json"), "{missing}");
}

#[test]
fn what_names_no_model_is_refused_with_what_would() {
    for name in ["", "gpt-5", "openai/", "/gpt-5", "openai/ "] {
        let said = refusal(name, &ModelOptions::default());
        assert!(said.contains("openai/gpt-5") && said.contains("scripted:FILE"), "{said}");
    }
}

#[test]
fn options_show_no_secret() {
    let secret = "sk-0123456789";
    let variables = BTreeMap::from([("OPENAI_API_KEY".to_owned(), secret.to_owned())]);
    let options = ModelOptions {
        api_key: Some(ApiKey::new(secret)),
        variables: variables.into(),
        ..ModelOptions::default()
    };
    let shown = format!("{options:?}");
    assert!(!shown.contains(secret) && shown.contains("OPENAI_API_KEY"), "{shown}");
}

#[cfg(not(feature = "models"))]
#[test]
fn a_program_without_models_over_the_network_says_so() {
    let said = named_model("openai/gpt-5", &ModelOptions::default());
    assert!(matches!(said, Err(NamedModelError::NotBuilt { .. })));
}

#[cfg(feature = "models")]
mod network {
    use super::*;

    /// Options with variables that hide those of this machine.
    fn with(variables: &[(&str, &str)]) -> ModelOptions {
        let mut hidden = BTreeMap::new();
        for provider in ["OPENAI", "ANTHROPIC", "GROQ"] {
            for kind in ["API_KEY", "BASE_URL"] {
                hidden.insert(format!("{provider}_{kind}"), String::new());
            }
        }
        for (name, value) in variables {
            hidden.insert((*name).to_owned(), (*value).to_owned());
        }
        ModelOptions { variables: hidden.into(), ..ModelOptions::default() }
    }

    #[test]
    fn a_key_that_is_missing_is_found_when_the_model_is_made() {
        for (name, variable) in [
            ("openai/gpt-5", "OPENAI_API_KEY"),
            ("openai_resp/gpt-5", "OPENAI_API_KEY"),
            ("anthropic/claude-sonnet-4-6", "ANTHROPIC_API_KEY"),
            ("groq/llama", "GROQ_API_KEY"),
        ] {
            let said = refusal(name, &with(&[]));
            assert_eq!(
                said,
                format!("model {name} needs a key: set {variable} in the environment")
            );
            assert_eq!(named_model(name, &with(&[(variable, "sk-1 \n")])).unwrap().id(), name);
        }
        let options = ModelOptions { api_key_variable: Some("MINE".to_owned()), ..with(&[]) };
        assert!(refusal("openai/gpt-5", &options).contains("set MINE"));
        let options = ModelOptions { api_key: Some(ApiKey::new("sk-1")), ..with(&[]) };
        assert!(named_model("openai/gpt-5", &options).is_ok());
        // One that runs on this machine takes no key.
        assert!(named_model("ollama/llama", &with(&[])).is_ok());
    }

    #[test]
    fn a_provider_that_is_not_known_is_refused_with_those_there_are() {
        let said = refusal("oponai/gpt-5", &with(&[]));
        assert!(said.contains("oponai") && said.contains("openai, "), "{said}");
    }

    #[test]
    fn what_cannot_be_used_is_refused_without_telling_secrets() {
        let key = ModelOptions { api_key: Some(ApiKey::new("sk-1 2")), ..with(&[]) };
        assert!(matches!(named_model("openai/m", &key), Err(NamedModelError::Key { .. })));
        for url in [
            "localhost:8080",
            "ftp://host/",
            "nonsense",
            "https://u:hush@host/v1",
            "https://host/v1?key=hush",
        ] {
            let said =
                refusal("openai/m", &with(&[("OPENAI_API_KEY", "sk"), ("OPENAI_BASE_URL", url)]));
            assert!(said.starts_with("the base URL of model openai/m: "), "{said}");
            assert!(!said.contains("hush"), "{said}");
        }
        let effort = ModelOptions {
            reasoning_effort: Some("plenty".to_owned()),
            ..with(&[("OPENAI_API_KEY", "sk")])
        };
        assert!(refusal("openai/m", &effort).contains("plenty"));
        // It is told before a key is missed, which may be on another machine.
        let keyless = ModelOptions { reasoning_effort: Some("plenty".to_owned()), ..with(&[]) };
        assert!(refusal("openai/m", &keyless).contains("plenty"));
    }

    #[test]
    fn a_model_shows_no_secret() {
        let options = with(&[("OPENAI_API_KEY", "sk-0123456789")]);
        let model = adjourn_agent::NetworkModel::new("openai", "gpt-5", &options).unwrap();
        let shown = format!("{model:?}");
        assert!(!shown.contains("0123456789") && shown.contains("openai/gpt-5"), "{shown}");
    }
}
