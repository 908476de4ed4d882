//! What is made from the commands themselves: completions and manual pages.

use crate::home::Home;

/// Returns the names of all commands, as the help lists them.
fn commands(home: &Home) -> Vec<String> {
    let help = home.told(&["--help"]).data;
    let list = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let names = list.lines().map(|line| line.split_whitespace().next().unwrap().to_owned());
    names.filter(|name| name != "help").collect()
}

#[test]
fn every_shell_completes_every_command() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let told = home.told(&["completions", shell]);
        assert_eq!((told.code, told.talk.as_str()), (0, ""));
        for command in commands(&home) {
            assert!(told.data.contains(&command), "{shell} does not know {command}");
        }
    }
    assert_eq!(home.told(&["completions", "tcsh"]).code, 2);
}

#[test]
fn every_command_has_a_manual_page() {
    let home = Home::new();
    let directory = home.path("man/man1");
    assert_eq!(home.told(&["man", directory.to_str().unwrap()]).code, 0);
    let main = home.told(&["man"]).data;
    for command in commands(&home) {
        let page = std::fs::read_to_string(directory.join(format!("adjourn-{command}.1"))).unwrap();
        assert!(page.contains(".SH DESCRIPTION"), "{page}");
        assert!(main.contains(&format!("adjourn\\-{command}(1)")), "{command}: {main}");
    }
    assert!(main.contains("Exit codes"), "{main}");
    // What words mean that can be typed.
    let suspend = std::fs::read_to_string(directory.join("adjourn-suspend.1")).unwrap();
    let help = home.told(&["suspend", "--help"]).data;
    for meaning in ["After the step under way", "At once: the model", "After the run under way"] {
        assert!(suspend.contains(meaning) && help.contains(meaning), "{meaning}: {help}");
    }
}

/// What `serve` listens for, who may do what there, and how commands end.
#[test]
fn the_help_and_the_defaults_name_all_that_there_is() {
    let home = Home::new();
    let help = home.told(&["--help"]).data;
    let words = help.split_whitespace().collect::<Vec<_>>().join(" ");
    let (_, codes) = words.split_once("Exit codes:").unwrap();
    let codes: Vec<_> = codes.split(|c: char| !c.is_ascii_digit()).collect();
    for code in ["0", "1", "2", "3", "4", "5", "6", "7", "129", "130", "143"] {
        assert!(codes.contains(&code), "{code}: {help}");
    }
    let serve = home.told(&["serve", "--help"]).data;
    let words = serve.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("POST /v1/events") && words.contains("A2A at POST /a2a"), "{serve}");
    let defaults = home.told(&["config", "--defaults"]).data;
    let above = |key: &str| {
        let (before, _) = defaults.split_once(key).unwrap();
        before.rsplit("\n\n").next().unwrap().to_owned()
    };
    assert!(above("# listen = ").contains("A2A"), "{defaults}");
    for scope in ["read", "send", "pause", "resume", "agent", "event", "admin"] {
        assert!(above("# tokens_file = ").contains(scope), "{scope}: {defaults}");
    }
}

#[test]
fn a_broken_configuration_does_not_reach_a_shell_that_starts() {
    let home = Home::new();
    let broken = home.file("broken.toml", "nonsense");
    for arguments in [&["completions", "bash"] as &[_], &["man"], &["config", "--defaults"]] {
        let told = home.told(&[arguments, &["--config", &broken]].concat());
        assert_eq!(told.code, 0, "{told:?}");
    }
    assert_eq!(home.told(&["config", "--config", &broken]).code, 2);
}

#[test]
fn what_is_text_comes_in_an_object_for_programs() {
    let home = Home::new();
    let cases: [(&[&str], &str); 3] = [
        (&["completions", "bash"], "completions"),
        (&["man"], "page"),
        (&["config", "--defaults"], "defaults"),
    ];
    for (arguments, key) in cases {
        let objects = home.jsons(arguments);
        assert_eq!(objects.len(), 1);
        assert_eq!(objects[0][key], home.told(arguments).data.as_str(), "{arguments:?}");
    }
}
