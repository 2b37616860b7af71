use serde_json::json;
use trunkline_experiment::edit::apply;

use super::*;
use crate::api::Edit;

fn edited(text: &str, edit: serde_json::Value) -> Result<String, String> {
    let edit: Edit = serde_json::from_value(edit).map_err(|error| error.to_string())?;
    let edit = edit.try_into().map_err(|error: ApiError| error.info().message.clone())?;
    apply(text, &[edit]).map_err(|error| error.to_string())
}

#[test]
fn every_example_can_be_run_wherever_the_server_was_started_and_has_a_title() {
    let elsewhere = tempfile::tempdir().expect("a folder");
    let files = crate::files::served(elsewhere.path());
    let examples = examples::readable(&files);
    let names: Vec<&str> = examples.iter().map(|example| example.name.as_str()).collect();
    let all: Vec<&str> = examples::EXAMPLES.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, all);
    assert!(names.contains(&"voice-beside-bulk") && names.contains(&"cellular-trace"));
    for example in &examples {
        let checked = check::checked(&example.text, &files);
        assert_eq!(checked.problems, [], "{}", example.name);
        let summary = checked.summary.expect("it is valid");
        assert_eq!(summary.name, example.title);
        assert!(summary.points > 0 && summary.duration_s > 0.0 && summary.flows > 0, "{}", example.name);
        assert_eq!(checked.backends.expect("it is valid").sim, None, "{}", example.name);
    }
}

#[test]
fn what_is_wrong_is_told_with_its_place_and_where_it_cannot_run_with_the_reason() {
    let text = "name = \"x\"\nduration = \"1 s\"\n[hosts]\na = {}\nb = {}\n[link.l]\nbetween = [\"a\", \"c\"]\nrate = \"1 Mbit/s\"\n";
    let checked = check::checked(text, &());
    let problem = &checked.problems[0];
    assert_eq!((problem.line, problem.column, problem.end_line, problem.end_column), (7, 17, 7, 20));
    assert!(problem.message.contains("unknown host `c`") && problem.file.is_none(), "{problem:?}");
    assert!(checked.summary.is_none() && checked.backends.is_none());

    let checked = check::checked(&text.replace("\"c\"", "\"b\""), &());
    let backends = checked.backends.expect("it is valid");
    assert!(backends.sim.expect("there is nothing to measure").contains("no flows"));

    let multicast = examples::EXAMPLES.iter().find(|(name, _)| *name == "multicast").expect("an example").1;
    let backends = check::checked(multicast, &()).backends.expect("it is valid");
    assert!(backends.sim.is_none() && backends.live.is_some_and(|why| why.contains("`sim` only")));
}

#[test]
fn edits_of_the_api_are_those_of_the_library() {
    let text = "[hosts]\na = {}\n";
    let place = json!({ "op": "place", "host": "a", "x": 1.4, "y": -2 });
    assert_eq!(edited(text, place), Ok("[hosts]\na = { position = [1, -2] }\n".to_owned()));
    let rename = json!({ "op": "rename", "section": "hosts", "from": "a", "to": "b" });
    assert_eq!(edited(text, rename), Ok("[hosts]\nb = {}\n".to_owned()));
    let set = json!({ "op": "set", "path": ["seed"], "value": 3 });
    assert_eq!(edited(text, set), Ok("seed = 3\n\n[hosts]\na = {}\n".to_owned()));
    let remove = json!({ "op": "remove", "path": ["hosts", "a"] });
    assert_eq!(edited(text, remove), Ok("[hosts]\n".to_owned()));
    let add = json!({ "op": "add", "section": "limits", "values": {} });
    assert!(edited(text, add).unwrap_err().contains("only hosts, links, flows and bundles"));
    assert!(edited(text, json!({ "op": "paint" })).is_err());
}
