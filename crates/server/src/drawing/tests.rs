use super::*;

#[test]
fn every_example_can_be_run_wherever_the_server_was_started_and_has_a_title() {
    let elsewhere = tempfile::tempdir().expect("a folder");
    let files = crate::files::ServedFiles { folder: elsewhere.path().to_path_buf() };
    let examples = examples::readable(&files);
    let names: Vec<&str> = examples.iter().map(|example| example.name.as_str()).collect();
    let all: Vec<&str> = examples::EXAMPLES.iter().map(|(_, name, _)| *name).collect();
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

    let multicast =
        examples::EXAMPLES.iter().find(|(_, name, _)| *name == "multicast").expect("an example").2;
    let backends = check::checked(multicast, &()).backends.expect("it is valid");
    assert!(backends.sim.is_none() && backends.live.is_some_and(|why| why.contains("`sim` only")));
}
