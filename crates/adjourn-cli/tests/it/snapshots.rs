//! Every command as it is typed and as it answers, for people and for programs.

use expect_test::expect;

use crate::home::Home;
use crate::transcript::Transcript;

const SCRIPT: &str = r#"{"runs": [[
  {"say": "building"},
  {"tool": {"name": "build", "ms": 10}},
  {"await": {"reason": "waiting on ci", "summary": "paused on CI",
             "conditions": {"onEvent": "ci.passed:main", "timeout": {"durationMinutes": 43230}}}},
  {"ask": {"question": "which table?", "context": "two match", "choices": ["raw", "monthly"]}},
  {"say": "done"}
]]}"#;

/// The whole life of a session, one command after the other.
fn life(home: &Home, json: &[&str]) -> String {
    let script = home.file("ci.json", SCRIPT);
    let mut transcript = Transcript::new(home);
    let mut typed = |arguments: &[&str]| transcript.type_in(&[arguments, json].concat());
    typed(&["ls"]);
    typed(&["run", "--script", &script, "--detach"]);
    let id = home.json(&["ls"])["sessionId"].as_str().unwrap().to_owned();
    typed(&["ls"]);
    typed(&["show", &id]);
    typed(&["suspend", &id, "--reason", "review", "--timeout", "43230m"]);
    typed(&["ls"]);
    typed(&["resume", &id, "--detach"]);
    typed(&["event", "ci.passed:other", "--id", "e0"]);
    typed(&["event", "ci.passed:main", "--id", "e1", "--data", "{\"build\": 7}"]);
    typed(&["event", "ci.passed:main", "--id", "e1"]);
    // Nobody was there; whoever comes next finds the event.
    let serving = home.serve();
    home.until(&id, "wait", "question");
    assert_eq!(serving.terminate(), 0);
    typed(&["show", &id]);
    typed(&["prompt", &id, "monthly", "--detach"]);
    typed(&["ls"]);
    typed(&["cancel", &id, "--reason", "not needed"]);
    typed(&["prompt", &id, "once more"]);
    typed(&["suspend", &id]);
    typed(&["resume", &id]);
    typed(&["close", &id]);
    typed(&["ls"]);
    typed(&["prune"]);
    typed(&["backup", home.path("copy.db").to_str().unwrap()]);
    if json.is_empty() {
        typed(&["log", &id]);
    }
    transcript.text()
}

#[test]
fn the_life_of_a_session_for_people() {
    expect![[r#"
        $ adjourn ls
        2> error: there is no store ~/.local/share/adjourn/store.db
        2> hint: `adjourn run`, `new`, `event`, `serve`, `acp`, `import` and `restore` make one; `adjourn demo` needs none
        ? 5
        $ adjourn run --script ~/ci.json --detach
        building
        2> [sess:0]
        2> → build
        2> · build done
        2> [suspended for 0s: waiting on ci; wakes on ci.passed:main or in 30d]
        2> [it stays parked; no host is left to wake it: start `adjourn serve`]
        $ adjourn ls
        sess:0  suspended  0s       waiting on ci  on ci.passed:main or in 30d
        2> nobody is there to wake what waits; start `adjourn serve`
        $ adjourn show sess:0
        sess:0  suspended for 0s: waiting on ci; wakes on ci.passed:main or in 30d
          prompt               go
          last words           building
          runs                 1
          run                  run:0
          handle               suspend:0
          paused by            the agent
          reason               waiting on ci
          paused at            TIME
          wakes                on ci.passed:main or in 30d
          deadline             TIME
          summary              paused on CI
          agent                script
          notice               nobody is there to wake it; start `adjourn serve`
        $ adjourn suspend sess:0 --reason review --timeout 43230m
        sess:0  suspended for 0s: review, by cli:ann; wakes in 30d
        $ adjourn ls
        sess:0  suspended  0s       review, by cli:ann  in 30d
        2> nobody is there to wake what waits; start `adjourn serve`
        $ adjourn resume sess:0 --detach
        sess:0  suspended for 0s: waiting on ci; wakes on ci.passed:main or in 30d
        $ adjourn event ci.passed:other --id e0
        event 1: nobody waits for it
        $ adjourn event ci.passed:main --id e1 --data '{"build": 7}'
        event 2: 1 session waits for it
        2> it is delivered when a host runs: `adjourn serve`
        $ adjourn event ci.passed:main --id e1
        event 2: known already; 1 session waits for it
        2> it is delivered when a host runs: `adjourn serve`
        $ adjourn show sess:0
        sess:0  asking for 0s: which table? (two match) [raw | monthly]; wakes on an answer; answer it with `adjourn prompt sess:0 ANSWER`
          prompt               go
          last words           building
          runs                 1
          run                  run:0
          handle               suspend:1
          paused by            the agent
          paused at            TIME
          wakes                on an answer
          question             which table?
          context              two match
          choices              raw | monthly
          woken by             an event or a time that it waited for, without a value
          woken at             TIME
          its turn sees        the whole transcript
          agent                script
        $ adjourn prompt sess:0 monthly --detach
        sess:0  ready for 0s: waits for a host: none is running; start `adjourn serve`
        2> nothing runs it yet; start `adjourn serve`
        $ adjourn ls
        sess:0  ready      0s       waits for a host: none is running; start `adjourn serve`
        $ adjourn cancel sess:0 --reason 'not needed'
        sess:0  idle for 0s: last run canceled
        $ adjourn prompt sess:0 'once more'
        sess:0  idle for 0s: last run completed
        $ adjourn suspend sess:0
        sess:0  suspended for 0s: by cli:ann; wakes on a resume
        $ adjourn resume sess:0
        sess:0  idle for 0s: last run completed
        $ adjourn close sess:0
        sess:0  ended for 0s: last run completed
        $ adjourn ls
        2> nothing is open; 1 ended, `adjourn ls --all` has them
        $ adjourn prune
        dropped 0 events and 0 answers
        $ adjourn backup ~/copy.db
        ~/copy.db
        $ adjourn log sess:0
        TIME  session_created    cli:ann
        TIME  run_started        cli:ann    go
        TIME  claimed            host       host:0
        TIME  step_started       host
        TIME  step_finished      agent      building
        TIME  step_started       agent
        TIME  calls_asked        agent      build
        TIME  calls_dispatched   agent      build
        TIME  calls_returned     agent      build
        TIME  step_finished      agent
        TIME  step_started       agent
        TIME  step_finished      agent
        TIME  park_requested     agent
        TIME  suspended          agent      suspend:0 waiting on ci
        TIME  hold_laid          cli:ann    suspend:2 review
        TIME  hold_lifted        cli:ann    suspend:2 explicit_resume
        TIME  resumed            host       suspend:0 condition_fired ci.passed:main
        TIME  claimed            host       host:1
        TIME  step_started       host
        TIME  step_finished      agent
        TIME  park_requested     agent
        TIME  suspended          agent      suspend:1 asks: which table?
        TIME  resumed            cli:ann    suspend:1 explicit_resume
        TIME  run_ended          cli:ann    canceled not needed
        TIME  run_started        cli:ann    once more
        TIME  claimed            host       host:2
        TIME  step_started       host
        TIME  step_finished      agent
        TIME  run_ended          agent      completed
        TIME  suspended          cli:ann    suspend:3
        TIME  resumed            cli:ann    suspend:3 explicit_resume
        TIME  session_ended      cli:ann
    "#]]
    .assert_eq(&life(&Home::new(), &[]));
}

#[test]
fn the_life_of_a_session_for_programs() {
    expect![[r#"
        $ adjourn ls --json
        {"error":{"reason":"STORE","message":"there is no store ~/.local/share/adjourn/store.db","hint":"`adjourn run`, `new`, `event`, `serve`, `acp`, `import` and `restore` make one; `adjourn demo` needs none"}}
        ? 5
        $ adjourn run --script ~/ci.json --detach --json
        {"said":{"index":1,"revision":5,"at":"TIME","v":1,"role":"agent","blocks":[{"type":"text","text":"building"}],"step":1,"text":"building"}}
        {"said":{"index":2,"revision":7,"at":"TIME","v":1,"role":"agent","calls":[{"id":"0.1-0-6","tool":"build"}],"step":2,"text":""}}
        {"said":{"index":3,"revision":9,"at":"TIME","v":1,"role":"tool","blocks":[{"type":"text","text":"build done"}],"answers":"0.1-0-6","step":2,"text":"build done"}}
        {"sessionId":"sess:0","runId":"run:0","state":"suspended","handle":"suspend:0","initiator":"agent","wait":"open","reason":"waiting on ci","suspendedAt":"TIME","resumeWhen":{"onEvent":"ci.passed:main","timeout":{"durationMinutes":43230}},"dueAt":"TIME","summary":"paused on CI","totals":{},"agent":"script"}
        $ adjourn ls --json
        {"sessionId":"sess:0","runId":"run:0","state":"suspended","handle":"suspend:0","initiator":"agent","wait":"open","reason":"waiting on ci","suspendedAt":"TIME","resumeWhen":{"onEvent":"ci.passed:main","timeout":{"durationMinutes":43230}},"dueAt":"TIME","summary":"paused on CI","totals":{},"agent":"script","notice":"nobody is there to wake it; start `adjourn serve`"}
        $ adjourn show sess:0 --json
        {"sessionId":"sess:0","runId":"run:0","state":"suspended","handle":"suspend:0","initiator":"agent","wait":"open","reason":"waiting on ci","suspendedAt":"TIME","resumeWhen":{"onEvent":"ci.passed:main","timeout":{"durationMinutes":43230}},"dueAt":"TIME","summary":"paused on CI","totals":{},"agent":"script","notice":"nobody is there to wake it; start `adjourn serve`","prompt":"go","lastWords":"building","runs":1}
        $ adjourn suspend sess:0 --reason review --timeout 43230m --json
        {"sessionId":"sess:0","runId":"run:0","state":"suspended","handle":"suspend:1","initiator":"client","wait":"open","reason":"review","suspendedAt":"TIME","resumeWhen":{"timeout":{"durationMinutes":43230.0}},"dueAt":"TIME","summary":"paused by ann: review","held":"suspend:0","totals":{},"agent":"script","heldWait":{"handle":"suspend:0","initiator":"agent","wait":"open","reason":"waiting on ci","suspendedAt":"TIME","resumeWhen":{"onEvent":"ci.passed:main","timeout":{"durationMinutes":43230}},"dueAt":"TIME","summary":"paused on CI"},"notice":"nobody is there to wake it; start `adjourn serve`"}
        $ adjourn ls --json
        {"sessionId":"sess:0","runId":"run:0","state":"suspended","handle":"suspend:1","initiator":"client","wait":"open","reason":"review","suspendedAt":"TIME","resumeWhen":{"timeout":{"durationMinutes":43230.0}},"dueAt":"TIME","summary":"paused by ann: review","held":"suspend:0","totals":{},"agent":"script","heldWait":{"handle":"suspend:0","initiator":"agent","wait":"open","reason":"waiting on ci","suspendedAt":"TIME","resumeWhen":{"onEvent":"ci.passed:main","timeout":{"durationMinutes":43230}},"dueAt":"TIME","summary":"paused on CI"},"notice":"nobody is there to wake it; start `adjourn serve`"}
        $ adjourn resume sess:0 --detach --json
        {"resumed":{"handle":"suspend:1","cause":"explicit_resume","hadResumeInput":false,"continueTranscript":true,"resumedAt":"TIME"}}
        {"sessionId":"sess:0","runId":"run:0","state":"suspended","handle":"suspend:0","initiator":"agent","wait":"open","reason":"waiting on ci","suspendedAt":"TIME","resumeWhen":{"onEvent":"ci.passed:main","timeout":{"durationMinutes":43230}},"dueAt":"TIME","summary":"paused on CI","totals":{},"agent":"script","notice":"nobody is there to wake it; start `adjourn serve`"}
        $ adjourn event ci.passed:other --id e0 --json
        {"seq":1,"fresh":true,"woke":0,"waiting":0}
        $ adjourn event ci.passed:main --id e1 --data '{"build": 7}' --json
        {"seq":2,"fresh":true,"woke":0,"waiting":1,"notice":"it is delivered when a host runs: `adjourn serve`"}
        $ adjourn event ci.passed:main --id e1 --json
        {"seq":2,"fresh":false,"woke":0,"waiting":1,"notice":"it is delivered when a host runs: `adjourn serve`"}
        $ adjourn show sess:0 --json
        {"sessionId":"sess:0","runId":"run:0","state":"suspended","handle":"suspend:2","initiator":"agent","wait":"question","suspendedAt":"TIME","question":"which table?","context":"two match","choices":["raw","monthly"],"cause":"condition_fired","hadResumeInput":false,"continueTranscript":true,"resumedAt":"TIME","totals":{},"agent":"script","prompt":"go","lastWords":"building","runs":1}
        $ adjourn prompt sess:0 monthly --detach --json
        {"sessionId":"sess:0","runId":"run:0","state":"ready","cause":"explicit_resume","hadResumeInput":true,"continueTranscript":true,"resumedAt":"TIME","totals":{},"agent":"script","notice":"nothing runs it yet; start `adjourn serve`"}
        $ adjourn ls --json
        {"sessionId":"sess:0","runId":"run:0","state":"ready","cause":"explicit_resume","hadResumeInput":true,"continueTranscript":true,"resumedAt":"TIME","totals":{},"agent":"script","notice":"waits for a host: none is running; start `adjourn serve`"}
        $ adjourn cancel sess:0 --reason 'not needed' --json
        {"sessionId":"sess:0","runId":"run:0","state":"idle","outcome":"canceled","error":"not needed","cause":"explicit_resume","hadResumeInput":true,"continueTranscript":true,"resumedAt":"TIME","totals":{},"agent":"script"}
        $ adjourn prompt sess:0 'once more' --json
        {"sessionId":"sess:0","runId":"run:1","state":"idle","outcome":"completed","totals":{},"agent":"script"}
        $ adjourn suspend sess:0 --json
        {"sessionId":"sess:0","runId":"run:1","state":"suspended","outcome":"completed","handle":"suspend:3","initiator":"client","wait":"open","suspendedAt":"TIME","summary":"paused by ann","totals":{},"agent":"script"}
        $ adjourn resume sess:0 --json
        {"resumed":{"handle":"suspend:3","cause":"explicit_resume","hadResumeInput":false,"continueTranscript":true,"resumedAt":"TIME"}}
        {"sessionId":"sess:0","runId":"run:1","state":"idle","outcome":"completed","cause":"explicit_resume","hadResumeInput":false,"continueTranscript":true,"resumedAt":"TIME","totals":{},"agent":"script"}
        $ adjourn close sess:0 --json
        {"sessionId":"sess:0","runId":"run:1","state":"ended","outcome":"completed","cause":"explicit_resume","hadResumeInput":false,"continueTranscript":true,"resumedAt":"TIME","totals":{},"agent":"script"}
        $ adjourn ls --json
        {"sessionId":"sess:0","runId":"run:1","state":"ended","outcome":"completed","cause":"explicit_resume","hadResumeInput":false,"continueTranscript":true,"resumedAt":"TIME","totals":{},"agent":"script"}
        $ adjourn prune --json
        {"events":0,"answers":0}
        $ adjourn backup ~/copy.db --json
        {"backup":"~/copy.db"}
    "#]].assert_eq(&life(&Home::new(), &["--json"]));
}

#[test]
fn a_log_is_the_journal_for_programs() {
    let home = Home::new();
    let id = home.parked(SCRIPT);
    let text = home.told(&["log", &id]).data;
    let objects = home.jsons(&["log", &id]);
    assert_eq!(text.lines().count(), objects.len());
    for (number, (line, object)) in (1..).zip(text.lines().zip(&objects)) {
        let words: Vec<_> = line.split_whitespace().collect();
        assert_eq!((&object["at"], &object["event"]), (&words[0].into(), &words[1].into()));
        assert_eq!((&object["revision"], &object["version"]), (&number.into(), &1.into()));
        assert!(object["by"]["face"].is_string(), "{object}");
    }
    let parked = objects.last().unwrap();
    assert_eq!(parked["park"]["reason"], "waiting on ci");
    let shown = home.json(&["show", &id]);
    assert_eq!(parked["park"]["suspendedAt"], shown["suspendedAt"]);
    assert_eq!(parked["park"]["due"]["at"], shown["dueAt"]);
    assert_eq!(parked["park"]["conditions"], shown["resumeWhen"]);
}

#[test]
fn a_run_for_programs_has_all_that_people_see_and_ends_with_the_end() {
    let home = Home::new();
    let script = home.file(
        "quick.json",
        r#"{"runs": [[{"say": "building"}, {"tool": {"name": "build"}}],
                     [{"say": "done"}], [{"fail": "the disk is full"}]]}"#,
    );
    let mut transcript = Transcript::new(&home);
    transcript.type_in(&["run", "--script", &script, "--json"]);
    let id = home.json(&["ls"])["sessionId"].as_str().unwrap().to_owned();
    transcript.type_in(&["log", &id, "--transcript", "--json"]);
    expect![[r#"
        $ adjourn run --script ~/quick.json --json
        {"said":{"index":1,"revision":5,"at":"TIME","v":1,"role":"agent","blocks":[{"type":"text","text":"building"}],"step":1,"text":"building"}}
        {"said":{"index":2,"revision":7,"at":"TIME","v":1,"role":"agent","calls":[{"id":"0.1-0-6","tool":"build"}],"step":2,"text":""}}
        {"said":{"index":3,"revision":9,"at":"TIME","v":1,"role":"tool","blocks":[{"type":"text","text":"build done"}],"answers":"0.1-0-6","step":2,"text":"build done"}}
        {"sessionId":"sess:0","runId":"run:0","state":"idle","outcome":"completed","totals":{},"agent":"script"}
        {"said":{"index":5,"revision":15,"at":"TIME","v":1,"role":"agent","blocks":[{"type":"text","text":"done"}],"step":1,"text":"done"}}
        {"sessionId":"sess:0","runId":"run:1","state":"idle","outcome":"completed","totals":{},"agent":"script"}
        {"sessionId":"sess:0","runId":"run:2","state":"idle","outcome":"failed","error":"the disk is full","totals":{},"agent":"script"}
        {"error":{"reason":"OTHER","message":"the run failed: the disk is full"}}
        ? 1
        $ adjourn log sess:0 --transcript --json
        {"index":0,"revision":2,"at":"TIME","v":1,"role":"user","blocks":[{"type":"text","text":"go"}],"text":"go"}
        {"index":1,"revision":5,"at":"TIME","v":1,"role":"agent","blocks":[{"type":"text","text":"building"}],"step":1,"text":"building"}
        {"index":2,"revision":7,"at":"TIME","v":1,"role":"agent","calls":[{"id":"0.1-0-6","tool":"build"}],"step":2,"text":""}
        {"index":3,"revision":9,"at":"TIME","v":1,"role":"tool","blocks":[{"type":"text","text":"build done"}],"answers":"0.1-0-6","step":2,"text":"build done"}
        {"index":4,"revision":12,"at":"TIME","v":1,"role":"user","blocks":[{"type":"text","text":"go"}],"text":"go"}
        {"index":5,"revision":15,"at":"TIME","v":1,"role":"agent","blocks":[{"type":"text","text":"done"}],"step":1,"text":"done"}
        {"index":6,"revision":17,"at":"TIME","v":1,"role":"user","blocks":[{"type":"text","text":"go"}],"text":"go"}
    "#]].assert_eq(&transcript.text());
}

#[test]
fn the_program_explains_itself() {
    let home = Home::new();
    expect![[r#"
        A durable pause for any AI agent

        Usage: adjourn [OPTIONS] <COMMAND>

        Commands:
          demo         A tour of ten seconds: an agent parks, wakes from an event and a deadline, asks and is answered
          run          Run an agent, and stay with it until it is done
          new          Make a session that waits for its first prompt, and print its id
          serve        Be a host: run what is ready, and wake what is due
          acp          Be an agent that editors start: ACP on stdin and stdout
          ls           List sessions: what waits, since when, and what will wake it
          status       Count sessions by state, and say what is overdue, which hosts live and what is undelivered
          hosts        List hosts: since when, how much they run, and when they last gave a sign of life
          show         Show one session
          log          Show what happened to a session
          wait         Wait until a session is idle, suspended or ended
          suspend      Pause a session
          prompt       Give an idle session its next prompt, or answer its question
          resume       Wake a session, or lift a hold
          event        Tell the store that something happened
          cancel       End the run of a session
          close        End a session
          export       Write a signed record of a parked session, with which it goes on elsewhere, and end it here
          import       Go on with a session from a signed record
          takeover     Take a session from a host that hangs, for whichever host is free to go on with
          rm           Remove sessions for good: end them, and erase what happened and was said in them
          prune        Drop events and answers that are no longer needed, and with --ended old sessions
          backup       Write a copy of the store
          restore      Put a backup in the place of the store, and keep what was there
          keys         List, rotate, revoke or share the keys that commits and records are signed with
          a2a          Try an agent that speaks A2A: give it work, watch it, pause it and wake it
          config       Show what is set, and where each value came from
          completions  Print a completion script for a shell
          man          Print the manual page, or write the pages of all commands to a directory
          help         Print this message or the help of the given subcommand(s)

        Options:
          -h, --help     Print help
          -V, --version  Print version

        Options of every command:
              --store <PATH>         The store's file [env: ADJOURN_STORE] [default: adjourn/store.db in the data directory]
              --config <PATH>        The configuration file [env: ADJOURN_CONFIG] [default: adjourn/config.toml in the configuration directory]
              --json                 Print one JSON object per line
              --log <LEVEL>          What is logged on stderr [env: ADJOURN_LOG] [default: info for serve, warn for acp, off for all others] [possible values: off, error, warn, info, debug, trace]
              --log-format <FORMAT>  How lines of the log are written [env: ADJOURN_LOG_FORMAT] [default: text] [possible values: text, json]

        Exit codes: 0 done, 2 usage, 3 refused by the lifecycle, 4 not found, 5 store, 6 not in time, 7 parked until a person goes on with it, 129, 130 and 143 interrupted by a hangup, by Ctrl-C and by a termination, 1 anything else.
    "#]].assert_eq(&home.told(&["--help"]).data);
    // Nothing was typed: the same, but as a mistake.
    let told = home.told(&[]);
    assert_eq!((told.code, told.data.as_str()), (2, ""));
    assert_eq!(told.talk, home.told(&["--help"]).data);
}

#[test]
fn the_largest_commands_explain_themselves() {
    let home = Home::new();
    let mut transcript = Transcript::new(&home);
    for command in ["serve", "suspend", "resume", "event"] {
        transcript.type_in(&[command, "--help"]);
    }
    // Lines that are left blank may hold spaces.
    let text: String = transcript.text().lines().flat_map(|line| [line.trim_end(), "\n"]).collect();
    expect![[r#"
        $ adjourn serve --help
        Be a host: run what is ready, and wake what is due

        Usage: adjourn serve [OPTIONS]

        Options:
          -l, --listen <ADDR:PORT>
                  Listen for HTTP: events, at POST /v1/events, and other agents, over A2A at POST /a2a, if there is an agent that they talk to; callers show a token [env: ADJOURN_LISTEN]

              --token <TOKEN>
                  What those who send events show as a bearer token; others on this machine can see it here [env: ADJOURN_TOKEN]

              --token-file <PATH>
                  A file that holds it [env: ADJOURN_TOKEN_FILE]

          -m, --model <MODEL>
                  The model of the agent: PROVIDER/MODEL, such as openai/gpt-5 or anthropic/claude-sonnet-4-5, or scripted:FILE for answers from a file

          -a, --agent <NAME>
                  An agent of the settings, [agent.NAME]; what other flags say goes before what it has. The agent `conformance` is there without them, for the test kits of A2A

              --tools <TOOLS>
                  Tools for files and commands in the agent's directory, with commas between them: read, list, search, write, edit, run; or all

              --allow-all
                  Let tools run without asking for permission

              --mcp <FILE>
                  A file of MCP servers, {"mcpServers": {…}}, whose tools the agent has

          -s, --script <FILE>
                  A script instead of an agent: every step is written down

              --tokens-file <PATH>
                  A file of the tokens that callers show: NAME SHA256 SCOPES [TENANT] on each line [env: ADJOURN_TOKENS_FILE]

              --insecure-open
                  Let everybody on this machine in without a token; on loopback addresses only

              --public-name <NAME>
                  What others call it, besides its address: agents.example.org, or https://agents.example.org behind a proxy [env: ADJOURN_PUBLIC_NAME]

              --push <PUSH>
                  Where other agents may have push notifications sent [env: ADJOURN_PUSH] [default: public]

                  Possible values:
                  - off:      The server sends none
                  - public:   The server sends them to hosts on the public internet, over https
                  - loopback: The server sends them to this machine, too

              --profile <PROFILE>
                  In whose words they are told about pauses [env: ADJOURN_A2A_PROFILE] [default: adjourn]

                  Possible values:
                  - adjourn: Tell each client in the words it has shown to understand
                  - rfc:     Tell every client in the words of the proposals

              --max-running <N>
                  Sessions to drive at once [env: ADJOURN_MAX_RUNNING] [default: 64]

              --drain <DURATION>
                  How long calls in flight may go on when it stops [env: ADJOURN_DRAIN] [default: 30s]

              --cache <N>
                  Sessions to keep in memory [env: ADJOURN_CACHE] [default: 4096]

          -h, --help
                  Print help (see a summary with '-h')

        Options of every command:
              --store <PATH>
                  The store's file [env: ADJOURN_STORE] [default: adjourn/store.db in the data directory]

              --config <PATH>
                  The configuration file [env: ADJOURN_CONFIG] [default: adjourn/config.toml in the configuration directory]

              --json
                  Print one JSON object per line

              --log <LEVEL>
                  What is logged on stderr [env: ADJOURN_LOG] [default: info for serve, warn for acp, off for all others]

                  [possible values: off, error, warn, info, debug, trace]

              --log-format <FORMAT>
                  How lines of the log are written [env: ADJOURN_LOG_FORMAT] [default: text]

                  [possible values: text, json]
        $ adjourn suspend --help
        Pause a session

        Usage: adjourn suspend [OPTIONS] <SESSION>

        Arguments:
          <SESSION>
                  The session's name or id, the beginning or end of what `ls` shows of its id, or the id of one of its runs

        Options:
          -r, --reason <REASON>
                  Why

          -m, --mode <MODE>
                  When it takes effect

                  Possible values:
                  - finish_step:         After the step under way: the model answers, and the calls it asks for run
                  - interrupt_immediate: At once: the model is broken off; calls that have started end, others wait for the resume
                  - wait_for_completion: After the run under way

                  [default: finish_step]

          -e, --on-event <PATTERN>
                  Wake it on an event: NAME or NAME:SUBJECT, with * and ** except in the name's first part

              --trigger <JSON>
                  Wake it on a trigger

          -t, --timeout <DURATION>
                  Wake it after a while: 90s, 30m, 1h30m, 2d

              --on-timeout <ACTION>
                  What to do then

                  Possible values:
                  - resume_with_summary: Wake it, and tell it what it waited for and how long
                  - resume_with_input:   Wake it with that as a value
                  - fail:                Fail its run

              --resume-when <JSON>
                  Wake it on any of these: {"onEvent": …, "trigger": …, "timeout": {"durationMinutes": …}}

              --grace <DURATION>
                  Abandon calls that are still in flight after this long

              --as <NAME>
                  Who asks, as the journal and refusals name them [env: ADJOURN_AS] [default: the user's name]

          -h, --help
                  Print help (see a summary with '-h')

        Options of every command:
              --store <PATH>
                  The store's file [env: ADJOURN_STORE] [default: adjourn/store.db in the data directory]

              --config <PATH>
                  The configuration file [env: ADJOURN_CONFIG] [default: adjourn/config.toml in the configuration directory]

              --json
                  Print one JSON object per line

              --log <LEVEL>
                  What is logged on stderr [env: ADJOURN_LOG] [default: info for serve, warn for acp, off for all others]

                  [possible values: off, error, warn, info, debug, trace]

              --log-format <FORMAT>
                  How lines of the log are written [env: ADJOURN_LOG_FORMAT] [default: text]

                  [possible values: text, json]
        $ adjourn resume --help
        Wake a session, or lift a hold

        Usage: adjourn resume [OPTIONS] <SESSION>

        Arguments:
          <SESSION>  The session's name or id, the beginning or end of what `ls` shows of its id, or the id of one of its runs

        Options:
              --handle <HANDLE>        The suspension that is meant
          -i, --input <JSON>           A value for the agent; - reads it from stdin
              --fresh                  Start the turn with a digest instead of the whole transcript
              --idempotency-key <KEY>  Makes a retry harmless
              --add-budget <AMOUNTS>   Raise the budget: usd=5, tokens=20000, steps=50, with commas between them
          -d, --detach                 Only commit; a host that is there runs it
              --as <NAME>              Who asks, as the journal and refusals name them [env: ADJOURN_AS] [default: the user's name]
          -h, --help                   Print help

        Options of every command:
              --store <PATH>         The store's file [env: ADJOURN_STORE] [default: adjourn/store.db in the data directory]
              --config <PATH>        The configuration file [env: ADJOURN_CONFIG] [default: adjourn/config.toml in the configuration directory]
              --json                 Print one JSON object per line
              --log <LEVEL>          What is logged on stderr [env: ADJOURN_LOG] [default: info for serve, warn for acp, off for all others] [possible values: off, error, warn, info, debug, trace]
              --log-format <FORMAT>  How lines of the log are written [env: ADJOURN_LOG_FORMAT] [default: text] [possible values: text, json]
        $ adjourn event --help
        Tell the store that something happened

        Usage: adjourn event [OPTIONS] <NAME>

        Arguments:
          <NAME>  NAME or NAME:SUBJECT

        Options:
          -d, --data <JSON>      What there is to say about it; - reads it from stdin
              --id <ID>          Its id; the same id from the same source is taken once
              --source <SOURCE>  Where it comes from [env: ADJOURN_SOURCE] [default: cli]
              --tenant <TENANT>  Whose it is [env: ADJOURN_TENANT] [default: local]
              --session <ID>     Wake this session, whatever it waits for
          -h, --help             Print help

        Options of every command:
              --store <PATH>         The store's file [env: ADJOURN_STORE] [default: adjourn/store.db in the data directory]
              --config <PATH>        The configuration file [env: ADJOURN_CONFIG] [default: adjourn/config.toml in the configuration directory]
              --json                 Print one JSON object per line
              --log <LEVEL>          What is logged on stderr [env: ADJOURN_LOG] [default: info for serve, warn for acp, off for all others] [possible values: off, error, warn, info, debug, trace]
              --log-format <FORMAT>  How lines of the log are written [env: ADJOURN_LOG_FORMAT] [default: text] [possible values: text, json]
    "#]].assert_eq(&text);
}
